"""A session's contents on their way to another session or into a document: fork, export, import. Opens nothing."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import Final, NamedTuple

from pydantic import ValidationError
from pydantic_core import from_json

from protocol.base import MAX_ID_LENGTH, JsonObject, WireModel
from protocol.messages import Message
from sidecar.errors import InvalidParams, RunNotFound
from sidecar.stores.base import SessionStore, Snapshot

from .open_calls import close_calls
from .record import SessionRecord, read_record
from .recovery import begun_calls, not_joined, read_runs
from .views import find_run

FORMAT: Final = "agent-sidecar/session"
VERSION: Final = 1

PAGE: Final = 1_000
PAGE_BYTES: Final = 64 << 20


@dataclass(frozen=True, slots=True)
class Contents:
    """What a session holds, events left out: those stay with the session that had them."""

    record: SessionRecord
    state: JsonObject
    messages: Sequence[Message]


class _Entry(NamedTuple):
    message: Message
    run_id: str | None
    in_history: bool


class _Document(WireModel):
    """An exported session."""

    format: str
    version: int
    session: SessionRecord
    state: JsonObject
    messages: tuple[Message, ...]


async def read_contents(store: SessionStore, session_id: str) -> Contents:
    """Everything of a stored session; a run under way counts as interrupted now.

    Raises:
        StoreError: it is not there, or cannot be read.
    """
    snapshot = await store.load(session_id)
    return _contents(snapshot, await _entries(store, snapshot))


async def read_part(store: SessionStore, session_id: str, *, through: str | None, before: str | None) -> Contents:
    """A stored session up to a run, or up to just before one.

    Raises:
        StoreError: it is not there, or cannot be read.
        RunNotFound: that run never had a place in the transcript.
    """
    snapshot = await store.load(session_id)
    entries = await _entries(store, snapshot)
    run_id = through or before
    if run_id is not None:
        record = await find_run(store, session_id, run_id)
        if record is not None and record.parent_run_id is not None:  # it has no place of its own
            raise RunNotFound(run_id, session_id)
        joined = (record.alias_of if record is not None else None) or run_id
        places = [index for index, entry in enumerate(entries) if entry.run_id == joined]
        if not places:
            raise RunNotFound(run_id, session_id)
        entries = entries[: places[-1] + 1] if through is not None else entries[: places[0]]
    return _contents(snapshot, entries)


def _contents(snapshot: Snapshot, entries: Sequence[_Entry]) -> Contents:
    state = {key: from_json(value) for key, value in snapshot.state.items()}
    return Contents(read_record(snapshot), state, [entry.message for entry in entries if entry.in_history])


async def _entries(store: SessionStore, snapshot: Snapshot) -> list[_Entry]:
    """Every message that has a place in the transcript, those of failed runs too."""
    found: list[_Entry] = []
    keys: set[str] = set()
    after: int | None = None
    while True:
        page = await store.messages(snapshot.session, after=after, limit=PAGE, max_bytes=PAGE_BYTES, hidden=True)
        for row in page.items:
            keys.add(row.message_id)
            found.append(_Entry(Message.model_validate_json(row.body), row.run_id, row.in_history))
        if page.next is None:
            break
        after = page.items[-1].position
    for run in read_runs(snapshot.session, snapshot.unfinished_runs):
        own = [entry.message for entry in found if entry.run_id == run.run_id and entry.in_history]
        closing = close_calls(own, "unknown", begun_calls(snapshot, run.run_id))
        closed = () if closing is None else (closing.message,)
        found.extend(_Entry(message, run.run_id, True) for message in (*closed, *not_joined(run, keys)))
    return found


def to_document(contents: Contents) -> JsonObject:
    """The session as a versioned JSON document."""
    return {
        "format": FORMAT,
        "version": VERSION,
        "session": contents.record.wire(),
        "state": contents.state,
        "messages": [message.wire() for message in contents.messages],
    }


def from_document(document: JsonObject) -> Contents:
    """The session that a document holds.

    Raises:
        InvalidParams: it is no document of ours, or of a version that this build does not know.
    """
    if document.get("format") != FORMAT:
        raise _refused("format", f"the document's format is not {FORMAT!r}; only exported sessions can be imported")
    if document.get("version") != VERSION:
        raise _refused("version", f"the document's version is not {VERSION}; export it again with this version")
    try:
        read = _Document.model_validate(document)
    except ValidationError as error:
        fault = error.errors(include_url=False, include_input=False)[0]
        path = ".".join(str(part) for part in fault["loc"])
        raise _refused(path, f"{path}: {fault['msg']}") from None
    _check(read)
    return Contents(read.session, read.state, read.messages)


def _check(document: _Document) -> None:
    """What the types alone do not say.

    Raises:
        InvalidParams: an id or a folder is none, or two messages have one id.
    """
    session = document.session
    if not 0 < len(session.session_id) <= MAX_ID_LENGTH:
        raise _refused("session.sessionId", f"a session's id has 1 to {MAX_ID_LENGTH} characters")
    if session.cwd is not None and not PurePath(session.cwd).is_absolute():
        raise _refused("session.cwd", "not absolute")
    keys = {(message.run_id, message.message_id) for message in document.messages}
    if len(keys) < len(document.messages) or any(message_id is None for _, message_id in keys):
        raise _refused("messages", "each message needs a messageId of its own")


def _refused(path: str, message: str) -> InvalidParams:
    return InvalidParams(message, [{"path": f"document.{path}", "message": message}])
