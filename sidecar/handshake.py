"""Answers a plain `initialize` before the rest of the program is imported. Standard library only; no event loop.

Everything that is not plain is left unread for the server, which builds its answer with the same
`initialize_result`.
"""

import json
import os
import select
import stat
import sys
from _thread import start_new_thread
from collections.abc import Callable
from contextlib import suppress
from math import isfinite
from typing import Any, Final, Literal, NamedTuple, cast

from protocol.features import FEATURES, LIMITS
from protocol.version import PROTOCOL_VERSION, VERSION
from sidecar.transport.framing import Framing, encode

JsonObject = dict[str, Any]

_HERE: Final = os.path.dirname(os.path.abspath(__file__))
_CAPABILITIES: Final = os.path.join(_HERE, "lsp", "capabilities.json")
_SCHEMA_HASH: Final = os.path.join(os.path.dirname(_HERE), "protocol", "schema.sha256")
_POSITION_ENCODINGS: Final = ("utf-8", "utf-16", "utf-32")

_FIRST_BYTE_MS: Final = 30
_READ_BYTES: Final = 64 * 1024
_MAX_BYTES: Final = 1024 * 1024
_MAX_DEPTH: Final = 200
_INT64: Final = range(-(2**63), 2**63)

_NULL: Final = type(None)
_REQUEST: Final = {
    "id": (_INT64, str),
    "params": (
        _NULL,
        {
            "processId": (_INT64, _NULL),
            "rootUri": (str, _NULL),
            "workspaceFolders": ([dict], _NULL),
            "capabilities": {"general": {"positionEncodings": ([str], _NULL)}},
            "initializationOptions": (
                _NULL,
                {
                    "sidecar": {
                        "protocolVersions": [_INT64],
                        "clientId": (str, _NULL),
                        "secrets": ({"*": str}, _NULL),
                        "features": dict,
                        "optOutEvents": ([str], _NULL),
                        "maxMessageBytes": (range(65_536, 2**63), _NULL),
                        "config": _NULL,
                    }
                },
            ),
        },
    ),
}
"""The members that the server reads, and their types where a request is plain."""


class Answered(NamedTuple):
    """The `initialize` request that was answered here."""

    request_id: int | str
    params: JsonObject


class Inherited(NamedTuple):
    """What the server takes over."""

    inbound: int
    outbound: int
    instance_id: str
    framing: Framing | None = None
    """The client's framing, where a message was answered."""
    unread: bytes = b""
    """Bytes that were read and are still to be parsed."""
    answered: Answered | None = None


def initialize_result(params: JsonObject, instance_id: str, limits: dict[str, int] = LIMITS) -> JsonObject:
    """The answer to `initialize`: LSP's, with our block under `capabilities.experimental.sidecar`."""
    with open(_CAPABILITIES, encoding="utf-8") as file:
        capabilities: JsonObject = json.load(file)
    capabilities["positionEncoding"] = _position_encoding(params)
    if not isinstance(_member(params, "capabilities", "textDocument", "codeAction", "codeActionLiteralSupport"), dict):
        capabilities["codeActionProvider"] = True  # LSP: such a client takes no options here
    capabilities["experimental"] = {
        "sidecar": {
            "protocolVersion": PROTOCOL_VERSION,
            "instanceId": instance_id,
            "features": FEATURES,
            "limits": limits,
            "schemaHash": _schema_hash(),
            "commands": capabilities["executeCommandProvider"]["commands"],
        }
    }
    return {"capabilities": capabilities, "serverInfo": {"name": "agent-sidecar", "version": VERSION}}


def greet(
    inbound: int,
    outbound: int,
    framing: Literal["auto", "header", "ndjson"],
    config: str | None,
    load: Callable[[], object],
) -> Inherited:
    """Wait for the first message; answer it at once if it is a plain `initialize`.

    If nothing comes at first, `load` (which imports the server) runs in a thread meanwhile. The wait ends when
    a message was answered, when it is one for the server, or when the server is loaded. Where a file may set limits
    (`config` is the one of `--config`), nothing is read: the answer would tell of the wrong ones.
    """
    inherited = Inherited(inbound, outbound, os.urandom(8).hex())
    if sys.platform == "win32" or may_set_limits(config):  # no poll there
        return inherited
    loaded: int | None = None
    unread = b""
    try:
        while (ready := _wait(inbound, loaded)) != loaded or loaded is None:
            if ready is None:
                loaded = _load_in_thread(load)
                continue
            data = os.read(inbound, _READ_BYTES)
            unread += data
            message = _cut(unread, framing)
            if message is not None:
                answered = _plain_initialize(message.body)
                _answer(inherited, answered, message.framing)
                return inherited._replace(framing=message.framing, unread=unread[message.end :], answered=answered)
            if not data or len(unread) > _MAX_BYTES:
                break
    except (ValueError, RecursionError, OSError):  # it is for the server to say what is wrong
        pass
    finally:
        if loaded is not None:
            os.close(loaded)
    return inherited._replace(unread=unread)


def may_set_limits(config: str | None) -> bool:
    """Whether the word stands in a file that configures the connection. Where it means nothing, only time is lost."""
    return any(_mentions(path, b"limits") for path in (config, *user_config_files()) if path is not None)


def user_config_files() -> list[str]:
    """Where the user's own configuration may be. `platformdirs` knows exactly, and takes longer than all of this."""
    folders = (os.environ.get("XDG_CONFIG_HOME", ""), "~/.config", "~/Library/Application Support")
    return [os.path.expanduser(f"{folder}/agent-sidecar/sidecar.toml") for folder in folders if folder]


