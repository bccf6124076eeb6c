"""Which Redis server a history uses, and where its password comes from. It connects to nothing."""

import os
from importlib.util import find_spec
from typing import Annotated, Final, Self
from urllib.parse import parse_qsl, urlsplit

from pydantic import Field, field_validator, model_validator

from providers.api.history import HistoryError
from providers.api.provider import ProviderConfig

NEEDS_EXTRA: Final = "redis_history needs the extra 'redis' (pip install 'agent-sidecar[redis]')"

_SCHEMES: Final = ("redis", "rediss", "unix")
_OPTIONS: Final = frozenset(
    {"db", "ssl_ca_certs", "ssl_cert_reqs", "ssl_certfile", "ssl_check_hostname", "ssl_keyfile"}
)
"""Of a URL's query. Others would change how the client answers, or be a password."""

Variable = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]
"""The name of an environment variable."""


class RedisServerConfig(ProviderConfig):
    """A server by its URL. A password stands in the environment, never here."""

    url: str | None = None
    """`redis://HOST:PORT/DB`, `rediss://…` (TLS) or `unix:///path?db=0`, without a password."""
    password_env: Variable | None = None
    """The environment variable that holds the password for `url`."""
    url_env: Variable | None = None
    """Instead of `url`: the environment variable that holds the whole URL, with its password."""

    @field_validator("url")
    @classmethod
    def _names_a_server(cls, url: str | None) -> str | None:
        if url is not None and _checked(url):
            raise ValueError("a password does not belong here: name its environment variable in password_env")
        return url

    @model_validator(mode="after")
    def _one_server(self) -> Self:
        if (self.url is None) == (self.url_env is None):
            raise ValueError("give either url or url_env")
        if self.password_env is not None and self.url is None:
            raise ValueError("password_env goes with url; the URL in url_env has its own password")
        if find_spec("redis") is None:
            raise ValueError(NEEDS_EXTRA)
        return self

    @property
    def named(self) -> str:
        """What the server is called in messages: no secret."""
        return f"the Redis server {self.url}" if self.url is not None else f"the Redis server in {self.url_env}"

    def address(self) -> tuple[str, str | None]:
        """The URL, and a password that it does not hold. Both are secrets.

        Raises:
            HistoryError: a variable is not set, or holds no URL.
        """
        password = _value(self.password_env) if self.password_env is not None else None
        if self.url is not None:
            return self.url, password
        url = _value(str(self.url_env))
        try:
            _checked(url)
        except ValueError as error:
            raise HistoryError(f"the environment variable {self.url_env}: {error}") from None
        return url, None


def _value(variable: str) -> str:
    value = os.environ.get(variable, "").strip()
    if not value:
        raise HistoryError(f"the environment variable {variable} is not set")
    return value


def _checked(url: str) -> bool:
    """Whether a server's URL holds a password.

    Raises:
        ValueError: it is no such URL; the text repeats nothing of it but an option's name.
    """
    try:
        parts = urlsplit(url)
        has_port = parts.port is None or parts.port > 0
    except ValueError:
        has_port, parts = False, urlsplit("")
    has_place = bool(parts.path.strip("/")) if parts.scheme == "unix" else bool(parts.hostname)
    if parts.scheme not in _SCHEMES or not has_port or not has_place or not url.isprintable() or " " in url:
        raise ValueError("it must be redis://HOST:PORT/DB, rediss://HOST:PORT/DB or unix:///PATH?db=DB")
    if parts.scheme != "unix" and not (parts.path.strip("/") or "0").isdecimal():
        raise ValueError("the database, behind the port, must be a number")
    options = dict(parse_qsl(parts.query, keep_blank_values=True))
    if unknown := sorted(options.keys() - _OPTIONS):
        raise ValueError(f"a URL may have these options: {', '.join(sorted(_OPTIONS))}; not {unknown[0]!r}")
    if not options.get("db", "0").isdecimal():
        raise ValueError("the option db must be a number")
    return bool(parts.password)
