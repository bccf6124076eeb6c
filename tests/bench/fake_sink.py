"""A run's sink in memory: keeps what would be sent and stored, and holds it against the contract. Tests only."""

from dataclasses import dataclass, field
from typing import Any

from protocol.events import EPHEMERAL, EVENTS
from sidecar.agents.sink import Draft
from sidecar.sessions.envelopes import whole


@dataclass
class FakeSink:
    """Events as `(type, data)`, durable ones when they are committed."""

    events: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    commits: list[list[Draft]] = field(default_factory=list)
    warnings: list[tuple[str, str, str | None]] = field(default_factory=list)
    staged: list[Draft] = field(default_factory=list)
    breaths: int = 0
    can_store: bool = True

    def ephemeral(self, event: str, data: dict[str, Any]) -> None:
        assert event in EPHEMERAL
        self._take(event, data)

    def stage(self, draft: Draft) -> None:
        assert draft.type not in EPHEMERAL
        self.staged.append(draft)

    async def commit(self, *drafts: Draft) -> bool:
        due = [*self.staged, *drafts]
        self.staged = []
        if due:
            self.commits.append(due)
        for draft in due:
            self._take(draft.type, self._whole(draft))
        return self.can_store

    congested = True  # so that every piece is followed by a `breathe`

    async def breathe(self) -> None:
        self.breaths += 1

    def warn(self, kind: str, message: str, *, source_id: str | None = None) -> None:
        self.warnings.append((kind, message, source_id))
        self.stage(Draft("warning", {"kind": kind, "message": message}))

    def of(self, *types: str) -> list[dict[str, Any]]:
        """The data of the events of some types, staged ones included."""
        left = [(draft.type, self._whole(draft)) for draft in self.staged]
        return [data for kind, data in (*self.events, *left) if kind in types]

    @property
    def streamed(self) -> str:
        """The text that was sent as it came."""
        return "".join(data["text"] for data in self.of("message.delta"))

    def _take(self, event: str, data: dict[str, Any]) -> None:
        EVENTS[event].model_validate(data)
        self.events.append((event, data))

    @staticmethod
    def _whole(draft: Draft) -> dict[str, Any]:
        """As the event log completes it: what the stored message holds is not in the draft."""
        return whole(draft)
