"""How text becomes words: what is put into a full-text index, and what is asked of it. Pure; it knows no index.

Scripts that put no blanks between words (Chinese, Japanese, Korean, Thai…) are indexed by single characters and
searched by pairs of neighbours. Nothing that anybody writes is ever syntax: each term is quoted.
"""

import re
import unicodedata
from collections.abc import Iterator
from itertools import pairwise
from typing import Final

MAX_TERMS: Final = 32
"""The most terms of one query. Of more, the longest are taken: they say most."""

_UNSPACED: Final = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"  # Thai, Lao, Burmese, Khmer
    "\u1100-\u11ff\u3005-\u3007\u3040-\u30ff\u3100-\u312f\u31f0-\u31ff\uac00-\ud7af"  # Hangul, kana, bopomofo
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"  # Han
)
_ACCENT: Final = re.compile("[\u0300-\u036f]")
_CHARACTER: Final = re.compile(f"([{_UNSPACED}])")
_RUN: Final = re.compile(f"[{_UNSPACED}]+")
# Whatever else is no letter is left to the index's own tokenizer, which then sees a phrase.
_BREAK: Final = re.compile(
    "[\x00-\x2f:-@\\[-`{-\xa0\xa1-\xa9\xab-\xb1\xb4\xb6-\xb8\xbb\xbf\xd7\xf7\u2000-\u206f\u2190-\u2bff"
    "\u3000-\u3004\u3008-\u303f\uff00-\uff0f\uff1a-\uff20\uff3b-\uff40\uff5b-\uff65\ufe30-\ufe6f\ud800-\udfff]+"
)
_COMMON: Final = (
    "a about an and any are as at be been but by can could did do does for from had has have he her his how i if in is"
    " it its me my no not of on or our she should so some that the their them then there these they this those to was"
    " we were what when where which who whose why will with would you your"
)
_STOP_WORDS: Final = frozenset(_COMMON.split())


def is_blank(text: str) -> bool:
    """Whether a text shows nothing: blanks, controls and characters of no width."""
    return all(unicodedata.category(character)[0] in "ZC" for character in text)


def folded(text: str) -> str:
    """Text as it is compared: one spelling for each character, without case and accents."""
    bare = _ACCENT.sub("", unicodedata.normalize("NFKD", text.casefold()))
    return unicodedata.normalize("NFC", bare)


def separated(text: str) -> str:
    """Text as it is indexed: characters of unspaced scripts stand alone."""
    return _CHARACTER.sub(r" \1 ", folded(text))


def terms(text: str) -> list[str]:
    """The distinct terms of a text, in order: words, and pairs of neighbours (`"外 卖"`) of unspaced scripts."""
    plain = folded(text)
    pieces = _BREAK.split(plain)
    if _RUN.search(plain) is not None:
        pieces = [part for piece in pieces for part in _parts(piece)]
    return [term for term in dict.fromkeys(pieces) if term.isalnum() or any(map(str.isalnum, term))]


def query_terms(text: str, *, skip_common: bool = False) -> list[str]:
    """The terms that a query is searched by, at most `MAX_TERMS`; none where it has neither letters nor numbers.

    Args:
        text: the query.
        skip_common: leave out words that stand everywhere, unless there are no others.
    """
    found = terms(text)
    if skip_common:
        found = [term for term in found if term not in _STOP_WORDS] or found
    return found if len(found) <= MAX_TERMS else sorted(found, key=len, reverse=True)[:MAX_TERMS]


def quoted(term: str) -> str:
    """A term as FTS5 takes it, whatever it holds."""
    return '"' + term.replace('"', '""') + '"'


def _parts(piece: str) -> Iterator[str]:
    """What stands between runs of unspaced scripts, and the pairs of each run; a lone character is itself."""
    end = 0
    for run in _RUN.finditer(piece):
        yield piece[end : run.start()]
        characters = run.group()
        yield from map(" ".join, pairwise(characters)) if len(characters) > 1 else characters
        end = run.end()
    yield piece[end:]
