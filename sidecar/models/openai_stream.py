"""Reads the body of a chat completion, streamed or whole, into updates. It does no I/O and knows no HTTP.

An answer counts only with a finish reason: a body that ends without one is a `ModelBadStream`, however cleanly the
connection was closed. A server that answers a stream request with one JSON document is read as well.
"""

from collections.abc import Collection, Iterator
from typing import Any, Final, cast

from protocol.messages import Usage
from providers.api.clean_text import clean_text
from providers.api.ports import CallRequested, ChatUpdate, Finished, FinishReason, ReasoningDelta, TextDelta

from .answer_text import TextJoiner
from .call_assembly import CallAssembly
from .openai_body import BodyReader
from .openai_errors import error_in_stream
from .openai_usage import read_usage

_REASONS: Final[dict[str, FinishReason]] = {
    "stop": "stop",
    "length": "length",
    "max_tokens": "length",
    "tool_calls": "toolCalls",
    "function_call": "toolCalls",
    "content_filter": "contentFilter",
    "refusal": "refusal",
}
"""Endpoints invent others for a plain end."""


class AnswerReader:
    """One answer. Feed it the body's bytes as they come; what it returns does not depend on where they were cut."""

    def __init__(self, endpoint: str, taken_call_ids: Collection[str] = ()) -> None:
        self._endpoint = endpoint
        self._body = BodyReader(endpoint)
        self._calls = CallAssembly(taken_call_ids)
        self._joiner = TextJoiner()
        self._reason: FinishReason | None = None
        self._refused = False
        self._usage: Usage | None = None
        self._model: str | None = None

    @property
    def done(self) -> bool:
        """`[DONE]` was read: nothing after it counts."""
        return self._body.done

    @property
    def has_ended(self) -> bool:
        """A finish reason was read; at most the usage is missing."""
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
        for chunk in self._body.feed(piece):
            yield from self._take(chunk, "delta")

    def finish(self) -> Iterator[ChatUpdate]:
        """The updates that are left when the body has ended; the last one is `Finished`.

        Raises:
            ModelError: as `feed`; `ModelBadStream` where the answer is not complete.
        """
        part = "message" if self._body.is_document else "delta"
        for chunk in self._body.finish():
            yield from self._take(chunk, part)
        if self._reason is None:
            raise self._body.incomplete()
        if rest := self._joiner.finish():
            yield TextDelta(rest)
        reason = "refusal" if self._refused and self._reason == "stop" else self._reason
        if reason != "contentFilter":  # a filtered answer's calls are not known to be whole
            yield from self._finished_calls()
            reason = "toolCalls" if self._calls and reason == "stop" else reason
        yield Finished(reason, self._usage, self._model)

    def _finished_calls(self) -> list[ChatUpdate]:
        if self._reason == "toolCalls" and not self._calls:
            raise self._body.bad("the answer announces tool calls and holds none")
        try:
            return [CallRequested(call) for call in self._calls.finish()]
        except ValueError as error:
            raise self._body.bad(str(error)) from None

    def _take(self, chunk: Any, part: str) -> list[ChatUpdate]:
        if not isinstance(chunk, dict):
            raise self._body.bad("a part of the stream is no object")
        fields = cast(dict[str, Any], chunk)
        if fields.get("error") or fields.get("object") == "error":
            raise error_in_stream(fields.get("error") or fields, self._endpoint)
        if self._model is None and isinstance(model := fields.get("model"), str):
            self._model = clean_text(model)
        if fields.get("usage"):
            self._usage = read_usage(fields["usage"]) or self._usage
        updates: list[ChatUpdate] = []
        choices = fields.get("choices")
        if isinstance(choices, list):
            for choice in cast(list[Any], choices):
                if isinstance(choice, dict) and not cast(dict[str, Any], choice).get("index"):
                    self._take_choice(cast(dict[str, Any], choice), part, updates)
        return updates

    def _take_choice(self, choice: dict[str, Any], part: str, updates: list[ChatUpdate]) -> None:
        delta = choice.get(part)
        if isinstance(delta, dict):
            self._take_delta(cast(dict[str, Any], delta), updates)
        reason = choice.get("finish_reason")
        if isinstance(reason, str) and reason:
            self._reason = _REASONS.get(reason, "stop")

    def _take_delta(self, delta: dict[str, Any], updates: list[ChatUpdate]) -> None:
        reasoning = delta.get("reasoning_content") or delta.get("reasoning")
        if reasoning and isinstance(reasoning, str):
            updates.append(ReasoningDelta(clean_text(reasoning)))
        if (content := delta.get("content")) and (text := self._text(content)):
            updates.append(TextDelta(text))
        if (refusal := delta.get("refusal")) and (text := self._text(refusal)):
            self._refused = True
            updates.append(TextDelta(text))
        if calls := delta.get("tool_calls"):
            self._calls.add(calls)

    def _text(self, content: Any) -> str:
        """The text of a delta, or of a list of parts."""
        if isinstance(content, list):
            parts = [cast(dict[str, Any], part) for part in cast(list[Any], content) if isinstance(part, dict)]
            content = "".join(part["text"] for part in parts if isinstance(part.get("text"), str))
        return self._joiner.add(content) if isinstance(content, str) else ""
