"""A process that reads the text of one PDF file and ends. `text_search_readers` starts it; it opens no other file.

It runs by itself (`python -I`), because nothing else can stop a PDF that takes for ever.
argv[1]: {"seconds", "bytes", "characters"}; stdin: the file; stdout: {"pages": [text, …]}, or {"error": text}.
"""

import json
import os
import sys
from io import BytesIO
from typing import Any


def main() -> None:
    """Read one file, tell its text, end."""
    limits: dict[str, int] = json.loads(sys.argv[1])
    _limit(limits["seconds"], limits["bytes"])
    json.dump(_read(limits["characters"]), sys.stdout)


def _limit(seconds: int, size: int) -> None:
    """Bound what this process may use, in case that nobody is left to stop it; others go first."""
    if sys.platform != "win32":
        import resource

        os.nice(10)
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
        if sys.platform == "linux":
            resource.setrlimit(resource.RLIMIT_AS, (size, size))


def _read(most: int) -> dict[str, Any]:
    from pypdf import PdfReader
    from pypdf.errors import PyPdfError

    pages: list[str] = []
    length = 0
    try:
        reader = PdfReader(BytesIO(sys.stdin.buffer.read()))
        if reader.is_encrypted and not reader.decrypt(""):
            return {"error": "the PDF is encrypted"}
        for page in reader.pages:
            pages.append(page.extract_text())
            length += len(pages[-1])
            if length > most:
                return {"error": f"its text is longer than {most:,} characters"}
    except PyPdfError as error:
        return {"error": f"the PDF is damaged: {type(error).__name__}"}
    except Exception as error:  # whatever a malformed file makes of a reader
        return {"error": f"the PDF cannot be read: {type(error).__name__}"}
    return {"pages": pages}


if __name__ == "__main__":
    main()
