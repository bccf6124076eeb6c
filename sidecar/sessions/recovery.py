"""Repair after a crash: every run that a dead process left without an end gets one, before new runs are accepted."""

from collections.abc import Collection, Sequence

from pydantic import ValidationError
from pydantic_core import from_json

from protocol.base import JsonObject
from protocol.messages import FunctionResultBlock, Message
from protocol.sessions import Recovered
from sidecar.agents.loop import completed_draft
from sidecar.agents.sink import Draft, RequestNote
from sidecar.crash_points import reached
from sidecar.stores.base import Damaged, SessionStore, Snapshot, StoredMessage
from sidecar.stores.base import RunRecord as StoredRun

from .approvals import Question, parkable, read_questions
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
    lasting = read_questions(snapshot.session, parkable(snapshot.session, snapshot.requests))
    parked_runs = {question.pending.run_id for question in lasting}
    closed_calls: list[str] = []
    for run in runs:
        caller = Caller(run.parent_run_id, str(run.parent_call_id)) if run.parent_run_id is not None else None
        rows = await _rows(store, snapshot.session, run.run_id, hidden=caller is not None)
        messages = [Message.model_validate_json(row.body) for row in rows]
        drafts: list[Draft] = _dropped_requests(snapshot, run.run_id)
        is_parked = run.run_id in parked_runs
        held = await _taken_over(store, snapshot.session, run, lasting)
        closing = None if is_parked else close_calls([*held, *messages], "unknown", begun_calls(snapshot, run.run_id))
        if closing is not None:
            messages.append(closing.message)
            drafts.extend(closing.drafts)
            closed_calls.extend(closing.call_ids)
        drafts.extend(map(completed_draft, not_joined(run, {row.message_id for row in rows})))
        ended = (parked(run) if is_parked else interrupted(run)).model_copy(
            update={"message_ids": tuple(_output(messages))}
        )
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
    cut = tuple(run.run_id for run in runs if run.run_id not in parked_runs)
    return Recovered(interrupted_runs=cut, closed_calls=tuple(closed_calls)) if cut or closed_calls else None


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


def parked(run: RunRecord) -> RunRecord:
    """A run whose process ended while it waited for nothing but approvals."""
    return run.model_copy(update={"status": "completed", "stop_reason": "inputRequired", "ended_at": now()})


def _dropped_requests(snapshot: Snapshot, run_id: str) -> list[Draft]:
    """The ends of a run's questions to its host that died with the process."""
    kept = parkable(snapshot.session, snapshot.requests)
    found: list[Draft] = []
    for request_id, body in snapshot.requests.items():
        if request_id not in kept and _run_of(from_json(body)) == run_id:
            data: JsonObject = {"requestId": request_id, "outcome": "failed", "by": "disconnect"}
            found.append(Draft("request.resolved", data, requests=(RequestNote(request_id),)))
    return found


def _run_of(body: JsonObject) -> str | None:
    pending: JsonObject = body["question"]["pending"] if body.get("kind") == "approval" else body
    return pending.get("runId")


async def _taken_over(
    store: SessionStore, session: str, run: RunRecord, lasting: Sequence[Question]
) -> Sequence[Message]:
    """The answer whose calls a run had gone on with; nothing, where it had not come so far."""
    resumes = run.resumes
    if resumes is None or any(one.parked and one.parked.message_id == resumes["messageId"] for one in lasting):
        return ()
    rows = await _rows(store, session, resumes["runId"], hidden=False)
    messages = [Message.model_validate_json(row.body) for row in rows]
    place = next((i for i, message in enumerate(messages) if message.message_id == resumes["messageId"]), None)
    return messages[place:] if place is not None else ()


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
    return {"status": run.status, "stopReason": run.stop_reason, "usage": run.usage.wire(), "durationMs": 0}
