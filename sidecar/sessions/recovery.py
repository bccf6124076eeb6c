"""Repair after a crash: every run that a dead process left without an end gets one, before new runs are accepted."""

from collections.abc import Sequence

from pydantic import ValidationError

from protocol.base import JsonObject
from protocol.sessions import Recovered
from sidecar.agents.sink import Draft
from sidecar.sessions.event_log import EventLog
from sidecar.sessions.ids import now
from sidecar.sessions.record import RunRecord
from sidecar.stores.base import Damaged, Snapshot
from sidecar.stores.base import RunRecord as StoredRun


async def repair(log: EventLog, snapshot: Snapshot) -> Recovered | None:
    """End what is unfinished as `interrupted`. The input and whole messages stay in the transcript.

    Raises:
        StoreError: the repair could not be stored; the session must not be used.
    """
    runs = [interrupted(record) for record in read_runs(snapshot.session, snapshot.unfinished_runs)]
    for run in runs:
        await log.append(
            [Draft("run.completed", _completed(run))],
            lambda last_seq, run=run: [run.model_copy(update={"last_seq": last_seq}).put()],
            run_id=run.run_id,
            keep=False,
            send=False,
        )
    if not runs:
        return None
    return Recovered(interrupted_runs=tuple(run.run_id for run in runs), closed_calls=())


def read_runs(session_id: str, stored: Sequence[StoredRun]) -> list[RunRecord]:
    """Run records as they were stored.

    Raises:
        Damaged: one does not read back.
    """
    try:
        return [RunRecord.model_validate_json(record.body) for record in stored]
    except ValidationError:
        raise Damaged(session_id, "a run's record does not read back", {}) from None


def interrupted(run: RunRecord) -> RunRecord:
    """A run that its process did not live to end."""
    return run.model_copy(update={"status": "interrupted", "stop_reason": "interrupted", "ended_at": now()})


def _completed(run: RunRecord) -> JsonObject:
    return {"status": "interrupted", "stopReason": "interrupted", "usage": run.usage.wire(), "durationMs": 0}
