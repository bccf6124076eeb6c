"""Reads the body of a Responses answer, streamed or whole, into updates. No I/O.

Its ending is `response.completed`, `incomplete` or `failed`, which repeats the whole answer; that counts only where the
events before it told nothing. Events that say nothing of text, reasoning or calls (a web search's progress, citations,
events yet to be invented) are passed over. What both of OpenAI's APIs have in common is `openai_answer`'s.
"""

from collections.abc import Collection, Iterable, Iterator
from typing import Any, Final, cast

from providers.api.clean_text import clean_text
from providers.api.ports import ChatUpdate, FinishReason, ReasoningDelta, TextDelta

from .openai_answer import AnswerReader
from .openai_errors import error_in_stream
from .openai_responses_calls import ResponseCalls
from .openai_usage import read_usage

_ENDINGS: Final = frozenset({"completed", "incomplete", "failed", "cancelled"})
_INCOMPLETE: Final[dict[str, FinishReason]] = {"max_output_tokens": "length", "content_filter": "contentFilter"}
_PARAGRAPH: Final = "\n\n"
_REASONING: Final = frozenset({"reasoning_summary_text.delta", "reasoning_text.delta"})


class ResponseReader(AnswerReader[ResponseCalls]):
    """One response."""

    def __init__(self, endpoint: str, taken_call_ids: Collection[str] = (), *, is_stored: bool = True) -> None:
        """`is_stored`: the request did not forbid the service to keep the answer."""
        super().__init__(endpoint, ResponseCalls(taken_call_ids))
        self._is_stored = is_stored
        self._told: set[type[ChatUpdate]] = set()
        self._response_id: str | None = None
        self._conversation: str | None = None

    def _kept_conversation(self) -> str | None:
        return self._conversation or (self._response_id if self._is_stored else None)

    def _take_event(self, event: dict[str, Any]) -> Iterator[ChatUpdate]:
        kind = event.get("type")
        if kind == "error" or event.get("error"):
            raise error_in_stream(event.get("error") or event, self._endpoint)
        if not isinstance(kind, str) or not kind.startswith("response."):
            return
        name = kind.removeprefix("response.")
        if isinstance(event.get("response"), dict):
            self._take_facts(_fields(event["response"]))
        if name in _ENDINGS:
            yield from self._end(name, _fields(event.get("response")))
        elif name in {"output_item.added", "output_item.done"}:
            self._take_item(_fields(event.get("item")), event.get("output_index"), is_whole=name.endswith("done"))
        elif name == "function_call_arguments.done":
            self._calls.add_arguments(event)
        elif name == "reasoning_summary_part.added" and ReasoningDelta in self._told:
            yield from self._reasoning(_PARAGRAPH)
        elif name.endswith(".delta"):
            yield from self._take_delta(name, event)

    def _take_delta(self, name: str, event: dict[str, Any]) -> Iterator[ChatUpdate]:
        delta = event.get("delta")
        if name == "function_call_arguments.delta":
            self._calls.add_delta(event)
        elif not isinstance(delta, str):
            return
        elif name == "output_text.delta":
            yield from self._text(delta)
        elif name == "refusal.delta":
            self._refused = True
            yield from self._text(delta)
        elif name in _REASONING:
            yield from self._reasoning(delta)

    def _take_document(self, document: dict[str, Any]) -> Iterator[ChatUpdate]:
        if document.get("error") and document.get("status") != "failed":
            raise error_in_stream(document["error"], self._endpoint)
        self._take_facts(document)
        status = document.get("status")
        if isinstance(status, str) and status in _ENDINGS:
            yield from self._end(status, document)

    def _take_facts(self, response: dict[str, Any]) -> None:
        """What every event that holds the response tells of it."""
        if isinstance(model := response.get("model"), str) and model:
            self._model = clean_text(model)
        if isinstance(response_id := response.get("id"), str) and response_id:
            self._response_id = clean_text(response_id)
        conversation = response.get("conversation")
        conversation_id = _fields(conversation).get("id") if isinstance(conversation, dict) else conversation
        if isinstance(conversation_id, str) and conversation_id:
            self._conversation = clean_text(conversation_id)
        if response.get("store") is False:
            self._is_stored = False
        self._usage = read_usage(response.get("usage")) or self._usage

    def _end(self, status: str, response: dict[str, Any]) -> Iterator[ChatUpdate]:
        if status == "failed":
            raise error_in_stream(response.get("error") or {}, self._endpoint)
        if status == "cancelled":
            raise self._body.bad("the service cancelled the answer")
        yield from self._take_untold(response.get("output"))
        if status == "incomplete":
            why = _fields(response.get("incomplete_details")).get("reason")
            self._reason = _INCOMPLETE.get(why, "length") if isinstance(why, str) else "length"
        else:
            self._reason = "stop"
        self._body.done = True

    def _take_untold(self, output: Any) -> Iterator[ChatUpdate]:
        """What the ending's own list holds of a kind that no event told."""
        items = [_fields(item) for item in _list(output)]
        if ReasoningDelta not in self._told:
            yield from self._reasoning(_PARAGRAPH.join(_texts(items, "reasoning", ("summary", "content"), "text")))
        if TextDelta not in self._told:
            for text in _texts(items, "message", ("content",), "text"):
                yield from self._text(text)
            for text in _texts(items, "message", ("content",), "refusal"):
                self._refused = True
                yield from self._text(text)
        if not self._calls:
            for index, item in enumerate(items):
                self._take_item(item, index, is_whole=True)

    def _take_item(self, item: dict[str, Any], index: Any, *, is_whole: bool) -> None:
        if item.get("type") == "function_call":
            self._calls.add_item(item, index, is_whole=is_whole)

    def _text(self, delta: str) -> Iterator[ChatUpdate]:
        self._told.add(TextDelta)
        if text := self._joiner.add(delta):
            yield TextDelta(text)

    def _reasoning(self, delta: str) -> Iterator[ChatUpdate]:
        self._told.add(ReasoningDelta)
        if delta:
            yield ReasoningDelta(clean_text(delta))


def _texts(items: Iterable[dict[str, Any]], kind: str, places: tuple[str, ...], name: str) -> Iterator[str]:
    """The texts of that name in the parts of all items of one type."""
    for item in items:
        if item.get("type") == kind:
            for part in (part for place in places for part in _list(item.get(place))):
                if isinstance(text := _fields(part).get(name), str):
                    yield text


def _list(value: Any) -> list[Any]:
    return cast(list[Any], value) if isinstance(value, list) else []


def _fields(value: Any) -> dict[str, Any]:
    return cast(dict[str, Any], value) if isinstance(value, dict) else {}
