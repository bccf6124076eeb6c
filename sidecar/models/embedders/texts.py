"""What an embedder is given: text made fit for models, cut to a length, and parted into batches. Embeds nothing."""

import unicodedata
from collections.abc import Iterator, Sequence
from typing import Final

from providers.api.memory import EmbedderError
from sidecar.models.json_text import clean

_INVISIBLE: Final = frozenset({"Cc", "Cf"})
"""Categories of characters that show nothing: controls, and marks such as the zero-width space."""


def prepared(texts: Sequence[str], max_bytes: int) -> list[str]:
    """The texts without broken characters, each cut to the first `max_bytes` bytes of its UTF-8.

    Raises:
        EmbedderError: one of them is blank, as far as it goes. Services refuse that; a model would make up a meaning.
    """
    begins = [_cut(clean(text).strip(), max_bytes) for text in texts]
    if any(map(is_blank, [*texts, *begins])):
        raise EmbedderError("blank text has no vector")
    return begins


def is_blank(text: str) -> bool:
    """Whether nothing of the text can be seen."""
    return all(character.isspace() or unicodedata.category(character) in _INVISIBLE for character in text)


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


def _cut(text: str, max_bytes: int) -> str:
    if len(text) * 4 <= max_bytes:  # no character has more bytes
        return text
    return text.encode()[:max_bytes].decode(errors="ignore")
