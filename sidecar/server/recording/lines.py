"""The lines of a recording: what is written of one message. Pure; `tests/transcripts/README.md` has the format.

Whatever is no message as JSON-RPC has it stands as the text that came. A message over `LONGEST` is shortened: `"<any>"`
stands in place of its long members, which a player takes for whatever comes; what a client said cannot be said again.
"""

import re
from collections.abc import Iterator
from typing import Any, Final, NamedTuple, cast

from pydantic_core import from_json

from protocol.base import Json, JsonObject
from sidecar.config.known_secrets import REMOVED, Secrets
from sidecar.transport.decode import DecodeError, decode, encode_json

from .removal import cleaned, from_client, to_client

LONGEST: Final = 1024 * 1024
"""Bytes of a message that are recorded as they are."""
LONGEST_TEXT: Final = 64 * 1024
"""Characters of what is no message."""
LONGEST_MEMBER: Final = 16 * 1024
"""Bytes of a member of a message that is shortened."""

ANY: Final = "<any>"

_ASCII_ESCAPE: Final = re.compile(r"\\u00([0-7][0-9a-fA-F])")
_MAY_HOLD_SECRETS: Final = re.compile(
    r"secret|kwargs|headers|\benv\b|token|passw|passphrase|pwd|api[_-]?key|auth|cookie|credential|://[^/\s@]{0,256}@",
    re.IGNORECASE,
)


class Line(NamedTuple):
    """One line: its kind, which is its key, and its value."""

    kind: str
    value: Any

    def encoded(self) -> bytes:
        """As it is written."""
        return encode_json({self.kind: self.value}) + b"\n"


def comment(text: str) -> Line:
    """A line for people."""
    return Line("#", text)


def client_lines(body: bytes, secrets: Secrets) -> Iterator[Line]:
    """What is written of a body that the client sent."""
    try:
        message = decode(body)
    except DecodeError:
        yield from _raw(body, secrets)
        return
    members = cast("JsonObject", message)
    if not isinstance(message, dict) or members.get("jsonrpc") != "2.0":
        yield from _cut(_text_of(message, secrets))
        return
    yield from _message("→", from_client(_bare(members), secrets), len(body), secrets)


def sidecar_lines(message: JsonObject, size: int, secrets: Secrets) -> Iterator[Line]:
    """What is written of a message that we sent in so many bytes."""
    yield from _message("←", to_client(message, secrets), size, secrets)


def sent(body: bytes) -> JsonObject:
    """A message of ours as a line has it, its secrets still in it."""
    return _bare(from_json(body))


def _bare(message: JsonObject) -> JsonObject:
    return {name: item for name, item in message.items() if name != "jsonrpc"}


def _message(kind: str, message: JsonObject, size: int, secrets: Secrets) -> Iterator[Line]:
    if size > LONGEST:
        yield comment(f"the next message had {size} bytes and is shortened")
        message = _shortened(message)
    yield Line(kind, cleaned(message, secrets))


def _shortened(message: JsonObject) -> JsonObject:
    """Its outline: members of params, of result and of error stay where they are short."""
    short = {name: _outline(item) for name, item in message.items()}
    return short if len(encode_json(short)) <= LONGEST else dict.fromkeys(message, ANY) | _identity(message)


def _outline(value: Json) -> Json:
    if isinstance(value, dict):
        return {name: item if _is_short(item) else ANY for name, item in cast("JsonObject", value).items()}
    return value if _is_short(value) else ANY


def _identity(message: JsonObject) -> JsonObject:
    return {name: message[name] for name in ("id", "method") if name in message and _is_short(message[name])}


def _is_short(value: Json) -> bool:
    return len(encode_json(value)) <= LONGEST_MEMBER


def _text_of(value: Json, secrets: Secrets) -> str:
    """JSON that is no message, without secrets; a text that will be cut is not cleaned behind the cut."""
    shown = _each_shown(value, secrets)
    text = encode_json(shown).decode()
    return secrets.clean(text[:LONGEST]) if len(text) > LONGEST else encode_json(secrets.clean_json(shown)).decode()


def _each_shown(value: Json, secrets: Secrets) -> Json:
    """What is no message may hold some, as a batch does."""
    if isinstance(value, list):
        return [_each_shown(item, secrets) for item in cast("list[Json]", value)]
    return from_client(cast("JsonObject", value), secrets) if isinstance(value, dict) else value


def _raw(body: bytes, secrets: Secrets) -> Iterator[Line]:
    """Text that nobody can read as JSON: where a secret may begin in it, it ends."""
    text = body[: 4 * LONGEST_TEXT].decode(errors="replace")
    if len(body) > 4 * LONGEST_TEXT:
        text = text.rstrip("\ufffd")
    if "\ufffd" in text:
        yield comment("the next message was not UTF-8")
    plain = _ASCII_ESCAPE.sub(lambda found: chr(int(found[1], 16)), text)
    if (found := _MAY_HOLD_SECRETS.search(plain)) is not None:
        text = f"{secrets.clean(plain[: found.end()])}{REMOVED}"
        yield comment("the next message is no JSON, and is cut where a secret may stand")
    elif (clean := secrets.clean(plain)) != plain:
        text = clean
    yield from _cut(text, len(body))


def _cut(text: str, size: int = 0) -> Iterator[Line]:
    if len(text) > LONGEST_TEXT or size > 4 * LONGEST_TEXT:
        yield comment(f"the next message had {size or len(text)} bytes and is cut")
    yield Line("→", text[:LONGEST_TEXT])
