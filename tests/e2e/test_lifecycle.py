"""How a sidecar ends: end of input, shutdown, signals, a client that is gone. Runs are settled, codes are right."""

import asyncio
import contextlib
import os
import select
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.bench.fake_model import FakeModel, Stall, T
from tests.bench.host import FakeHost, HostRun
from tests.bench.wire import Framing

BOTH: tuple[Framing, ...] = ("ndjson", "header")
GONE_S = 5
"""What the contract allows for persisting at the end."""


@pytest.fixture
def start_host(start_host: Any) -> Any:
    """As a user's host starts one: no process of the bench is its parent."""
    return lambda **options: start_host(fresh=True, **options)


class Scene:
    """A sidecar with a stored session, and a run on it whose model has gone silent."""

    def __init__(self, start_host: Any, model: FakeModel, store: str) -> None:
        self._start_host, self._model, self._store = start_host, model, store

    async def host(self, **options: Any) -> FakeHost:
        """A sidecar on the scene's store."""
        env = {**self._model.environment, **options.pop("env", {})}
        return await self._start_host(store=self._store, env=env, **options)

    async def stalled(self, host: FakeHost) -> HostRun:
        """A run that has said "Once" and then nothing more."""
        self._model.says(T("Once"), Stall())
        run = (await host.create_session(sessionId="s")).start("tell", runId="r")
        await run.text_contains("Once")
        return run

    async def assert_stored_as_interrupted(self) -> None:
        """Another sidecar finds the end of the run in the store, and its repair has nothing to do."""
        other = await self.host()
        run = (await other.request("getState", {"sessionId": "s", "runId": "r"}))["run"]
        assert (run["status"], run["stopReason"]) == ("interrupted", "interrupted")
        assert "endedAt" in run, "the end was computed by the reader, not stored by the writer"
        session = await other.resume_session("s", replayFrom={"type": "start"})
        assert "recovered" not in session.opened
        await other.until(lambda: session.events("run.completed"))
        assert await session.history() == [("user", "tell")]


@pytest.fixture
def scene(start_host: Any, model: FakeModel, store: str) -> Scene:
    """A sidecar that will have to end in the middle of a run."""
    return Scene(start_host, model, store)


def assert_told_as_interrupted(host: FakeHost, run: HostRun) -> None:
    """Event and answer both say so, the event first."""
    (completed,) = run.events("run.completed")
    assert (completed["data"]["status"], completed["data"]["stopReason"]) == ("interrupted", "interrupted")
    (answer,) = [message for message in host.messages if message.get("id") == run.asked.id]
    assert answer["result"]["status"] == "interrupted"
    assert answer["result"]["lastSeq"] == completed["seq"]
    assert answer["result"]["messages"][-1]["partial"] is True
    events = [message for message in host.messages if message.get("method") == "run/event"]
    assert host.messages.index(answer) > host.messages.index(events[-1])


async def gone(pid: int) -> None:
    """Wait until a process has ended, whether or not its output has been read."""

    def wait() -> None:
        with contextlib.suppress(ProcessLookupError):
            process = os.pidfd_open(pid)
            try:
                select.select([process], [], [])
            finally:
                os.close(process)

    await asyncio.to_thread(wait)


# ---- end of input ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("framing", "code"), [("ndjson", 0), ("header", 1)])
async def test_end_of_input_while_idle_ends_the_process(start_host: Any, framing: Framing, code: int) -> None:
    host = await start_host(framing=framing)
    host.hang_up()
    assert await host.wait() == code


async def test_no_input_at_all_is_a_script_that_had_nothing_to_say(start_host: Any) -> None:
    host = await start_host(greet=False)
    host.hang_up()
    assert await host.wait() == 0
    assert host.messages == []


@pytest.mark.parametrize(("framing", "args"), [("ndjson", ()), ("header", ("--on-eof", "finish"))])
async def test_what_a_script_asked_for_is_finished_after_its_input_ends(
    start_host: Any, model: FakeModel, framing: Framing, args: tuple[str, ...]
) -> None:
    host = await start_host(framing=framing, args=args, env=model.environment)
    model.says(T("a"), Stall(0.2), T("b"))
    session = await host.create_session()
    run, state = session.start("x"), host.ask("getState", {"sessionId": session.id})
    host.hang_up()

    assert await host.wait() == 0
    assert (await run.result())["text"] == "ab"
    assert (await state.result())["session"]["sessionId"] == session.id


@pytest.mark.parametrize(
    ("framing", "args", "code"),
    [("header", (), 1), ("ndjson", ("--on-eof", "cancel"), 0), ("ndjson", ("--eof-grace", "0.2"), 0)],
)
async def test_a_run_that_outlives_its_client_or_its_grace_is_interrupted(
    scene: Scene, framing: Framing, args: tuple[str, ...], code: int
) -> None:
    host = await scene.host(framing=framing, args=args)
    run = await scene.stalled(host)
    host.hang_up()

    async with asyncio.timeout(GONE_S):
        assert await host.wait() == code
    assert_told_as_interrupted(host, run)
    await scene.assert_stored_as_interrupted()


@pytest.mark.parametrize("framing", BOTH)
async def test_end_of_input_after_shutdown_is_a_clean_end(start_host: Any, framing: Framing) -> None:
    host = await start_host(framing=framing)
    await host.request("shutdown")
    host.hang_up()
    assert await host.wait() == 0


async def test_input_that_ends_inside_a_message_is_told_on_stderr(start_host: Any) -> None:
    host = await start_host(framing="header")
    host.write(b"Content-Length: 100\r\n\r\n{")
    host.hang_up()
    assert await host.wait() == 1
    assert b"ended inside" in host.stderr


