"""The stems of English words, roughly: enough for plural and tense to be found. Pure; Porter's rules are FTS5's."""

import re
from functools import lru_cache
from typing import Final

_VOWEL: Final = re.compile("[aeiouy]")
_ASCII: Final = re.compile("[a-z']{4,}")
_ENDINGS: Final = ("ingly", "edly", "ing", "ed", "ly", "es", "s", "e", "y", "i")


@lru_cache(maxsize=65_536)
def stem(word: str) -> str:
    """A word, folded, without its ending; whatever is no English is left as it is."""
    if not _ASCII.fullmatch(word):
        return word
    for ending in _ENDINGS:
        left = word.removesuffix(ending)
        if left != word and len(left) > 2 and _VOWEL.search(left) and not (ending == "s" and left.endswith("s")):
            return _single(left) if ending not in ("s", "es", "e", "y", "i") else left.removesuffix("i")
    return word


def _single(left: str) -> str:
    """Take back what an ending has doubled or dropped."""
    if left[-1] == left[-2] and left[-1] not in "lsz":
        return left[:-1]
    return left.removesuffix("e")
