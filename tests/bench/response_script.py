"""The vocabulary in which a test scripts an answer of the Responses API, and its events. Values only.

Text, reasoning, stalls and endings of the connection are `model_script`'s.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from tests.bench.model_script import CLOSE, CUT, DONE, EOF, Piece, Ping, Raw, Stall, T, Think, event


@dataclass(frozen=True)
class Call:
    """A function call, its arguments in pieces of `cut_every` characters."""

    call_id: str
    name: str
    arguments: str = "{}"
    cut_every: int = 1000
    status: str = "completed"


@dataclass(frozen=True)
class Refuse:
    """A refusal."""

    text: str


@dataclass(frozen=True)
class Search:
    """A web search that the service makes by itself, told step by step."""

    query: str


@dataclass(frozen=True)
class Event:
    """A whole event, as given."""

    body: Any


@dataclass(frozen=True)
class End:
    """The ending: `completed`, `incomplete`, `failed` or `cancelled`. The body ends after it."""

    status: str = "completed"
    reason: str | None = None
    """Why it is incomplete."""
    error: dict[str, Any] | None = None
    usage: dict[str, Any] | None = None


Item = Piece | Call | Refuse | Search | Event | End | str


@dataclass
class ResponseScript:
    """One answer as the service streams it: made of items, with the facts of its request."""

    items: tuple[Item, ...]
    response: dict[str, Any]
    """What the service says of the answer in each event that holds it: id, model, …"""
    output: list[dict[str, Any]] = field(default_factory=list)

    def pieces(self) -> Iterator[Piece]:
        """What goes over the wire. An ending that is left out is added, unless the items say how the body ends."""
        yield self._event("response.created", response=self._whole("in_progress"))
        yield self._event("response.in_progress", response=self._whole("in_progress"))
        ended = False
        for item in self.items:
            ended = ended or item in (CLOSE, CUT, DONE, EOF) or isinstance(item, End) or _lasts_for_ever(item)
            yield from self._play(item)
        if not ended:
            yield from self._play(End())

    def _play(self, item: Item) -> Iterator[Piece]:
        match item:
            case str() | T():
                yield from self._message("output_text", "text", item if isinstance(item, str) else item.text)
            case Refuse(text):
                yield from self._message("refusal", "refusal", text)
            case Think(text):
                yield from self._reasoning(text)
            case Call():
                yield from self._call(item)
            case Search(query):
                yield from self._search(query)
            case Event(body):
                yield Raw(event(json.dumps(body)))
            case End():
                facts = {"usage": item.usage, "error": item.error}
                facts["incomplete_details"] = {"reason": item.reason} if item.reason else None
                yield self._event(f"response.{item.status}", response=self._whole(item.status) | facts)
            case _:
                yield item

    def _message(self, kind: str, name: str, text: str) -> Iterator[Piece]:
        index, item_id = len(self.output), f"msg_{len(self.output)}"
        item = {"type": "message", "id": item_id, "role": "assistant", "status": "in_progress", "content": []}
        where = {"item_id": item_id, "output_index": index, "content_index": 0}
        part = {"type": kind, name: text} | ({"annotations": []} if kind == "output_text" else {})
        yield self._event("response.output_item.added", output_index=index, item=item)
        yield self._event("response.content_part.added", **where, part={"type": kind, name: ""})
        yield self._event(f"response.{kind}.delta", **where, delta=text)
        yield self._event(f"response.{kind}.done", **where, **{name: text})
        yield self._event("response.content_part.done", **where, part=part)
        yield self._done(item | {"status": "completed", "content": [part]})

    def _reasoning(self, text: str) -> Iterator[Piece]:
        index, item_id = len(self.output), f"rs_{len(self.output)}"
        where = {"item_id": item_id, "output_index": index, "summary_index": 0}
        item = {"type": "reasoning", "id": item_id, "summary": []}
        part = {"type": "summary_text", "text": text}
        yield self._event("response.output_item.added", output_index=index, item=item)
        yield self._event("response.reasoning_summary_part.added", **where, part=part | {"text": ""})
        yield self._event("response.reasoning_summary_text.delta", **where, delta=text)
        yield self._event("response.reasoning_summary_text.done", **where, text=text)
        yield self._event("response.reasoning_summary_part.done", **where, part=part)
        yield self._done(item | {"summary": [part]})

    def _call(self, call: Call) -> Iterator[Piece]:
        index, item_id = len(self.output), f"fc_{len(self.output)}"
        item = {"type": "function_call", "id": item_id, "call_id": call.call_id, "name": call.name, "arguments": ""}
        where = {"item_id": item_id, "output_index": index}
        yield self._event("response.output_item.added", output_index=index, item=item | {"status": "in_progress"})
        for start in range(0, len(call.arguments), call.cut_every):
            delta = call.arguments[start : start + call.cut_every]
            yield self._event("response.function_call_arguments.delta", **where, delta=delta)
        yield self._event("response.function_call_arguments.done", **where, arguments=call.arguments)
        yield self._done(item | {"arguments": call.arguments, "status": call.status})

    def _search(self, query: str) -> Iterator[Piece]:
        index, item_id = len(self.output), f"ws_{len(self.output)}"
        item = {"type": "web_search_call", "id": item_id, "status": "in_progress"}
        yield self._event("response.output_item.added", output_index=index, item=item)
        for step in ("in_progress", "searching", "completed"):
            yield self._event(f"response.web_search_call.{step}", output_index=index, item_id=item_id)
        yield self._done(item | {"status": "completed", "action": {"type": "search", "query": query}})

    def _done(self, item: dict[str, Any]) -> Piece:
        self.output.append(item)
        return self._event("response.output_item.done", output_index=len(self.output) - 1, item=item)

    def _whole(self, status: str) -> dict[str, Any]:
        return {"object": "response", **self.response, "status": status, "output": list(self.output)}

    def _event(self, kind: str, **fields: Any) -> Piece:
        data = json.dumps({"type": kind, **fields})
        return Raw(f"event: {kind}\n".encode() + event(data))


def _lasts_for_ever(item: Item) -> bool:
    return (isinstance(item, Stall) and item.seconds is None) or (isinstance(item, Ping) and item.times is None)
