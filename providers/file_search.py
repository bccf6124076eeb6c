"""Searches texts with a regular expression that a model wrote, and always comes to an end.

Neither `re` nor a thread around it can be stopped, so the search is a process of its own, ended when its time is over.
"""

import asyncio
import json
import os
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

MAX_PATTERN: Final = 256
"""Characters of a pattern."""
SEARCH_SECONDS: Final = 10
"""Of one search, with the start of its process."""
MAX_LINES: Final = 200
"""Lines of one answer."""
MAX_LINE_CHARS: Final = 500
"""Of a line in an answer."""

_SNIPPET: Final = 50
"""Characters that a snippet shows on each side of the first match."""
_MEMORY: Final = 1 << 30
_CHILD: Final = Path(__file__).with_name("file_search_child.py")


class SearchError(Exception):
    """A search was refused, or stopped. The text is for models."""


async def search(pattern: str, texts: Mapping[str, str], *, seconds: float = SEARCH_SECONDS) -> list[dict[str, Any]]:
    """The lines in which a pattern is found, whatever their letter case; only a newline ends a line.

    Args:
        pattern: In Python's `re` syntax.
        texts: By name.
        seconds: After which it is stopped.

    Returns:
        For each text with a match `{file_name, snippet, matching_lines: [{line_number, line}]}`, in the order given.
        Where there is more than an answer holds, the last one has a `note` that says so.

    Raises:
        SearchError: the pattern is too long or wrong, or the search took too long or too much memory.
    """
    if not pattern:
        raise SearchError("the pattern is empty")
    if len(pattern) > MAX_PATTERN:
        raise SearchError(f"the pattern has {len(pattern)} characters, and may have {MAX_PATTERN}")
    wanted = {
        "pattern": pattern,
        "files": list(texts.items()),
        "seconds": SEARCH_SECONDS,
        "bytes": _MEMORY,
        "radius": _SNIPPET,
        "lines": MAX_LINES,
        "chars": MAX_LINE_CHARS,
    }
    try:
        async with asyncio.timeout(seconds):
            answer = await _answer(await asyncio.to_thread(_encoded, wanted))  # it may be long
    except TimeoutError:
        raise SearchError(
            f"the search did not end within {seconds:g} seconds; use a simpler pattern, without nested repeats"
        ) from None
    if "error" in answer:
        raise SearchError(f"the pattern is wrong: {answer['error']}")
    return answer["found"]


def _encoded(wanted: dict[str, Any]) -> bytes:
    return json.dumps(wanted).encode()


async def _answer(wanted: bytes) -> dict[str, Any]:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-I",
        "-S",
        str(_CHILD),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        env={name: value for name, value in os.environ.items() if not name.startswith("PYTHON")},
        start_new_session=True,  # Ctrl-C in a terminal is the parent's to handle
    )
    try:
        told, _ = await process.communicate(wanted)
    finally:
        if process.returncode is None:
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()
    try:
        return json.loads(told)
    except ValueError:
        raise SearchError("the search took too much time or memory; use a simpler pattern") from None
