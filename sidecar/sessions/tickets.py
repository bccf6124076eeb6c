"""Runs by id, from the moment their request was read: a cancel always finds its run. Knows no session's insides."""

import asyncio
from collections import OrderedDict
from collections.abc import Iterator
from typing import Final, Literal

from protocol.runs import RunResult
from sidecar.errors import SidecarError

from .ids import new_id

StopKind = Literal["cancelled", "timeout", "interrupted"]

KEPT_ONE_OFF_RUNS: Final = 200
"""One-off runs whose session can still be looked at in this process; more only where more are at work."""


class RunTicket:
    """One requested run: its id, and whether somebody wants it to stop."""

    def __init__(self, session_id: str | None, run_id: str) -> None:
        self.session_id = session_id
        self.run_id = run_id
        self.begun = False
        """It has its session's slot."""
        self.queued = False
        """It waits for the slot."""
        self.payload_hash = ""
        self.recorded = asyncio.Event()
        """The run is stored, or has ended without that."""
        self.ended = asyncio.Event()
        self.outcome: RunResult | SidecarError | None = None
        """What it was answered, once it has ended."""
        self.work_done_token: str | int | None = None
        """By what the client names it in `window/workDoneProgress/cancel`."""
        self.stop: StopKind | None = None
        self._stopped = asyncio.Event()

    def cancel(self, kind: StopKind = "cancelled") -> None:
        """Ask the run to stop; the first reason counts."""
        if self.stop is None:
            self.stop = kind
            self._stopped.set()

    async def stopped(self) -> None:
        """Wait until somebody wants the run to stop."""
        await self._stopped.wait()


class Tickets:
    """Every run that was asked for and has not ended, and where one-off runs can be found afterwards."""

    def __init__(self) -> None:
        self._live: dict[RunTicket, None] = {}
        self._one_off: OrderedDict[str, str] = OrderedDict()
        self.are_stopped = False
        """The process is ending: no run begins by itself any more."""

    def __iter__(self) -> Iterator[RunTicket]:
        return iter(tuple(self._live))

    def register(
        self, session_id: str | None, run_id: str | None, work_done_token: str | int | None = None
    ) -> RunTicket:
        """A ticket for a run whose request has just been read."""
        ticket = RunTicket(session_id, run_id or new_id("run"))
        ticket.work_done_token = work_done_token
        self._live[ticket] = None
        return ticket

    def forget(self, ticket: RunTicket) -> None:
        """The run has ended, or was refused."""
        self._live.pop(ticket, None)

    def stop_all(self) -> None:
        """The process is ending: interrupt every run."""
        self.are_stopped = True
        for ticket in self._live:
            ticket.cancel("interrupted")

    def find(self, session_id: str | None, run_id: str | None) -> RunTicket | None:
        """The live run that is meant: by id, or the session's own, the one that has the slot first."""
        if run_id is None and session_id is None:
            return None
        found = [
            ticket
            for ticket in self._live
            if (session_id is None or ticket.session_id == session_id) and run_id in (None, ticket.run_id)
        ]
        return next((ticket for ticket in found if ticket.begun), found[0] if found else None)

    def cancel_token(self, token: str | int) -> bool:
        """Ask the runs with this work-done token to stop; whether there is one."""
        found = [ticket for ticket in self._live if _same_token(ticket.work_done_token, token)]
        for ticket in found:
            ticket.cancel()
        return bool(found)

    def remember_one_off(self, run_id: str, session_id: str) -> list[str]:
        """Keep where a one-off run can be found.

        Returns:
            Sessions that are no longer kept for it: those of the oldest runs, as far as they have ended.
        """
        self._one_off[run_id] = session_id
        surplus = len(self._one_off) - KEPT_ONE_OFF_RUNS
        if surplus <= 0:
            return []
        live = {ticket.run_id for ticket in self._live}
        ended = [known for known in self._one_off if known not in live]
        return [self._one_off.pop(known) for known in ended[:surplus]]

    def one_off_session(self, run_id: str) -> str | None:
        """The throw-away session of a one-off run."""
        return self._one_off.get(run_id)


def _same_token(ours: str | int | None, theirs: str | int) -> bool:
    """String and number tokens differ, as ids do."""
    return type(ours) is type(theirs) and ours == theirs
