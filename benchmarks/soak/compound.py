"""F13: faults on top of faults. A crash in the repair, a full disk in the repair, two processes at once."""

import asyncio
import contextlib
import os
import random
import signal
import subprocess
import tempfile
from collections.abc import AsyncGenerator, Generator, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Final

from tests.bench.busy import Busy
from tests.bench.fake_model import FakeModel, Stall, T
from tests.bench.host import FakeHost, HostGone
from tests.bench.ledger import Ledger
from tests.bench.promises import hold

from .report import Part

IDS: Final = [f"c{number}" for number in range(4)]


class _Scene:
    """A store with runs that a dead process left in the middle."""

    def __init__(self, folder: Path, model: FakeModel, ledger: Ledger, dice: random.Random) -> None:
        self.store = f"sqlite:{folder / 'sessions.db'}"
        self.model = model
        self.ledger = ledger
        self.dice = dice
        self.busy = Busy(model, dice)

    def host(self, *, crash_at: str | None = None, greet: bool = True) -> FakeHost:
        """A sidecar on the store."""
        armed = {"AGENT_SIDECAR_TESTING": "1", "AGENT_SIDECAR_CRASH_AT": crash_at} if crash_at else {}
        env = {**self.model.environment, **armed}
        return FakeHost(store=self.store, env=env, ledger=self.ledger, greet=greet)

    async def leave_runs_behind(self) -> None:
        """Every session works, has a run under way, and loses its process."""
        async with self.host() as host:
            await self.busy.rounds(host, IDS, 1)
            self.model.otherwise(lambda request: [T("Once"), Stall()])
            for session_id in IDS:
                name = f"cut-{self.dice.randrange(1 << 48):012x}"
                host.ask("run", {"sessionId": session_id, "input": f"talk {session_id} {name}", "runId": name})
            seen = len(host.events(None, "message.delta"))
            await host.until(lambda: len(host.events(None, "message.delta")) >= seen + len(IDS))
            host.kill()
            await host.wait()
        self.busy = Busy(self.model, self.dice)

    async def judge(self) -> None:
        """The promises hold, and every session goes on working."""
        async with self.host() as host:
            await hold(self.ledger, host, self.model.requests)
            await self.busy.rounds(host, IDS, 2)
            tally = await hold(self.ledger, host, self.model.requests)
            assert tally.sessions == len(IDS)


@asynccontextmanager
async def _scene(folder: Path, dice: random.Random) -> AsyncGenerator[_Scene, None]:
    async with FakeModel() as model:
        with contextlib.closing(Ledger(folder / "ledger.jsonl")) as ledger:
            scene = _Scene(folder, model, ledger, dice)
            await scene.leave_runs_behind()
            yield scene
            await scene.judge()


async def crash_in_repair(part: Part, seed: int) -> None:
    """Two or three processes in a row die while they repair what the first one left."""
    dice = random.Random(seed)
    with tempfile.TemporaryDirectory(prefix="soak-repair-") as folder:
        async with _scene(Path(folder), dice) as scene:
            for _ in range(dice.choice((2, 3))):
                point = dice.choice(("recovery.before", "recovery.after", "store.commit.before", "store.commit.after"))
                async with scene.host(crash_at=f"{point}:{dice.choice((1, 2))}", greet=False) as host:
                    try:
                        await host.request("initialize")
                        for session_id in IDS:
                            await host.request("resumeSession", {"sessionId": session_id})
                        host.kill()  # the process before it had repaired too much for the point to be reached
                    except HostGone:
                        part.add(crashes_in_repair=1)


async def full_disk_in_repair(part: Part, seed: int) -> None:
    """The disk is full when the sessions are opened again; it is told, and opening works once there is room."""
    dice = random.Random(seed)
    with tempfile.TemporaryDirectory(prefix="soak-disk-") as folder, small_disk(Path(folder)) as disk:
        if disk is None:
            part.add(skipped_full_disk=1)
            return
        async with _scene(disk, dice) as scene:
            ballast = disk / "ballast"
            _fill(ballast)
            async with scene.host() as host:
                for session_id in IDS:
                    kind = await _refusal(host, session_id)
                    assert kind in (None, "storageFailed", "storageBusy"), f"promise 7: {session_id!r} was {kind}"
                    part.add(**{"refused_on_a_full_disk" if kind else "opened_on_a_full_disk": 1})
                    assert "server" in await host.request("getState")
                if dice.random() < 0.5:
                    host.kill()
                    await host.wait()
            ballast.unlink()
            part.add(full_disks=1)


async def two_at_once(part: Part, seed: int) -> None:
    """Two processes open the same sessions at the same instant: each has one owner; a stopped owner keeps its own."""
    dice = random.Random(seed)
    with tempfile.TemporaryDirectory(prefix="soak-two-") as folder:
        async with _scene(Path(folder), dice) as scene:
            async with scene.host(greet=False) as one, scene.host(greet=False) as other:
                owners = await asyncio.gather(*(_open_all(host) for host in (one, other)))
                for session_id in IDS:
                    had = [session_id in opened for opened in owners]
                    assert had.count(True) == 1, f"{session_id!r} has {had.count(True)} owners"
                one.kill(signal.SIGSTOP)
                for session_id in owners[0]:
                    kind = await _refusal(other, session_id)
                    assert kind == "sessionLocked", f"a stopped owner lost {session_id!r}: {kind}"
                one.kill()
                await one.wait()
                for session_id in IDS:
                    await other.request("resumeSession", {"sessionId": session_id})
                await scene.busy.rounds(other, IDS, 1)
                other.kill()
                await other.wait()
            part.add(pairs_of_processes=1)


async def _open_all(host: FakeHost) -> Sequence[str]:
    await host.request("initialize")
    opened: list[str] = []
    for session_id in IDS:
        kind = await _refusal(host, session_id)
        assert kind in (None, "sessionLocked"), f"{session_id!r} was {kind}"
        if kind is None:
            opened.append(session_id)
    return opened


async def _refusal(host: FakeHost, session_id: str) -> str | None:
    """Open a session; the kind of error, if it cannot be."""
    answer = await host.ask("resumeSession", {"sessionId": session_id}).message()
    return answer["error"]["data"]["kind"] if "error" in answer else None


@contextmanager
def small_disk(folder: Path) -> Generator[Path | None]:
    """A disk of eight mebibytes; `None` where none can be mounted."""
    mount = ["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", str(folder)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True, check=False).returncode:
        yield None
        return
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


def _fill(ballast: Path) -> None:
    with contextlib.suppress(OSError), ballast.open("wb", buffering=0) as file:
        while file.write(b"x" * 4096):
            pass


CELLS: Final = (crash_in_repair, full_disk_in_repair, two_at_once)
