"""A process that searches texts with one regular expression and ends. `file_search` starts it; it opens no file.

It runs by itself (`python -I -S`), because nothing else can stop a regular expression that backtracks for ever.
stdin: {"pattern", "files": [[name, text], …], "seconds", "bytes", "radius", "lines", "chars"}.
stdout: {"found": [{"file_name", "snippet", "matching_lines": […], "note"?}, …]}, or {"error": text}.
"""

import json
import os
import re
import sys
import warnings
from typing import Any


def main() -> None:
    """Read one search, answer it, end."""
    wanted: dict[str, Any] = json.load(sys.stdin)
    _limit(wanted["seconds"], wanted["bytes"])
    warnings.simplefilter("ignore")  # about patterns; nobody reads them here
    try:
        pattern = re.compile(wanted["pattern"], re.IGNORECASE)
    except (re.error, RecursionError, OverflowError, MemoryError) as error:
        answer: dict[str, Any] = {"error": str(error) or type(error).__name__}
    else:
        answer = _searched(pattern, wanted)
    json.dump(answer, sys.stdout)


def _limit(seconds: int, size: int) -> None:
    """Bound what this process may use, in case that nobody is left to stop it; others go first."""
    if sys.platform != "win32":
        import resource

        os.nice(10)
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
        if sys.platform == "linux":
            resource.setrlimit(resource.RLIMIT_AS, (size, size))


def _searched(pattern: re.Pattern[str], wanted: dict[str, Any]) -> dict[str, Any]:
    found: list[dict[str, Any]] = []
    most: int = wanted["lines"]
    count = 0
    for name, text in wanted["files"]:
        lines: list[dict[str, Any]] = []
        for number, line in enumerate(text.split("\n"), 1):
            match = pattern.search(line)
            if match is None:
                continue
            if count == most:
                found[-1]["note"] = f"there are more than {most} lines; the rest is not shown"
                return {"found": found}
            if not lines:
                around = line[max(0, match.start() - wanted["radius"]) : match.end() + wanted["radius"]]
                found.append({"file_name": name, "snippet": _shown(around, wanted["chars"]), "matching_lines": lines})
            lines.append({"line_number": number, "line": _shown(line, wanted["chars"])})
            count += 1
    return {"found": found}


def _shown(line: str, most: int) -> str:
    return line if len(line) <= most else line[:most] + "…"


if __name__ == "__main__":
    main()
