"""Repair after a crash: every run that a dead process left without an end gets one, before new runs are accepted."""

from collections.abc import Collection, Sequence

from pydantic import ValidationError

from protocol.base import JsonObject
from protocol.messages import FunctionResultBlock, Message
from protocol.sessions import Recovered
from sidecar.agents.loop import completed_draft
from sidecar.agents.sink import Draft
from sidecar.crash_points import reached
from sidecar.stores.base import Damaged, SessionStore, Snapshot, StoredMessage
from sidecar.stores.base import RunRecord as StoredRun

from .envelopes import Caller, read_call, row_key
from .event_log import EventLog
from .ids import now
from .open_calls import close_calls
from .record import RunRecord

PAGE = 1_000
PAGE_BYTES = 64 << 20


async def repair(store: SessionStore, log: EventLog, snapshot: Snapshot) -> Recovered | None:
    """End what is unfinished as `interrupted`, and close its open calls. No call is ever made again.

    What was delegated ends before the run whose call it is.

    The input, whole messages and input that was taken in under way stay in the transcript.

    Raises:
        StoreError: the repair could not be stored; the session must not be used.
    """
    runs = _innermost_first(read_runs(snapshot.session, snapshot.unfinished_runs))
    closed_calls: list[str] = []
    for run in runs:
        caller = Caller(run.parent_run_id, str(run.parent_call_id)) if run.parent_run_id is not None else None
        rows = await _rows(store, snapshot.session, run.run_id, hidden=caller is not None)
        messages = [Message.model_validate_json(row.body) for row in rows]
        drafts: list[Draft] = []
        closing = close_calls(messages, "unknown", begun_calls(snapshot, run.run_id))
        if closing is not None:
            messages.append(closing.message)
            drafts.extend(closing.drafts)
            closed_calls.extend(closing.call_ids)
        drafts.extend(map(completed_draft, not_joined(run, {row.message_id for row in rows})))
        ended = interrupted(run).model_copy(update={"message_ids": tuple(_output(messages))})
        reached("recovery.before")
        await log.append(
            [*drafts, Draft("run.completed", _completed(ended))],
            lambda last_seq, ended=ended: [ended.model_copy(update={"last_seq": last_seq}).put()],
            run_id=run.run_id,
            caller=caller,
            keep=False,
            send=False,
        )
        reached("recovery.after")
    if not runs:
        return None
    return Recovered(interrupted_runs=tuple(run.run_id for run in runs), closed_calls=tuple(closed_calls))


def read_runs(session_id: str, stored: Sequence[StoredRun]) -> list[RunRecord]:
    """Run records as they were stored.

    Raises:
        Damaged: one does not read back.
    """
    try:
        return [RunRecord.model_validate_json(record.body) for record in stored]
    except ValidationError:
        raise Damaged(session_id, "a run's record does not read back", {}) from None


def not_joined(run: RunRecord, stored: Collection[str]) -> list[Message]:
    """Input that was taken into a run, and has no row of these keys: it had joined no model call yet."""
    return [message for message in run.steered if row_key(message, run.run_id) not in stored]


def interrupted(run: RunRecord) -> RunRecord:
    """A run that its process did not live to end."""
    return run.model_copy(update={"status": "interrupted", "stop_reason": "interrupted", "ended_at": now()})


def begun_calls(snapshot: Snapshot, run_id: str) -> dict[str, FunctionResultBlock | None]:
    """The calls of a run that were begun, with their results where they had ended."""
    notes = (read_call(stored) for stored in snapshot.open_calls if stored.run_id == run_id)
    return {note.call_id: note.result for note in notes}


def _innermost_first(runs: Sequence[RunRecord]) -> list[RunRecord]:
    parents = {run.run_id: run.parent_run_id for run in runs}

    def depth(run_id: str | None) -> int:
        return 0 if run_id is None else 1 + depth(parents.get(run_id))

    return sorted(runs, key=lambda run: -depth(run.run_id))


async def _rows(store: SessionStore, session_id: str, run_id: str, *, hidden: bool) -> list[StoredMessage]:
    found: list[StoredMessage] = []
    after: int | None = None
    while True:
        page = await store.messages(
            session_id, after=after, limit=PAGE, max_bytes=PAGE_BYTES, run_id=run_id, hidden=hidden
        )
        found.extend(page.items)
        if page.next is None:
            return found
        after = page.items[-1].position


def _output(messages: Sequence[Message]) -> list[str]:
    return [str(message.message_id) for message in messages if message.role in ("assistant", "tool")]


def _completed(run: RunRecord) -> JsonObject:
    return {"status": "interrupted", "stopReason": "interrupted", "usage": run.usage.wire(), "durationMs": 0}
