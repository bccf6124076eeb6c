"""The secret values that a process knows, and texts without them. It keeps values in memory only, and writes nothing.

What is no known value is found by its form (`providers/secret_patterns.py`): that keeps accidents out of a file, and is
no promise about a secret that looks like a word.
"""

import json
import re
import threading
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from itertools import islice
from typing import Final, cast
from urllib.parse import quote, unquote, unquote_plus, urlsplit

from protocol.base import Json, JsonObject
from providers.secret_patterns import REDACTED, without_blocks, without_words

from .model import Config

REMOVED: Final = "<secret>"
"""Stands where a secret was."""

SHORTEST: Final = 4
"""A shorter value is not looked for in other texts: it would be found in half of them."""
SHORTEST_GUESSED: Final = 8
"""The same for values that are taken for secrets because of their names alone."""

_NAME: Final = re.compile(
    r"""
    (?: (?:api|access|account|private|secret|signing|encryption)[_\s-]?key | token | passw(?:or)?d | passphrase
      | (?<!api[_\s-]key[_\s-])(?<!apikey)secret | authorization | credentials? | cookie
      | (?:(?<![^\W_]) | (?-i:(?<=[a-z0-9])(?=[A-Z]))) (?:pass | pwd | pat | jwt)
    )$
    """,
    re.IGNORECASE | re.VERBOSE,
)
"""`api_key_secret` is the name of a secret, no secret."""
_VARIABLE: Final = re.compile(r"(?:^|_)(?:KEY|TOKEN|SECRET|PASSWORD|PASSPHRASE|CREDENTIALS?)$", re.IGNORECASE)

_PIECE: Final = 8192
"""Characters that are matched at once, if the text can be cut there: matching holds Python's lock."""
_LONGEST_UNCUT: Final = 64 * 1024
"""Characters of a run without a place to cut it; a longer one is cut anywhere."""
_NEAR: Final = 512
_CUTS: Final = ((re.compile(r"\s"), 1024), (re.compile(r"[^A-Za-z0-9_.-]"), _LONGEST_UNCUT))
"""Where to cut, and for how far to look for it: before a blank, else before what is in no key."""
_MOST_CUTS: Final = 16

_USER_INFO: Final = re.compile(r"(?<=://)[^/\s@]+(?=@)")
_SHORT_TEXT: Final = 64
"""Ids, names and types are that short, and come again."""


def is_secret_name(name: str) -> bool:
    """Whether a member that is called so holds a secret."""
    return _NAME.search(name) is not None


def secrets_of(config: Config, environ: Mapping[str, str]) -> Iterator[str]:
    """The secret values of a configuration and of the environment: keys, headers, and what URLs carry."""
    for name, value in environ.items():
        if _VARIABLE.search(name) and len(value) >= SHORTEST_GUESSED:
            yield value
    for endpoint in config.endpoints.values():
        yield environ.get(endpoint.api_key_env or "", "")
        yield from (header.get_secret_value() for header in endpoint.headers.values())
        yield from secrets_in_url(endpoint.base_url or "")
    for server in config.mcp_servers.values():
        yield from (value.get_secret_value() for value in (*server.env.values(), *server.headers.values()))
        yield from secrets_in_url(server.url or "")
    yield from secrets_in_url(environ.get("OPENAI_BASE_URL", ""))


def secrets_in_url(url: str) -> Iterator[str]:
    """User and password of a URL, and the values of its query: as they stand there, and decoded."""
    try:
        parts = urlsplit(url)
    except ValueError:  # no URL
        return
    user, _, password = parts.netloc.rpartition("@")[0].partition(":")
    values = [value for pair in parts.query.split("&") for value in pair.partition("=")[2:]]
    found = [(password, 1), (user, SHORTEST_GUESSED), *((value, SHORTEST_GUESSED) for value in values)]
    for value, shortest in found:
        if len(value) >= shortest:
            yield from {value: None, unquote(value): None, unquote_plus(value): None}


