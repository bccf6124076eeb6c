"""The secret values that a process knows, and texts without them. It keeps values in memory only, and writes nothing.

What is no known value is found by its form (`providers/secret_patterns.py`): that keeps accidents out of a file, and is
no promise about a secret that looks like a word.
"""

import json
import re
import threading
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Final, cast
from urllib.parse import parse_qsl, quote, urlsplit

from protocol.base import Json, JsonObject
from providers.secret_patterns import REDACTED, redacted

from .model import Config

REMOVED: Final = "<secret>"
"""Stands where a secret was."""

SHORTEST: Final = 4
"""A shorter value is not looked for in other texts: it would be found in half of them."""
SHORTEST_GUESSED: Final = 8
"""The same for values that are taken for secrets because of their names alone."""

_NAME: Final = re.compile(
    r"(?:api_?key|access_?key|private_?key|token|(?<!api_key_)(?<!apikey)secret|passw(?:or)?d|passphrase|authorization)$",
    re.IGNORECASE,
)
"""`api_key_secret` is the name of a secret, no secret."""
_VARIABLE: Final = re.compile(r"(?:^|_)(?:KEY|TOKEN|SECRET|PASSWORD|PASSPHRASE|CREDENTIALS?)$", re.IGNORECASE)

_PIECE: Final = 4096
_NEAR: Final = 256
_BLOCK: Final = "PRIVATE KEY-----"
_SHORT_TEXT: Final = 64
"""Ids, names and types are that short, and come again."""


def is_secret_name(name: str) -> bool:
    """Whether a member of a configuration that is called so holds a secret."""
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
    """User and password of a URL, and the values of its query."""
    try:
        parts = urlsplit(url)
        yield parts.password or ""
        yield parts.username if parts.username and len(parts.username) >= SHORTEST_GUESSED else ""
        yield from (value for _, value in parse_qsl(parts.query) if len(value) >= SHORTEST_GUESSED)
    except ValueError:  # no URL
        return


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
        new |= {value.split()[-1] for value in new if len(value.split()) > 1 and len(value.split()[-1]) >= 8}
        with self._lock:
            if not (new := {value for value in new if len(value) >= SHORTEST} - self._values):
                return
            self._values |= new
            forms = {form for value in self._values for form in (value, json.dumps(value)[1:-1], quote(value, safe=""))}
            self._known = re.compile("|".join(map(re.escape, sorted(forms, key=len, reverse=True))))
            self._with_blanks = tuple(value for value in self._values if not value.isascii() or " " in value)
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
        if text and "!" <= text[-1] <= "~":
            return True
        return any(text.endswith(value[:size]) for value in self._with_blanks for size in range(1, len(value)))

    def clean_new(self, text: str) -> str:
        """The same, for a text that comes once only: nothing of it is kept."""
        if len(text) <= _PIECE:
            text = _without_forms(text)
        else:
            text = "".join(_without_forms(piece) for piece in _pieces(text))
        known = self._known
        return text if known is None else REMOVED.join(known.sub(REMOVED, part) for part in text.split(REMOVED))


def _without_forms(text: str) -> str:
    clean = redacted(text)
    return text if clean == text else clean.replace(REDACTED, REMOVED)


def _pieces(text: str) -> Iterator[str]:
    """Cut a long text between words that are no secret's: matching holds Python's lock, so it goes in small steps."""
    if _BLOCK in text:
        yield text
        return
    while len(text) > _PIECE:
        cut = _quiet_cut(text)
        yield text[:cut]
        text = text[cut:]
    yield text


def _quiet_cut(text: str) -> int:
    end = _PIECE
    while end > _PIECE // 2:
        blank = max(text.rfind(blank, end // 2, end) for blank in " \n,")
        cut = blank if blank > 0 else end
        around = text[cut - _NEAR : cut + _NEAR]
        if redacted(around) == around:
            return cut
        end = cut - 2 * _NEAR
    return _PIECE
