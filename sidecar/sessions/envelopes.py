"""How events and messages look in the store and on the wire, and the way between the two. Stores and sends nothing."""

from collections.abc import Sequence
from typing import Final, NamedTuple

from pydantic_core import from_json

from protocol.base import JsonObject
from protocol.messages import FunctionResultBlock, Message
from sidecar.agents.sink import CallNote, Draft, RequestNote
from sidecar.stores.base import CallRecord, Event, Put, PutCall, PutMessage, PutRequest, StoredEvent

from .stored_json import stored_json

_CALLER: Final = "$caller"
"""Where the stored data of a delegated run's event says whose call the run is. No event's own field is called so."""
_SOURCE: Final = "$source"
"""Where it says who the event comes from, if not from the run itself."""


class Caller(NamedTuple):
    """The run that a run is delegated by, and the tool call that it is."""

    run_id: str
    call_id: str

    def fields(self) -> JsonObject:
        """As an event's envelope says it."""
        return {"parentRunId": self.run_id, "parentCallId": self.call_id}


def envelope(
    session_id: str,
    epoch: str,
    event: str,
    data: JsonObject,
    run_id: str | None,
    seq: int,
    caller: Caller | None = None,
    source: JsonObject | None = None,
) -> JsonObject:
    """What every event has, in the contract's order; the time is the caller's to add."""
    fields: JsonObject = {"sessionId": session_id}
    if run_id is not None:
        fields["runId"] = run_id
    if caller is not None:
        fields |= caller.fields()
    fields |= {"seq": seq, "epoch": epoch}
    if source is not None:
        fields["source"] = source
    fields |= {"type": event, "data": data}
    return fields


def stored_envelope(session_id: str, epoch: str, stored: StoredEvent) -> JsonObject:
    """A stored event as it was sent, without `prevSeq`."""
    event = stored.event
    data: JsonObject = from_json(event.data)
    caller = Caller(*data.pop(_CALLER)) if _CALLER in data else None
    source = data.pop(_SOURCE, None)
    if stored.message is not None:
        data = _joined(event.type, data, from_json(stored.message))
    fields = envelope(session_id, epoch, event.type, data, event.run_id, event.seq, caller, source)
    fields["time"] = event.time
    return fields


def event_row(draft: Draft, seq: int, time: str, run_id: str | None, caller: Caller | None = None) -> Event:
    """A durable event as it is stored: what a message of it says stands in the message's row."""
    message_id = row_key(draft.message, run_id) if draft.message is not None else None
    data = draft.data if caller is None else {**draft.data, _CALLER: caller}
    if draft.source is not None:
        data = {**data, _SOURCE: draft.source.wire()}
    return Event(seq=seq, type=draft.type, time=time, data=stored_json(data), run_id=run_id, message_id=message_id)


def draft_rows(drafts: Sequence[Draft], run_id: str | None, *, is_delegated: bool = False) -> list[Put]:
    """The writes that store what some events report. What is said in a delegated run is in no transcript."""
    return [
        *_message_rows(drafts, run_id, is_delegated=is_delegated),
        *_call_rows(drafts, run_id),
        *request_rows([note for draft in drafts for note in draft.requests]),
    ]


def _message_rows(drafts: Sequence[Draft], run_id: str | None, *, is_delegated: bool) -> list[PutMessage]:
    """The writes that store the messages of some events."""
    found = {draft.message.message_id: draft for draft in drafts if draft.message is not None}
    return [
        put_message(draft.message, run_id, in_history=draft.in_history and not is_delegated)
        for draft in found.values()
        if draft.message
    ]


def _call_rows(drafts: Sequence[Draft], run_id: str | None) -> list[PutCall]:
    """The writes that store what is known of the tool calls of some events; of each call the last word counts."""
    found = {note.call_id: note for draft in drafts for note in draft.calls}
    return [
        PutCall(call_id=f"{run_id}/{note.call_id}", run_id=str(run_id), body=_call_body(note), open=note.open)
        for note in found.values()
    ]


def request_rows(notes: Sequence[RequestNote]) -> list[PutRequest]:
    """The writes that store requests to the host; of each the last word counts."""
    found = {note.request_id: note for note in notes}
    return [
        PutRequest(note.request_id, stored_json(note.body) if note.body is not None else None)
        for note in found.values()
    ]


def _call_body(note: CallNote) -> bytes:
    result = note.result.wire() if note.result is not None else None
    return stored_json({"callId": note.call_id, "name": note.name, "result": result})


def read_call(stored: CallRecord) -> CallNote:
    """A tool call's record as it was stored."""
    fields: JsonObject = from_json(stored.body)
    result = fields["result"]
    return CallNote(
        fields["callId"],
        fields["name"],
        FunctionResultBlock.model_validate(result) if result is not None else None,
    )


def put_message(message: Message, run_id: str | None, *, in_history: bool = True) -> PutMessage:
    """The write that stores a message."""
    body = stored_json(message)
    return PutMessage(message_id=row_key(message, run_id), run_id=run_id, body=body, in_history=in_history)


def row_key(message: Message, run_id: str | None) -> str:
    """What a message's row is called: a host may send a message again, under its own id, after a run that failed."""
    return str(message.message_id) if run_id is None else f"{run_id}/{message.message_id}"


def whole(draft: Draft) -> JsonObject:
    """A new event's data, with what it refers to."""
    return draft.data if draft.message is None else _joined(draft.type, draft.data, draft.message.wire())


def _joined(event: str, data: JsonObject, message: JsonObject) -> JsonObject:
    content: list[JsonObject] = message["content"]
    if event == "reasoning.completed":
        return {**data, "text": "".join(block["text"] for block in content if block["type"] == "reasoning")}
    if event == "tool.completed":
        result = next(block for block in content if block.get("callId") == data["callId"])
        told = {key: result[key] for key in ("content", "structuredContent") if key in result}
        return {**data, **told}
    return {**data, "content": content}
