"""A process that makes text of one HTML or PDF document and ends. `text_search_readers` starts it; it opens no file.

It runs by itself (`python -I`), because nothing else can stop a document that takes for ever.
argv: `html` or `pdf`, {"seconds", "bytes", "characters"}; stdin: the document, HTML in UTF-8.
stdout: {"text", "title"?}, or {"error": text}. Pages of a PDF end with a form feed.
"""

import importlib.util
import json
import os
import sys
from io import BytesIO
from pathlib import Path
from typing import Any


def main() -> None:
    """Read one document, tell its text, end."""
    kind = sys.argv[1]
    limits: dict[str, int] = json.loads(sys.argv[2])
    _limit(limits["seconds"], limits["bytes"])
    data = sys.stdin.buffer.read()
    json.dump(_pdf(data, limits["characters"]) if kind == "pdf" else _html(data), sys.stdout)


def _limit(seconds: int, size: int) -> None:
    """Bound what this process may use, in case that nobody is left to stop it; others go first."""
    if sys.platform != "win32":
        import resource

        os.nice(10)
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
        if sys.platform == "linux":
            resource.setrlimit(resource.RLIMIT_AS, (size, size))


def _html(data: bytes) -> dict[str, Any]:
    spec = importlib.util.spec_from_file_location("html_text", Path(__file__).with_name("text_search_html.py"))
    if spec is None or spec.loader is None:
        raise ImportError("text_search_html")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    page = module.Html()
    try:
        page.feed(data.decode())
        page.close()
    except Exception as error:  # whatever a malformed page makes of a parser
        return {"error": f"the page cannot be read: {type(error).__name__}"}
    return {"text": page.text, "title": page.title}


def _pdf(data: bytes, most: int) -> dict[str, Any]:
    from pypdf import PdfReader
    from pypdf.errors import PyPdfError

    pages: list[str] = []
    length = 0
    try:
        reader = PdfReader(BytesIO(data))
        if reader.is_encrypted and not reader.decrypt(""):
            return {"error": "the PDF is encrypted"}
        for page in reader.pages:
            pages.append(page.extract_text().replace("\f", "\n"))
            length += len(pages[-1])
            if length > most:
                return {"error": f"its text is longer than {most:,} characters"}
    except PyPdfError as error:
        return {"error": f"the PDF is damaged: {type(error).__name__}"}
    except Exception as error:  # whatever a malformed file makes of a reader
        return {"error": f"the PDF cannot be read: {type(error).__name__}"}
    if not any(page.strip() for page in pages):
        return {"error": "the PDF holds no text; it may be scanned"}
    return {"text": "\f".join(pages)}


if __name__ == "__main__":
    main()