async def test_a_last_line_needs_no_newline(host: FakeHost) -> None:
    host.write(b'{"jsonrpc":"2.0","id":1,"method":"getState"}')
    host.hang_up()
    assert await host.wait() == 0
    assert host.messages[-1]["id"] == 1


# ---- shutdown and exit -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("framing", BOTH)
async def test_exit_is_0_after_shutdown_and_1_without(start_host: Any, framing: Framing) -> None:
    polite, rude = await start_host(framing=framing), await start_host(framing=framing)
    await polite.request("shutdown")
    polite.notify("exit")
    rude.notify("exit")
    assert (await polite.wait(), await rude.wait()) == (0, 1)


async def test_exit_before_initialize_is_1(start_host: Any) -> None:
    host = await start_host(greet=False)
    host.notify("exit")
    assert await host.wait() == 1


async def test_shutdown_is_answered_soon_and_settles_what_runs(scene: Scene) -> None:
    host = await scene.host()
    run = await scene.stalled(host)

    async with asyncio.timeout(7.5):
        await host.request("shutdown")

    assert_told_as_interrupted(host, run)
    assert [message["id"] for message in host.messages if "id" in message][-2] == run.asked.id
    host.notify("exit")
    assert await host.wait() == 0
    await scene.assert_stored_as_interrupted()


async def test_exit_during_a_run_settles_it_too(scene: Scene) -> None:
    host = await scene.host()
    await scene.stalled(host)
    host.notify("exit")
    assert await host.wait() == 1
    await scene.assert_stored_as_interrupted()


# ---- signals -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
async def test_a_signal_ends_as_shutdown_does(scene: Scene, number: signal.Signals) -> None:
    host = await scene.host()
    run = await scene.stalled(host)
    host.kill(number)

    async with asyncio.timeout(GONE_S):
        assert await host.wait() == 128 + number
    assert_told_as_interrupted(host, run)
    await scene.assert_stored_as_interrupted()


async def test_a_second_signal_does_not_wait_for_a_client_that_does_not_read(start_host: Any) -> None:
    host = await start_host(args=("--log-level", "info"))
    many = [host.ask("getSchema") for _ in range(40)]
    await many[0].result()
    host.paused.clear()
    host.kill(signal.SIGTERM)
    await host.until(lambda: b"ending" in host.stderr)
    host.kill(signal.SIGTERM)

    async with asyncio.timeout(1.5):  # the client alone would get two seconds
        await gone(host.process.pid)
    host.may_be_cut = True
    host.paused.set()
    assert await host.wait() == 143


# ---- a client that is gone ---------------------------------------------------------------------------------------

PARENT = """
import subprocess, sys
child = subprocess.Popen(sys.argv[1:])
sys.stderr.write(f"pid {child.pid} of the sidecar\\n")
sys.stderr.flush()
child.wait()
"""


async def test_the_death_of_the_parent_ends_a_sidecar_whose_pipes_stay_open(scene: Scene) -> None:
    host = await scene.host(under=(sys.executable, "-c", PARENT))
    await scene.stalled(host)
    await host.until(lambda: b"of the sidecar" in host.stderr)
    pid = int(host.stderr.split()[1])
    host.kill()

    async with asyncio.timeout(GONE_S):
        await host.process.wait()
        await host.until_end()
        await gone(pid)
    await scene.assert_stored_as_interrupted()


async def test_the_death_of_the_named_process_ends_the_sidecar(scene: Scene) -> None:
    client = await asyncio.create_subprocess_exec("sleep", "600")
    host = await scene.host(initialize={"processId": client.pid})
    await scene.stalled(host)
    client.kill()
    await client.wait()

    async with asyncio.timeout(GONE_S):
        assert await host.wait() == 1
    await scene.assert_stored_as_interrupted()


async def test_a_named_process_that_is_not_here_is_not_waited_for(start_host: Any) -> None:
    host = await start_host(initialize={"processId": 2**22 + 1})
    assert (await host.request("getState"))["server"]["openSessions"] == 0


@pytest.mark.parametrize("framing", BOTH)
async def test_a_host_that_closes_its_end_of_stdout_is_gone(scene: Scene, framing: Framing) -> None:
    host = await scene.host(framing=framing)
    await scene.stalled(host)
    host.stop_reading()

    async with asyncio.timeout(GONE_S):
        assert await host.process.wait() == 1
    await scene.assert_stored_as_interrupted()


async def test_a_script_whose_reader_goes_away_does_not_finish_its_work(scene: Scene) -> None:
    host = await scene.host()
    await scene.stalled(host)
    host.hang_up()
    host.stop_reading()

    async with asyncio.timeout(GONE_S):
        assert await host.process.wait() == 1
    await scene.assert_stored_as_interrupted()


async def test_nothing_of_the_sidecar_is_left_when_it_has_ended(scene: Scene, tmp_path: Path) -> None:
    host = await scene.host(cwd=tmp_path)
    run = await scene.stalled(host)
    assert children_of(host.process.pid) == []
    await run.session.cancel()
    await run.result()
    host.hang_up()
    assert await host.wait() == 0
    assert files_in(tmp_path) == {"sessions.db"}, "a file was left over"


def children_of(pid: int) -> list[str]:
    """The processes that a process has started."""
    return Path(f"/proc/{pid}/task/{pid}/children").read_text().split()


def files_in(folder: Path) -> set[str]:
    """Every file in a folder, at any depth."""
    return {path.name for path in folder.rglob("*") if path.is_file()}
