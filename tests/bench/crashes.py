"""Kills a busy sidecar at random times and holds its store against the promises after each. For the suite and the soak.

async with Crashes(store, FakeModel(), ledger_path, seed=7) as crashes:
    for _ in range(20):
        await crashes.kill_once()
    tally = await crashes.hold()
"""

import asyncio
import contextlib
import random
import time
from contextlib import AsyncExitStack
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from tests.bench.busy import Busy
from tests.bench.fake_model import FakeModel
from tests.bench.host import FakeHost, HostGone
from tests.bench.ledger import Ledger
from tests.bench.promises import Tally, hold

SESSIONS: Final = 8
"""Busy at once."""
MOST_MESSAGES: Final = 300
"""A kill comes after at most so many messages: seconds would mean another amount of work on each machine …"""
MORE_S: Final = 0.02
"""… and up to so much later, between two messages."""
EARLY: Final = 0.3
"""Share of the kills that come while the sidecar opens its sessions again, and repairs them."""


class Crashes:
    """One store, one ledger, and sidecars that die one after the other."""

    def __init__(self, store: str, model: FakeModel, ledger: Path, *, seed: int, name: str = "s") -> None:
        self.kills = 0
        self.verdicts = 0
        """How often the promises were held after a kill."""
        self.slowest_start_s = 0.0
        """From the start of a process to the last of its sessions being open and read."""
        self._store = store
        self._model = model
        self._ledger = Ledger(ledger)
        self._dice = random.Random(seed)
        self._busy = Busy(model, self._dice)
        self._ids = [f"{name}{number}" for number in range(SESSIONS)]
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Self:
        await self._stack.enter_async_context(self._model)
        self._stack.callback(self._ledger.close)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._stack.__aexit__(kind, error, trace)

    async def kill_once(self) -> None:
        """Start a sidecar, hold what the last one left against the promises, work, and kill it at some instant."""
        async with FakeHost(store=self._store, env=self._model.environment, ledger=self._ledger) as host:
            if self._dice.random() < EARLY:
                killing = asyncio.create_task(self._kill(host, MOST_MESSAGES // 5))
                with contextlib.suppress(HostGone):
                    await self._hold(host)
            else:
                await self._hold(host)
                killing = asyncio.create_task(self._kill(host, MOST_MESSAGES))
            await self._busy.work(host, self._ids)
            await killing

    async def hold(self) -> Tally:
        """What the last kill left, held against the promises; then every session runs once more."""
        async with FakeHost(store=self._store, env=self._model.environment, ledger=self._ledger) as host:
            await self._hold(host)
            await self._busy.rounds(host, self._ids, 1)
            return await self._hold(host)

    async def _kill(self, host: FakeHost, messages: int) -> None:
        wanted = len(host.messages) + self._dice.randrange(messages)
        await host.until(lambda: len(host.messages) >= wanted)
        await asyncio.sleep(self._dice.uniform(0, MORE_S))
        host.kill()
        self.kills += 1

    async def _hold(self, host: FakeHost) -> Tally:
        began = time.monotonic()
        tally = await hold(self._ledger, host, self._model.requests)
        self.slowest_start_s = max(self.slowest_start_s, time.monotonic() - began)
        self.verdicts += 1
        return tally
