"""Reads the body of a chat completion, streamed or whole, into updates. Its ending is the finish reason. No I/O.

What both of OpenAI's APIs have in common is `openai_answer`'s.
"""

from collections.abc import Collection
from typing import Any, Final, cast

from providers.api.clean_text import clean_text
from providers.api.ports import ChatUpdate, FinishReason, ReasoningDelta, TextDelta

from .call_assembly import CallAssembly
from .openai_answer import AnswerReader
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


class CompletionReader(AnswerReader[CallAssembly]):
    """One chat completion."""

    def __init__(self, endpoint: str, taken_call_ids: Collection[str] = ()) -> None:
        super().__init__(endpoint, CallAssembly(taken_call_ids))

    def _take_event(self, event: dict[str, Any]) -> list[ChatUpdate]:
        return self._take(event, "delta")

    def _take_document(self, document: dict[str, Any]) -> list[ChatUpdate]:
        return self._take(document, "message")

    def _take(self, fields: dict[str, Any], part: str) -> list[ChatUpdate]:
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
