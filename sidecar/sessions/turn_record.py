"""What is told and stored of a turn's end: the event's data and the run's record, from how far it came. Pure."""

from collections.abc import Sequence
from typing import NamedTuple

from protocol.base import JsonObject
from protocol.errors import WireError
from protocol.messages import Message, Source, TextBlock
from protocol.sessions import WireWarning
from sidecar.agents.output import Progress
from sidecar.errors import SidecarError, new_error_id
from sidecar.telemetry import log_failure

from .explaining import explanation_of
from .explanations import Explanation
from .ids import new_id, now
from .record import RunRecord, SessionRecord
from .tickets import StopKind


class End(NamedTuple):
    """How a turn ended."""

    status: str
    stop_reason: str
    error: SidecarError | None = None


def stopped(kind: StopKind) -> End:
    """The end of a turn that somebody wanted to stop."""
    if kind == "interrupted":
        return End("interrupted", "interrupted")
    return End("cancelled", kind)


def completed_data(end: End, progress: Progress, duration_ms: int) -> JsonObject:
    """The data of `run.completed`."""
    data: JsonObject = {
        "status": end.status,
        "stopReason": end.stop_reason,
        "usage": progress.meter.usage.wire(),
        "durationMs": duration_ms,
    }
    if end.error is not None:
        data["error"] = end.error.wire()
    return data


def conversation_of(progress: Progress, before: SessionRecord) -> JsonObject:
    """Where a session's conversation is kept from now on; a service that misses a turn is told all of it later."""
    if progress.left_service:
        return {"service_session_id": None, "resends_history": True}
    return {
        "service_session_id": progress.conversation_id or before.service_session_id,
        "resends_history": before.resends_history and progress.conversation_id is None,
    }


def stamped(message: Message, run_id: str, created_at: str) -> Message:
    """A host's message as a run takes it in."""
    return message.model_copy(
        update={
            "message_id": message.message_id or new_id("msg"),
            "source": Source(type="external"),
            "run_id": run_id,
            "created_at": created_at,
        }
    )


def ended_record(
    record: RunRecord,
    end: End,
    progress: Progress,
    *,
    agent: str,
    wants_value: bool,
    duration_ms: int,
    warnings: Sequence[WireWarning],
) -> RunRecord:
    """The record of a turn that has ended."""
    has_value = wants_value and progress.value_error is None and progress.answered
    return record.model_copy(
        update={
            "status": end.status,
            "stop_reason": end.stop_reason,
            "ended_at": now(),
            "message_ids": tuple(str(message.message_id) for message in progress.answer),
            "partial": _partial(progress, agent, record.run_id) if end.status != "completed" else None,
            "value": {"value": progress.value} if has_value else None,
            "value_error": progress.value_error,
            "usage": progress.meter.usage,
            "duration_ms": duration_ms,
            "error": WireError.model_validate(end.error.wire()) if end.error else None,
            "warnings": tuple(warnings),
            "explanation": _explanation(progress, agent),
        }
    )


def _explanation(progress: Progress, agent: str) -> Explanation | None:
    """What the calls saw. Somebody's provider may have put anything there: that must not cost the run its end."""
    try:
        return explanation_of(progress.meter.calls, agent)
    except Exception as error:
        log_failure("explanation of a run", error, new_error_id())
        return None


def _partial(progress: Progress, agent: str, run_id: str) -> Message | None:
    if not progress.partial_text:
        return None
    return Message(
        message_id=progress.partial_id,
        role="assistant",
        content=(TextBlock(text=progress.partial_text),),
        author_name=agent,
        source=Source(type="agent", source_id=agent),
        run_id=run_id,
        partial=True,
    )
