"""Sessions at work, of every kind that a host gives them, until their sidecar dies. Judges nothing; see `promises`."""

import asyncio
import contextlib
import random
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

from tests.bench.fake_model import EOF, TC, F, FakeModel, Item, Raw, Recorded, Reply, Stall, T
from tests.bench.handles import RpcError
from tests.bench.host import FakeHost, HostGone

EXPECTED = frozenset({"modelBadRequest", "sessionBusy", "serverCancelled"})
"""Errors that the work itself brings about; any other one is a fault."""


def answer(request: Recorded) -> Reply | Sequence[Item]:
    """What the fake model says: the first word of the input tells what kind of answer is wanted."""
    wanted = request.last_user_text
    match wanted.partition(" ")[0]:
        case "fail":
            return Reply([Raw(b'{"error":{"message":"no"}}'), EOF], 400, {"content-type": "application/json"})
        case "call" if request.messages[-1]["role"] == "user":
            return [TC(0, f"call-{wanted}", "no_such_tool", "{}"), F("tool_calls")]
        case "slow":
            return [T("I think "), Stall(0.03), T(f"of {wanted}")]
        case _:
            return [T("I "), T("think "), T("of "), T(wanted)]


class Busy:
    """The work. The same dice give the same choices; what the sidecar makes of them is its own affair."""

    def __init__(self, model: FakeModel, dice: random.Random) -> None:
        model.otherwise(answer)
        self._dice = dice
        self._count = 0
        self._doings: list[Callable[[FakeHost, str], Coroutine[Any, Any, None]]] = [
            self._talk, self._talk, self._cancel, self._queue, self._change, self._change_while_running,
        ]  # fmt: skip

    async def work(self, host: FakeHost, session_ids: Sequence[str]) -> None:
        """Let all of the sessions work at once until the sidecar is gone."""
        await asyncio.gather(*(self._until_gone(host, session_id) for session_id in session_ids))

    async def rounds(self, host: FakeHost, session_ids: Sequence[str], rounds: int) -> None:
        """Let all of the sessions do so many things each."""

        async def some(session_id: str) -> None:
            await self._open(host, session_id)
            for _ in range(rounds):
                await self._dice.choice(self._doings)(host, session_id)

        await asyncio.gather(*map(some, session_ids))

    async def _until_gone(self, host: FakeHost, session_id: str) -> None:
        with contextlib.suppress(HostGone):
            await self._open(host, session_id)
            while True:
                await self._dice.choice(self._doings)(host, session_id)

    async def _open(self, host: FakeHost, session_id: str) -> None:
        await host.request("createSession", {"sessionId": session_id, "state": {"name": session_id}})

    async def _talk(self, host: FakeHost, session_id: str) -> None:
        await self._run(host, session_id)

    async def _cancel(self, host: FakeHost, session_id: str) -> None:
        run = asyncio.ensure_future(self._run(host, session_id))
        await asyncio.sleep(self._dice.uniform(0, 0.03))
        try:
            await host.request("cancelRun", {"sessionId": session_id})
        finally:
            await run

    async def _queue(self, host: FakeHost, session_id: str) -> None:
        runs = [self._run(host, session_id, whenBusy="queue") for _ in range(3)]
        for outcome in await asyncio.gather(*runs, return_exceptions=True):
            if isinstance(outcome, BaseException):
                raise outcome

    async def _change(self, host: FakeHost, session_id: str) -> None:
        patch = {"n": self._dice.randrange(1000)}
        await host.request("updateSession", {"sessionId": session_id, "statePatch": patch})

    async def _change_while_running(self, host: FakeHost, session_id: str) -> None:
        run = asyncio.ensure_future(self._run(host, session_id))
        try:
            await self._change(host, session_id)
        finally:
            await run

    async def _run(self, host: FakeHost, session_id: str, **params: Any) -> None:
        self._count += 1
        kind = self._dice.choice(["talk", "talk", "slow", "fail", "call"])
        name = f"{self._count}-{self._dice.randrange(1 << 48):012x}"
        params = {"sessionId": session_id, "input": f"{kind} {session_id} {name}", "runId": name, **params}
        try:
            await host.request("run", params)
        except RpcError as error:
            if error.kind not in EXPECTED:
                raise