def without_user_info(url: str) -> str:
    """The URL without user and password, however short they are."""
    return _USER_INFO.sub(REMOVED, url)


class Secrets:
    """Known values, and what looks like one. Every method may be called from any thread."""

    def __init__(self, values: Iterable[str] = ()) -> None:
        self._lock = threading.Lock()
        self._values: frozenset[str] = frozenset()
        self._known: re.Pattern[str] | None = None
        self._with_blanks: tuple[str, ...] = ()
        self._clean_short = lru_cache(4096)(self.clean_new)
        self.add(values)

    def add(self, values: Iterable[str]) -> None:
        """Know these too. Of a header, what follows its scheme counts by itself."""
        new = {value.strip() for value in values}
        new |= {words[-1] for words in map(str.split, new) if len(words) == 2 and len(words[-1]) >= SHORTEST_GUESSED}
        with self._lock:
            if not (new := {value for value in new if len(value) >= SHORTEST} - self._values):
                return
            self._values |= new
            forms = {form for value in self._values for form in (value, json.dumps(value)[1:-1], quote(value, safe=""))}
            self._known = re.compile("|".join(map(re.escape, sorted(forms, key=len, reverse=True))))
            self._with_blanks = tuple(value for value in self._values if not _is_word(value))
            self._clean_short.cache_clear()

    def clean(self, text: str) -> str:
        """The text, `<secret>` in place of each secret in it."""
        return self._clean_short(text) if len(text) <= _SHORT_TEXT else self.clean_new(text)

    def clean_json(self, value: Json) -> Json:
        """The same value, every text and key of it cleaned."""
        if isinstance(value, str):
            return self.clean(value)
        if isinstance(value, dict):
            return {self.clean(name): self.clean_json(item) for name, item in cast("JsonObject", value).items()}
        if isinstance(value, list):
            return [self.clean_json(item) for item in cast("list[Json]", value)]
        return value

    def is_begun(self, text: str) -> bool:
        """Whether the text ends inside something that may become a secret: in a word, or in a known value."""
        return _is_word(text[-1:]) or any(_begins_at_end(text, value) for value in self._with_blanks)

    def is_known_begun(self, text: str) -> bool:
        """Whether the text ends inside a known value."""
        return any(_begins_at_end(text, value) for value in self._values)

    def clean_new(self, text: str) -> str:
        """The same, for a text that comes once only: nothing of it is kept."""
        text = _marked(text, without_blocks(text))
        text = "".join(_marked(piece, without_words(piece)) for piece in _pieces(text))
        known = self._known
        return text if known is None else REMOVED.join(known.sub(REMOVED, part) for part in text.split(REMOVED))


def _marked(text: str, redacted: str) -> str:
    return text if redacted == text else redacted.replace(REDACTED, REMOVED)


def _is_word(text: str) -> bool:
    """Whether there is neither a blank in it nor a character that may stand between words."""
    return text.isascii() and text.isprintable() and text != "" and " " not in text


def _begins_at_end(text: str, value: str) -> bool:
    """Whether the text ends with a beginning of the value; all of it does not count."""
    at = text.find(value[0], max(0, len(text) - len(value) + 1))
    while at >= 0:
        if value.startswith(text[at:]):
            return True
        at = text.find(value[0], at + 1)
    return False


def _pieces(text: str) -> Iterator[str]:
    """Cut a long text where that changes nothing of what is found in it."""
    start = 0
    while len(text) - start > _PIECE:
        end = _cut_behind(text, start + _PIECE)
        yield text[start:end]
        start = end
    yield text[start:]


def _cut_behind(text: str, place: int) -> int:
    for between, far in _CUTS:
        for found in islice(between.finditer(text, place, place + far), _MOST_CUTS):
            cut = found.start()
            before, after = text[cut - _NEAR : cut], text[cut : cut + _NEAR]
            if without_words(before) + without_words(after) == without_words(before + after):
                return cut
    return min(len(text), place + _LONGEST_UNCUT)
