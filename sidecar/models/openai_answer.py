"""What reading an answer is at both of OpenAI's APIs; what their events mean is the subclasses'. No I/O, no HTTP.

An answer counts only with an ending of its own: a body that stops before it is a `ModelBadStream`, however cleanly the
connection was closed. A server that answers a stream request with one JSON document is read as well.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from typing import Any, Generic, Protocol, TypeVar, cast

from protocol.messages import FunctionCallBlock, Usage
from providers.api.ports import CallRequested, ChatUpdate, Finished, FinishReason, TextDelta

from .answer_text import TextJoiner
from .openai_body import BodyReader


class Calls(Protocol):
    """The calls of one answer."""

    def __bool__(self) -> bool:
        """Whether there is one."""
        ...

    def finish(self) -> list[FunctionCallBlock]:
        """The calls, whole.

        Raises:
            ValueError: a call is not whole.
        """
        ...


_Calls = TypeVar("_Calls", bound=Calls)


class AnswerReader(ABC, Generic[_Calls]):
    """One answer. Feed it the body's bytes as they come; what it returns does not depend on where they were cut."""

    def __init__(self, endpoint: str, calls: _Calls) -> None:
        self._endpoint = endpoint
        self._body = BodyReader(endpoint)
        self._calls = calls
        self._joiner = TextJoiner()
        self._reason: FinishReason | None = None
        self._refused = False
        self._usage: Usage | None = None
        self._model: str | None = None

    @property
    def done(self) -> bool:
        """Nothing that still comes counts."""
        return self._body.done

    @property
    def has_ended(self) -> bool:
        """The answer's ending was read; at most the usage is missing."""
        return self._reason is not None

    @property
    def is_alive(self) -> bool:
        """Whether the last bytes were a sign of life; comments are none."""
        return self._body.is_alive

    def feed(self, piece: bytes) -> Iterator[ChatUpdate]:
        """The updates that these bytes complete.

        Raises:
            ModelError: the bytes hold an error of the endpoint, or are no answer (`ModelBadStream`); updates before it
                in the same bytes come first.
        """
        for value in self._body.feed(piece):
            yield from self._take_event(self._object(value))

    def finish(self) -> Iterator[ChatUpdate]:
        """The updates that are left when the body has ended; the last one is `Finished`.

        Raises:
            ModelError: as `feed`; `ModelBadStream` where the answer is not complete.
        """
        take = self._take_document if self._body.is_document else self._take_event
        for value in self._body.finish():
            yield from take(self._object(value))
        if self._reason is None:
            raise self._body.incomplete()
        if rest := self._joiner.finish():
            yield TextDelta(rest)
        reason = "refusal" if self._refused and self._reason == "stop" else self._reason
        if reason != "contentFilter":  # a filtered answer's calls are not known to be whole
            yield from self._finished_calls()
            reason = "toolCalls" if self._calls and reason == "stop" else reason
        yield Finished(reason, self._usage, self._model, self._kept_conversation())

    @abstractmethod
    def _take_event(self, event: dict[str, Any]) -> Iterable[ChatUpdate]:
        """The updates of one event of the stream."""

    @abstractmethod
    def _take_document(self, document: dict[str, Any]) -> Iterable[ChatUpdate]:
        """The updates of an answer that came in one piece."""

    def _kept_conversation(self) -> str | None:
        """The id by which the service goes on from this answer."""
        return None

    def _finished_calls(self) -> list[ChatUpdate]:
        if self._reason == "toolCalls" and not self._calls:
            raise self._body.bad("the answer announces tool calls and holds none")
        try:
            return [CallRequested(call) for call in self._calls.finish()]
        except ValueError as error:
            raise self._body.bad(str(error)) from None

    def _object(self, value: Any) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise self._body.bad("a part of the stream is no object")
        return cast(dict[str, Any], value)
