"""Keeps a secret out of a recording that comes in pieces: a delta waits until it is plain that none goes on in it.

A word is whole when a blank follows, so a delta waits for the next one of its message, mostly. Lines keep their order:
those behind a delta wait with it. A secret that was found stands as `<secret>` in the first of its deltas.
"""

import re
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final, cast

from protocol.base import JsonObject
from sidecar.config.known_secrets import REMOVED, Secrets

from .lines import Line

MOST_LINES: Final = 512
"""Lines that wait at the same time; with more, none waits any longer."""
LONGEST_WORD: Final = 16 * 1024
"""Characters without a blank that are waited for; more are, while a known secret may go on in them."""

_CONTEXT: Final = 128
"""Characters before a word that say what it is: a name and its colon. Blanks count once."""
_BLANKS: Final = re.compile(r"\s{2,}")
_FAR_CONTEXT: Final = 4096
_LONGEST_BLOCK: Final = 8192

_DELTAS: Final = {"message.delta": "messageId", "reasoning.delta": "messageId", "tool.delta": "callId"}
"""Event type → what its text belongs to."""
_PROGRESS: Final = "$/progress"
_ENDS: Final = frozenset({"message.completed", "reasoning.completed", "tool.completed", "run.completed"})

_StreamId = tuple[Any, ...]


@dataclass(slots=True)
class _Waiting:
    """A line that cannot be written yet, or is behind one that cannot."""

    line: Line
    is_ready: bool = True


@dataclass(slots=True)
class _Stream:
    """What is known of one text that comes in pieces."""

    context: str = ""
    """The end of what was settled, as it came."""
    open: list[tuple[_Waiting, JsonObject, str]] = field(default_factory=list[tuple[_Waiting, JsonObject, str]])
    """Line, holder of the text, and the text as it came."""


class Deltas:
    """The lines of one connection on their way into its recording."""

    def __init__(self, secrets: Secrets) -> None:
        self._secrets = secrets
        self._lines: deque[_Waiting] = deque()
        self._streams: dict[_StreamId, _Stream] = {}

    def __len__(self) -> int:
        """How many lines wait."""
        return len(self._lines)

    def take(self, line: Line, came: JsonObject | None = None) -> Iterator[Line]:
        """Take the next line in.

        Args:
            line: The line, without secrets; it is what is given back, its text changed where more was found.
            came: The message that it is for, as it was sent; None where it is none of ours.

        Yields:
            The lines that can be written now, in order.
        """
        waiting = _Waiting(line)
        self._lines.append(waiting)
        if came is not None:
            text = _delta_text(came)
            if isinstance(text, str):
                self._add(waiting, _stream_id(came), _delta_data(line.value), text)
            elif _type(came) in _ENDS:
                self._end(came["params"])
        if len(self._lines) > MOST_LINES:
            self._settle_all()
        yield from self._ready()

    def rest(self) -> Iterator[Line]:
        """What still waits: nothing more comes."""
        self._settle_all()
        yield from self._ready()

    def _ready(self) -> Iterator[Line]:
        while self._lines and self._lines[0].is_ready:
            yield self._lines.popleft().line

    def _add(self, line: _Waiting, stream_id: _StreamId, holder: JsonObject, text: str) -> None:
        stream = self._streams.setdefault(stream_id, _Stream())
        if text and not "!" <= text[0] <= "~" and not self._secrets.is_begun(_joined(stream) + text[0]):
            self._settle(stream)
        line.is_ready = False
        stream.open.append((line, holder, text))
        whole = _joined(stream)
        is_long = len(whole) - len(stream.context) > LONGEST_WORD
        if not (self._secrets.is_known_begun(whole) if is_long else self._secrets.is_begun(whole)):
            self._settle(stream)

    def _settle(self, stream: _Stream) -> None:
        """Look at the word that has come, with what stands before it."""
        whole = _joined(stream)
        came = whole[len(stream.context) :]
        now = self._secrets.clean_new(whole)
        before = stream.context if now == whole else self._secrets.clean_new(stream.context)
        if now != before + came:
            shown = now.removeprefix(before) if now.startswith(before) else REMOVED
            for line, holder, _ in stream.open:
                holder["text"], shown, line.is_ready = shown, "", True
        else:
            for line, holder, text in stream.open:
                holder["text"], line.is_ready = text, True
        stream.open.clear()
        stream.context = _end_of(whole)

    def _settle_all(self) -> None:
        for stream in self._streams.values():
            self._settle(stream)

    def _end(self, params: JsonObject) -> None:
        """Nothing more comes for what the event completes; with a run, for all of it."""
        whole_run = params["type"] == "run.completed"
        data: JsonObject = params["data"]
        ids = (data.get("messageId"), data.get("callId"))
        ended = [
            key
            for key in self._streams
            if (whole_run and key[1] in (params.get("runId"), None))
            or (key[0] == params.get("sessionId") and key[3] in ids and key[3] is not None)
        ]
        for key in ended:
            self._settle(self._streams.pop(key))


def _joined(stream: _Stream) -> str:
    return stream.context + "".join(text for _, _, text in stream.open)


def _end_of(text: str) -> str:
    """As much as the next word can depend on: of a key in a block, all of it."""
    start = text.rfind("-----BEGIN")
    if start >= 0 and "-----END" not in text[start:] and len(text) - start < _LONGEST_BLOCK:
        return text[start:]
    return _BLANKS.sub(" ", text[-_FAR_CONTEXT:])[-_CONTEXT:]


def _type(message: JsonObject) -> str | None:
    return message["params"]["type"] if message.get("method") == "run/event" else None


def _stream_id(delta: JsonObject) -> _StreamId:
    event, data = delta["params"], _delta_data(delta)
    if delta["method"] == _PROGRESS:
        return None, None, _PROGRESS, event.get("token"), None
    owner = data.get(_DELTAS[event["type"]])
    return event["sessionId"], event.get("runId"), event["type"], owner, data.get("contentIndex")


def _delta_text(message: JsonObject) -> object:
    """The text of a delta; something else in what is none."""
    is_delta = message.get("method") == _PROGRESS or _type(message) in _DELTAS
    return _delta_data(message).get("text") if is_delta else None


def _delta_data(delta: JsonObject) -> JsonObject:
    """The object whose `text` comes in pieces."""
    data = delta["params"].get("value" if delta["method"] == _PROGRESS else "data")
    return cast("JsonObject", data) if isinstance(data, dict) else {}
