"""Reads the body of a chat completion, streamed or whole, into updates. It does no I/O and knows no HTTP.

An answer counts only with a finish reason: a body that ends without one is a `ModelBadStream`, however cleanly the
connection was closed. A server that answers a stream request with one JSON document is read as well.
"""

from collections.abc import Collection, Iterator
from typing import Any, Final, cast

from protocol.messages import Usage
from providers.api.ports import CallRequested, ChatUpdate, Finished, FinishReason, ReasoningDelta, TextDelta
from sidecar.errors import ModelBadStream

from .call_assembly import CallAssembly
from .json_text import clean, has_surrogate, parse
from .openai_errors import error_in_stream
from .sse import EventTooLarge, SseParser

MAX_BODY_BYTES: Final = 512 * 1024 * 1024
"""Longest body of one answer, protocol overhead included."""

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

_HIGH_SURROGATES: Final = ("\ud800", "\udbff")


class AnswerReader:
    """One answer. Feed it the body's bytes as they come; what it returns does not depend on where they were cut."""

    def __init__(self, endpoint: str, taken_call_ids: Collection[str] = ()) -> None:
        self.done = False
        """`[DONE]` was read: nothing after it counts."""
        self.is_alive = False
        """Whether the last bytes were a sign of life; comments are none."""
        self._endpoint = endpoint
        self._sse = SseParser()
        self._document: list[bytes] | None = None
        self._begun = False
        self._size = 0
        self._calls = CallAssembly(taken_call_ids)
        self._half = ""
        self._reason: FinishReason | None = None
        self._refused = False
        self._usage: Usage | None = None
        self._model: str | None = None

    @property
    def has_ended(self) -> bool:
        """A finish reason was read; at most the usage is missing."""
        return self._reason is not None

    def feed(self, piece: bytes) -> Iterator[ChatUpdate]:
        """The updates that these bytes complete.

        Raises:
            ModelError: the bytes hold an error of the endpoint, or are no answer (`ModelBadStream`); updates before it
                in the same bytes come first.
        """
        self._size += len(piece)
        if self._size > MAX_BODY_BYTES:
            raise self._bad(f"the answer is longer than {MAX_BODY_BYTES} bytes")
        if not self._begun:
            self._begin(piece)
        if self._document is not None:
            self._document.append(piece)
            self.is_alive = bool(piece.strip())
            return
        try:
            events = self._sse.feed(piece)
        except EventTooLarge as error:
            raise self._bad(str(error)) from None
        self.is_alive = not self._sse.comment_only
        yield from self._read(events)

    def finish(self) -> Iterator[ChatUpdate]:
        """The updates that are left when the body has ended; the last one is `Finished`.

        Raises:
            ModelError: as `feed`; `ModelBadStream` where the answer is not complete.
        """
        yield from self._read_document() if self._document is not None else self._read(self._sse.finish())
        if self._reason is None:
            what = "ended before the answer was complete" if self._size else "was empty"
            raise self._bad(f"the stream {what}")
        if self._half:
            self._half = ""
            yield TextDelta("\ufffd")
        reason = "refusal" if self._refused and self._reason == "stop" else self._reason
        if reason != "contentFilter":  # a filtered answer's calls are not known to be whole
            yield from self._finished_calls()
            reason = "toolCalls" if self._calls and reason == "stop" else reason
        yield Finished(reason, self._usage, self._model)

    def _finished_calls(self) -> list[ChatUpdate]:
        if self._reason == "toolCalls" and not self._calls:
            raise self._bad("the answer announces tool calls and holds none")
        try:
            return [CallRequested(call) for call in self._calls.finish()]
        except ValueError as error:
            raise self._bad(str(error)) from None

    def _begin(self, piece: bytes) -> None:
        """Tell a stream from a document by the first byte that says anything."""
        first = piece.lstrip()[:1]
        if not first:
            return
        self._begun = True
        if first in b"{[":
            self._document = []
        elif first == b"<":
            raise self._bad("the endpoint answered with a web page; check base_url (it usually ends in /v1)")

    def _read(self, events: list[bytes]) -> Iterator[ChatUpdate]:
        for data in events:
            if self.done:
                return
            for chunk in self._chunks(data):
                yield from self._take(chunk, "delta")

    def _chunks(self, data: bytes) -> list[Any]:
        try:
            return [parse(data)]
        except ValueError:
            stripped = data.strip()
        if stripped == b"[DONE]":
            self.done = True
            return []
        if not stripped:
            return []
        chunks: list[Any] = []
        for line in stripped.split(b"\n") if b"\n" in stripped else ():  # events that no blank line parts
            if line.strip() == b"[DONE]":
                self.done = True
                return chunks
            chunks.append(self._parse(line))
        return chunks or [self._parse(stripped)]

    def _parse(self, data: bytes) -> Any:
        try:
            return parse(data)
        except ValueError:
            raise self._bad("a part of the stream is no JSON") from None

    def _read_document(self) -> list[ChatUpdate]:
        return self._take(self._parse(b"".join(self._document or ())), "message")

    def _take(self, chunk: Any, part: str) -> list[ChatUpdate]:
        if not isinstance(chunk, dict):
            raise self._bad("a part of the stream is no object")
        fields = cast(dict[str, Any], chunk)
        if fields.get("error") or fields.get("object") == "error":
            raise error_in_stream(fields.get("error") or fields, self._endpoint)
        if self._model is None and isinstance(model := fields.get("model"), str):
            self._model = clean(model)
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
            updates.append(ReasoningDelta(clean(reasoning)))
        if (content := delta.get("content")) and (text := self._text(content)):
            updates.append(TextDelta(text))
        if (refusal := delta.get("refusal")) and (text := self._text(refusal)):
            self._refused = True
            updates.append(TextDelta(text))
        if calls := delta.get("tool_calls"):
            self._calls.add(calls)

    def _text(self, content: Any) -> str:
        """The text of a delta, or of a list of parts. Half of a surrogate pair waits for its other half."""
        if isinstance(content, list):
            parts = [cast(dict[str, Any], part) for part in cast(list[Any], content) if isinstance(part, dict)]
            content = "".join(part["text"] for part in parts if isinstance(part.get("text"), str))
        if not isinstance(content, str):
            return ""
        if self._half or has_surrogate(content):
            content = self._half + content
            self._half = content[-1] if _HIGH_SURROGATES[0] <= content[-1] <= _HIGH_SURROGATES[1] else ""
            content = content.removesuffix(self._half) if self._half else content
        return clean(content)

    def _bad(self, what: str) -> ModelBadStream:
        return ModelBadStream(f"endpoint {self._endpoint!r}: {what}")


def read_usage(value: Any) -> Usage | None:
    """Token counts in the endpoint's form; `None` if there are none."""
    if not isinstance(value, dict):
        return None
    fields = cast(dict[str, Any], value)
    given, made = _count(fields, "prompt_tokens"), _count(fields, "completion_tokens")
    if given is None and made is None:
        return None
    return Usage(
        input_tokens=given or 0,
        output_tokens=made or 0,
        cached_input_tokens=_count(fields.get("prompt_tokens_details"), "cached_tokens"),
        reasoning_tokens=_count(fields.get("completion_tokens_details"), "reasoning_tokens"),
    )


def _count(fields: Any, name: str) -> int | None:
    value = cast(dict[str, Any], fields).get(name) if isinstance(fields, dict) else None
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None
