"""From a run's record to what a host is answered, and the options that a run works with. Pure."""

from collections.abc import Sequence

from protocol.agents import RunOptions
from protocol.messages import Message
from protocol.runs import RunResult
from protocol.sessions import PendingRequest

from .record import RunRecord, SessionRecord


def merge_options(agent: RunOptions, run: RunOptions, session: SessionRecord) -> RunOptions:
    """The agent's options, under the session's settings, under the run's; `instructions` travel on their own."""
    settings = {"model": session.model, "reasoning_effort": session.reasoning_effort}
    given = {name: value for name, value in settings.items() if value is not None}
    given |= run.model_dump(exclude_none=True, exclude={"instructions"})
    return agent.model_copy(update={**given, "instructions": None})


def run_result(
    run: RunRecord, session_id: str, output: tuple[Message, ...], pending: Sequence[PendingRequest] = ()
) -> RunResult:
    """The answer of a run that did not fail, from its record and its output's whole messages."""
    messages = (*output, *((run.partial,) if run.partial is not None else ()))
    return RunResult.model_validate(
        {
            "run_id": run.run_id,
            "session_id": session_id,
            "status": run.status,
            "stop_reason": run.stop_reason,
            "messages": messages,
            "text": "".join(message.text for message in messages if message.role == "assistant"),
            "value": run.value["value"] if run.value is not None else None,
            "value_error": run.value_error,
            "usage": run.usage,
            "last_seq": run.last_seq,
            "duration_ms": run.duration_ms,
            "warnings": run.warnings,
            "pending_requests": tuple(pending) or None,
        }
    )
