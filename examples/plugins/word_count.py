"""A tool of one's own: it counts words, which models do badly."""

from typing import Annotated

from providers.api.tool import tool


@tool
def count_words(text: Annotated[str, "What to count in."]) -> str:
    """Count the words of a text."""
    count = len(text.split())
    return f"{count} word{'' if count == 1 else 's'}"
