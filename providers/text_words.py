"""How text becomes words for full-text search with SQLite's FTS5. Pure; it opens nothing.

The index stems English. Scripts that put no blanks between words (Chinese, Japanese, Thai, …) are indexed by single
characters and searched by pairs of neighbours. Nothing that anybody writes is syntax: each term is quoted.
"""

import re
import unicodedata
from itertools import pairwise
from typing import Final

TOKENIZER: Final = "porter unicode61 remove_diacritics 2"
"""Of FTS5, for columns that hold `separated` text."""
MAX_TERMS: Final = 32
"""Of one query. Where there are more, the longest are taken: they say most."""
MAX_QUERY: Final = 8_000
"""Characters of a query that are looked at: the last ones, which are the newest."""

_UNSPACED: Final = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"  # Thai, Lao, Burmese, Khmer
    "\u1100-\u11ff\u3005-\u3007\u3040-\u30ff\u3100-\u312f\u31f0-\u31ff\uac00-\ud7af"  # Hangul, kana, bopomofo
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"  # Han
)
_CHARACTER: Final = re.compile(f"([{_UNSPACED}])")
_RUN: Final = re.compile(f"([{_UNSPACED}]+)")
_COMMON: Final = (
    "a about an and any are as at be been but by can could did do does for from had has have he her his how i if in is"
    " it its me my no not of on or our she should so some that the their them then there these they this those to was"
    " we were what when where which who whose why will with would you your"
)
_STOP_WORDS: Final = frozenset(_COMMON.split())
"""They stand everywhere; a query of nothing else is searched by them all the same."""


def is_blank(text: str) -> bool:
    """Whether a text shows nothing: blanks, controls and characters of no width."""
    return all(unicodedata.category(character)[0] in "ZC" for character in text)


def separated(text: str) -> str:
    """Text as it is indexed: without case, and with characters of unspaced scripts standing alone."""
    return _CHARACTER.sub(r" \1 ", _folded(text))


def query_terms(text: str) -> list[str]:
    """The distinct terms of a query, quoted as FTS5 takes them; none where it has neither letters nor numbers."""
    found: dict[str, None] = {}
    for word in _bare(_folded(text[-MAX_QUERY:])).split():
        for piece in _RUN.split(word):
            if _RUN.fullmatch(piece) and len(piece) > 1:
                found.update(dict.fromkeys(" ".join(pair) for pair in pairwise(piece)))
            elif piece:
                found[piece] = None
    terms = [term for term in found if term not in _STOP_WORDS] or list(found)
    if len(terms) > MAX_TERMS:
        terms = sorted(terms, key=len, reverse=True)[:MAX_TERMS]
    return [f'"{term}"' for term in terms]


def _folded(text: str) -> str:
    return unicodedata.normalize("NFKC", text).casefold()


def _bare(text: str) -> str:
    """Letters, marks and numbers; a blank in the place of anything else, so also of quotes."""
    return "".join(character if unicodedata.category(character)[0] in "LMN" else " " for character in text)
