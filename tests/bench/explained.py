"""The explanation of a run in this process, and a history for it. Tests only."""

from collections.abc import Sequence
from typing import Any, Final

from protocol.explain import ExplainedCall
from protocol.messages import Message, Source, text_message
from providers.api.history import HistoryProvider
from sidecar.agents.runner import Execution
from sidecar.sessions.explaining import explanation_of
from sidecar.sessions.explanations import Expansion, Explanation

LATER: Final = "9999"
"""After everything."""


class Past(HistoryProvider):
    """A history that holds these messages."""

    def __init__(self, messages: Sequence[Message]) -> None:
        super().__init__("past")
        self.messages = messages

    async def get_messages(self, session_id: str | None, *, state: Any) -> Sequence[Message]:
        return self.messages

    async def save_messages(self, session_id: str | None, messages: Sequence[Message], *, state: Any) -> None:
        pass


def turns(count: int) -> tuple[Message, ...]:
    """Earlier turns, as a transcript holds them."""
    return tuple(
        text_message(
            "assistant" if n % 2 else "user",
            f"turn number {n}",
            message_id=f"m{n}",
            source=Source(type="agent" if n % 2 else "external"),
            created_at="2026",
        )
        for n in range(count)
    )


def stored(execution: Execution, transcript: Sequence[Message] = ()) -> Explanation:
    """The explanation as it comes back from the store."""
    log = execution.progress.meter.calls
    log.transcript = transcript
    return Explanation.model_validate_json(
        explanation_of(log, "tester").model_dump_json(by_alias=True, exclude_none=True)
    )


def shown(execution: Execution, transcript: Sequence[Message] = ()) -> list[ExplainedCall]:
    """The calls, as a host sees them."""
    return list(Expansion(stored(execution, transcript), transcript, LATER).calls())


def said(call: ExplainedCall) -> list[tuple[str, str, str | None, str | None]]:
    """Each message that a call saw: role, type and id of its source, text."""
    return [(one.role, one.source.type, one.source.source_id, one.text) for one in call.messages]


def pieces(call: ExplainedCall) -> list[tuple[str, str, str | None]]:
    """Each instruction: text, type and id of its source."""
    return [(one.text, one.source.type, one.source.source_id) for one in call.instructions]


def gone(call: ExplainedCall) -> list[tuple[str, str, str, str | None]]:
    """What was removed: kind, which, and by whom."""
    return [(one.what, one.ref, one.by.type, one.by.source_id) for one in call.removed or ()]
