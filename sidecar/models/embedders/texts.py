"""What an embedder is given: text made fit for models, cut to a length, and parted into batches. Embeds nothing."""

import unicodedata
from collections.abc import Iterator, Sequence
from typing import Final

from providers.api.clean_text import clean_text
from providers.api.memory import EmbedderError

_INVISIBLE: Final = frozenset({"Cc", "Cf"})
"""Categories of characters that show nothing: controls, and marks such as the zero-width space."""


def prepared(texts: Sequence[str], max_bytes: int) -> list[str]:
    """The texts from their first visible character on, without broken ones, each cut to so many bytes of UTF-8.

    Raises:
        EmbedderError: one of them is blank. Services refuse that, and a model would make up a meaning.
    """
    begins = [_cut(clean_text(from_first_visible(text)), max_bytes) for text in texts]
    if not all(begins):
        raise EmbedderError("blank text has no vector")
    return begins


def from_first_visible(text: str) -> str:
    """The text without the blanks, controls and characters of no width that it begins with; empty if it is blank."""
    visible = (place for place, character in enumerate(text) if not _is_invisible(character))
    return text[next(visible, len(text)) :]


def batches(texts: Sequence[str], max_texts: int, max_bytes: int) -> Iterator[list[str]]:
    """The texts in order, in lists of at most so many texts and bytes; a longer text stands alone."""
    batch: list[str] = []
    size = 0
    for text in texts:
        length = len(text.encode())
        if batch and (len(batch) == max_texts or size + length > max_bytes):
            yield batch
            batch, size = [], 0
        batch.append(text)
        size += length
    if batch:
        yield batch


def _is_invisible(character: str) -> bool:
    return character.isspace() or unicodedata.category(character) in _INVISIBLE


def _cut(text: str, max_bytes: int) -> str:
    if len(text) * 4 <= max_bytes:  # no character has more bytes
        return text
    return text.encode()[:max_bytes].decode(errors="ignore")
