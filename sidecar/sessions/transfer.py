"""A session's contents on their way to another session or into a document: fork, export, import. Opens nothing."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from pydantic import ValidationError
from pydantic_core import from_json

from protocol.base import JsonObject, WireModel
from protocol.messages import Message
from sidecar.errors import InvalidParams, RunNotFound
from sidecar.sessions.open_session import state_bytes
from sidecar.sessions.record import SessionRecord, read_record
from sidecar.stores.base import SessionStore, StoredMessage

FORMAT: Final = "agent-sidecar/session"
VERSION: Final = 1

PAGE: Final = 1_000
PAGE_BYTES: Final = 64 << 20


@dataclass(frozen=True, slots=True)
class Contents:
    """What a session holds, events left out: those stay with the session that had them."""

    record: SessionRecord
    state: dict[str, bytes]
    messages: Sequence[Message]


class _Document(WireModel):
    """An exported session."""

    format: str
    version: int
    session: SessionRecord
    state: JsonObject
    messages: tuple[Message, ...]


async def read_contents(store: SessionStore, session_id: str) -> Contents:
    """Everything of a stored session.

    Raises:
        StoreError: it is not there, or cannot be read.
    """
    snapshot = await store.load(session_id)
    rows = await _rows(store, session_id)
    return Contents(read_record(snapshot), snapshot.state, [_message(row) for row in rows])


async def read_part(store: SessionStore, session_id: str, *, through: str | None, before: str | None) -> Contents:
    """A stored session up to a run, or up to just before one.

    Raises:
        StoreError: it is not there, or cannot be read.
        RunNotFound: no message of that run is in the transcript.
    """
    snapshot = await store.load(session_id)
    rows = await _rows(store, session_id)
    run_id = through or before
    if run_id is not None:
        places = [index for index, row in enumerate(rows) if row.run_id == run_id]
        if not places:
            raise RunNotFound(run_id, session_id)
        rows = rows[: places[-1] + 1] if through is not None else rows[: places[0]]
    return Contents(read_record(snapshot), snapshot.state, [_message(row) for row in rows])


async def _rows(store: SessionStore, session_id: str) -> list[StoredMessage]:
    found: list[StoredMessage] = []
    after: int | None = None
    while True:
        page = await store.messages(session_id, after=after, limit=PAGE, max_bytes=PAGE_BYTES)
        found.extend(page.items)
        if page.next is None:
            return found
        after = page.items[-1].position


def _message(row: StoredMessage) -> Message:
    return Message.model_validate_json(row.body)


def to_document(contents: Contents) -> JsonObject:
    """The session as a versioned JSON document."""
    return {
        "format": FORMAT,
        "version": VERSION,
        "session": contents.record.wire(),
        "state": {key: from_json(value) for key, value in contents.state.items()},
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
    try:
        state = {key: state_bytes(key, value) for key, value in read.state.items()}
    except ValueError as error:
        raise _refused("state", str(error)) from None
    return Contents(read.session, state, read.messages)


def _refused(path: str, message: str) -> InvalidParams:
    return InvalidParams(message, [{"path": f"document.{path}", "message": message}])
