"""Makes text of others fit to decide by: nothing in it is invisible, moves the cursor, or is longer than one reads."""

import json
from typing import Any

from providers.visible_text import seen


def visible(text: str) -> str:
    """The text on one line; what people would not see as it is stands there as Python's escape of it."""
    return "".join(
        character if is_shown else character.encode("unicode_escape", "surrogatepass").decode()
        for character, is_shown in seen(text)
    )


def visible_json(value: Any) -> str:
    """A JSON value on one line, in the same way."""
    return visible(json.dumps(value, ensure_ascii=False))


def shortened(text: str, limit: int) -> str:
    """The text's beginning and end where it has more than `limit` characters, and how much was between them."""
    if len(text) <= limit:
        return text
    head, tail = text[: limit * 2 // 3], text[-limit // 3 :]
    return f"{head} [… {len(text) - len(head) - len(tail):,} characters …] {tail}"


def quoted(text: str, lines: int, limit: int) -> list[str]:
    """Some lines of a longer text, each with a bar before it, so that none can pass for one of ours.

    Args:
        text: What somebody wrote.
        lines: How many lines are kept.
        limit: How many characters of each.
    """
    all_lines = text.splitlines()
    kept = [f"  │ {shortened(visible(line), limit)}" for line in all_lines[:lines]]
    return [*kept, f"  │ [… {len(all_lines) - lines:,} lines …]"] if len(all_lines) > lines else kept
