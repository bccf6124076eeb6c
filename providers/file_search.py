"""Searches texts with a regular expression that a model wrote, and always comes to an end.

Neither `re` nor a thread around it can be stopped, so the search is a process of its own, ended when its time is over.
"""

import asyncio
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from .child_process import NoAnswer, ask_child

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
            data = await asyncio.to_thread(_encoded, wanted)  # it may be long
            answer = await ask_child(_CHILD, data=data)
    except TimeoutError:
        raise SearchError(
            f"the search did not end within {seconds:g} seconds; use a simpler pattern, without nested repeats"
        ) from None
    except NoAnswer:
        raise SearchError("the search took too much time or memory; use a simpler pattern") from None
    if "error" in answer:
        raise SearchError(f"the pattern is wrong: {answer['error']}")
    return answer["found"]


def _encoded(wanted: dict[str, Any]) -> bytes:
    return json.dumps(wanted).encode()