def _mentions(path: str, word: bytes) -> bool:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    except OSError:  # it is for the server to say what is wrong
        return False
    try:
        return stat.S_ISREG(os.fstat(descriptor).st_mode) and word in os.read(descriptor, _MAX_BYTES)
    except OSError:
        return False
    finally:
        os.close(descriptor)


class _Message(NamedTuple):
    framing: Framing
    body: bytes
    end: int
    """Where the next message begins."""


def _cut(unread: bytes, framing: Literal["auto", "header", "ndjson"]) -> _Message | None:
    """The first message, where it is whole and its frame is of the usual form; None where more is to come.

    Raises:
        ValueError: the frame is not of the usual form.
    """
    start = len(unread) - len(unread.lstrip())
    if start == len(unread):
        return None
    if framing == "ndjson" or (framing == "auto" and unread[start] in b"{["):
        end = unread.find(b"\n", start)
        return _Message("ndjson", unread[start:end], end + 1) if end >= 0 else None
    header, blank_line, _ = unread[start:].partition(b"\r\n\r\n")
    if not blank_line:
        return None
    lengths: list[int] = []
    for line in header.split(b"\r\n"):
        name, _, value = line.partition(b":")
        if name.lower() == b"content-length" and value.strip().isdigit():
            lengths.append(int(value))
        elif name.lower() != b"content-type":
            raise ValueError("an unusual header")
    (length,) = lengths
    begin = start + len(header) + len(blank_line)
    end = begin + length
    return _Message("header", unread[begin:end], end) if len(unread) >= end > begin else None


def _plain_initialize(body: bytes) -> Answered:
    """Read an `initialize` request that the server would answer with the same result.

    Raises:
        ValueError: it is something else.
    """
    message = json.loads(body.decode())
    if not (_is_plain(message, 1) and _fits(message, _REQUEST)):
        raise ValueError("not plain")
    params: JsonObject = message.get("params") or {}
    versions = _member(params, "initializationOptions", "sidecar", "protocolVersions")
    envelope_is_right = message.get("jsonrpc") == "2.0" and message.get("method") == "initialize" and "id" in message
    if not envelope_is_right or (versions is not None and PROTOCOL_VERSION not in versions):
        raise ValueError("not ours to answer")
    return Answered(message["id"], params)


def _is_plain(value: object, depth: int) -> bool:
    """Whether the server would take the value as it is: no number out of range, no text to repair, not too deep."""
    if isinstance(value, str):
        return not any(char == "\0" or "\ud800" <= char <= "\udfff" for char in value)
    if isinstance(value, float):
        return isfinite(value)
    if isinstance(value, int):
        return value in _INT64
    if isinstance(value, dict):
        members = cast("JsonObject", value)
        return depth <= _MAX_DEPTH and all(_is_plain(k, depth) and _is_plain(v, depth + 1) for k, v in members.items())
    if isinstance(value, list):
        return depth <= _MAX_DEPTH and all(_is_plain(item, depth + 1) for item in cast("list[object]", value))
    return True


def _fits(value: object, shape: object) -> bool:
    """Whether a value has the type that the server will ask for. Members that no shape names may be anything."""
    if isinstance(shape, tuple):
        return any(_fits(value, choice) for choice in cast("tuple[object, ...]", shape))
    if isinstance(shape, range):
        return type(value) is int and value in shape
    if isinstance(shape, dict):
        known = cast("JsonObject", shape)
        return isinstance(value, dict) and all(
            _fits(item, known.get(key, known.get("*"))) for key, item in cast("JsonObject", value).items()
        )
    if isinstance(shape, list):
        (inner,) = cast("list[object]", shape)
        return isinstance(value, list) and all(_fits(item, inner) for item in cast("list[object]", value))
    return shape is None or (isinstance(shape, type) and type(value) is shape)


def _answer(inherited: Inherited, answered: Answered, framing: Framing) -> None:
    result = initialize_result(answered.params, inherited.instance_id)
    response = {"jsonrpc": "2.0", "id": answered.request_id, "result": result}
    data = encode(json.dumps(response, ensure_ascii=False, separators=(",", ":")).encode(), framing)
    while data:
        try:
            data = data[os.write(inherited.outbound, data) :]
        except BlockingIOError:  # the client made its end non-blocking, and ours is the same description
            select.select((), (inherited.outbound,), ())


def _wait(inbound: int, loaded: int | None) -> int | None:
    """Wait for input or for the end of loading; before that began, only for a moment, and then return None."""
    poll = select.poll()
    poll.register(inbound, select.POLLIN)
    if loaded is not None:
        poll.register(loaded, 0)
    ready = poll.poll(_FIRST_BYTE_MS if loaded is None else None)
    return min((fd for fd, _ in ready), key=lambda fd: fd != inbound, default=None)


def _load_in_thread(load: Callable[[], object]) -> int:
    """Run `load` in a thread; the descriptor returned hangs up when it is done."""
    loaded, loading = os.pipe()

    def run() -> None:
        try:
            with suppress(BaseException):  # the main thread imports the same, and meets the same error
                load()
        finally:
            os.close(loading)

    start_new_thread(run, ())
    return loaded


def _position_encoding(params: JsonObject) -> str:
    """As pygls: the first of the client's encodings that we know, else UTF-16."""
    offered = _member(params, "capabilities", "general", "positionEncodings")
    if not isinstance(offered, list):
        return "utf-16"
    return next((str(item) for item in cast("list[object]", offered) if item in _POSITION_ENCODINGS), "utf-16")


def _member(value: Any, *names: str) -> Any:
    for name in names:
        value = cast("JsonObject", value).get(name) if isinstance(value, dict) else None
    return value


def _schema_hash() -> str:
    try:
        with open(_SCHEMA_HASH, encoding="utf-8") as file:
            return file.read().strip()
    except FileNotFoundError:
        return ""
