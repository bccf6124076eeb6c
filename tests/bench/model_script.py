"""The vocabulary in which a test scripts the fake model: pieces of one answer. Values only; `fake_model` plays them."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class T:
    """A chunk of answer text."""

    text: str


@dataclass(frozen=True)
class Think:
    """A chunk of reasoning."""

    text: str
    key: str = "reasoning_content"


@dataclass(frozen=True)
class TC:
    """A chunk with one tool call fragment; a field that is `None` is left out."""

    index: int | None
    id: str | None
    name: str | None
    arguments: Any = None


@dataclass(frozen=True)
class F:
    """A chunk with an empty delta and a finish reason. `DONE` follows, unless another ending is named."""

    reason: str = "stop"


@dataclass(frozen=True)
class Chunk:
    """A whole chunk, as given."""

    body: Any


@dataclass(frozen=True)
class Raw:
    """Bytes, as given."""

    data: bytes


@dataclass(frozen=True)
class Stall:
    """Nothing for so many seconds; for ever (until the client goes, or the fake stops) by default."""

    seconds: float | None = None


@dataclass(frozen=True)
class Ping:
    """SSE comments, one each `every` seconds; for ever if `times` is `None`."""

    every: float
    times: int | None = None


@dataclass(frozen=True)
class _Ending:
    name: str

    def __repr__(self) -> str:
        return self.name


DONE = _Ending("DONE")
"""`data: [DONE]`, then the body ends cleanly."""
EOF = _Ending("EOF")
"""The body ends cleanly."""
CLOSE = _Ending("CLOSE")
"""The connection is closed in mid-body."""
CUT = _Ending("CUT")
"""TCP reset."""

Piece = T | Think | TC | F | Chunk | Raw | Stall | Ping | _Ending
Item = Piece | str


@dataclass(frozen=True)
class Reply:
    """One HTTP answer."""

    pieces: Iterable[Piece] = ()
    """Streamed after the head; taken one by one, each when its time has come."""
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    before_head: Sequence[Piece] = ()
    """Played before anything is written: a stall here means that headers never come."""
    cut_every: int | None = None
    """Write the body in pieces of so many bytes."""


def answer(*items: Item) -> list[Piece]:
    """The pieces of a streamed answer, with the ending that was left out."""
    pieces: list[Piece] = [T(item) if isinstance(item, str) else item for item in items]
    endless = any(isinstance(piece, Stall | Ping) and _for_ever(piece) for piece in pieces)
    if endless or any(isinstance(piece, _Ending) for piece in pieces):
        return pieces
    if not any(isinstance(piece, F | Raw) for piece in pieces):
        pieces.append(F("tool_calls" if any(isinstance(piece, TC) for piece in pieces) else "stop"))
    if any(isinstance(piece, F) for piece in pieces):
        pieces.append(DONE)
    return pieces


def _for_ever(piece: Stall | Ping) -> bool:
    return (piece.seconds if isinstance(piece, Stall) else piece.times) is None


def encode(piece: Piece) -> bytes:
    """What a piece looks like on the wire; nothing for stalls and endings other than `DONE`."""
    match piece:
        case T(text):
            return _chunk({"content": text})
        case Think(text, key):
            return _chunk({key: text})
        case TC():
            return _chunk({"tool_calls": [_fragment(piece)]})
        case F(reason):
            return _chunk({}, reason)
        case Chunk(body):
            return event(_json(body))
        case Raw(data):
            return data
        case _:
            return event("[DONE]") if piece is DONE else b""


def event(data: str) -> bytes:
    """One server-sent event."""
    return f"data: {data}\n\n".encode()


def _chunk(delta: dict[str, Any], finish: str | None = None) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    body = {"id": "chatcmpl-fake", "object": "chat.completion.chunk", "model": "fake", "choices": [choice]}
    return event(_json(body))


def _json(body: Any) -> str:
    """Raw UTF-8, as most servers send; half a surrogate pair can only be sent escaped."""
    text = json.dumps(body, ensure_ascii=False)
    try:
        text.encode()
    except UnicodeEncodeError:
        return json.dumps(body)
    return text


def _fragment(piece: TC) -> dict[str, Any]:
    function = {"name": piece.name, "arguments": piece.arguments}
    fields = {
        "index": piece.index,
        "id": piece.id,
        "type": "function" if piece.id is not None else None,
        "function": {name: value for name, value in function.items() if value is not None},
    }
    return {name: value for name, value in fields.items() if value is not None}
