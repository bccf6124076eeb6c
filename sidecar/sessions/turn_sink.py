"""Takes the events of one run and hands them to its session's log. Storage failures are remembered, not raised."""

import asyncio

from protocol.base import JsonObject
from protocol.sessions import WireWarning
from sidecar.agents.sink import Draft
from sidecar.errors import OwnershipLost
from sidecar.stores.base import StoreError
from sidecar.telemetry import LOGGER

from .envelopes import Caller
from .event_log import EventLog, is_lost
from .outlet import Outlet
from .progress_mirror import ProgressMirror


class TurnSink:
    """The way up for a run's events."""

    def __init__(
        self,
        log: EventLog,
        run_id: str,
        outlet: Outlet,
        mirror: ProgressMirror,
        *,
        stream: bool,
        caller: Caller | None = None,
    ) -> None:
        self.warnings: list[WireWarning] = []
        self.storage_error: StoreError | None = None
        """Why something of this run is not stored yet."""
        self._log = log
        self._run_id = run_id
        self._outlet = outlet
        self._mirror = mirror
        self._stream = stream
        self._caller = caller
        self._staged: list[Draft] = []
        self._closed = False

    def ephemeral(self, event: str, data: JsonObject) -> None:
        """Send at once, if the host wants a stream."""
        if self._closed:
            return
        self._mirror.event(event, data)
        if self._stream:
            self._log.ephemeral(event, data, self._run_id, self._caller)

    def stage(self, draft: Draft) -> None:
        """Keep for the next commit."""
        if not self._closed:
            self._staged.append(draft)

    async def commit(self, *drafts: Draft) -> bool:
        """Store what was staged and these, and send them; whether they are stored.

        A cancelled caller does not cut a commit in half.

        Raises:
            OwnershipLost: the session cannot be written to any more.
        """
        if self._closed:
            return False
        due = [*self.take(), *drafts]
        return await asyncio.shield(self._commit(due)) if due else self.storage_error is None

    async def _commit(self, drafts: list[Draft]) -> bool:
        try:
            await self._log.append(drafts, run_id=self._run_id, caller=self._caller)
            self.storage_error = None
        except StoreError as error:
            if is_lost(error):
                raise OwnershipLost(self._log.lease.session) from error
            LOGGER.warning("run %s: not stored yet: %s", self._run_id, error)
            self.storage_error = error
        return self.storage_error is None

    @property
    def congested(self) -> bool:
        """Whether the client is far behind in reading."""
        return self._outlet.congested()

    async def breathe(self) -> None:
        """Wait until it no longer is."""
        await self._outlet.breathe()

    def warn(self, kind: str, message: str, *, source_id: str | None = None) -> None:
        """Add to the run's warnings, and stage an event."""
        self.warnings.append(WireWarning(kind=kind, message=message, source_id=source_id))
        self.stage(Draft("warning", {"kind": kind, "message": message}))

    def take(self) -> list[Draft]:
        """What is staged; it is the caller's now."""
        staged, self._staged = self._staged, []
        return staged

    def close(self) -> None:
        """The run has ended: whatever an abandoned hook still says is not heard."""
        self._closed = True
