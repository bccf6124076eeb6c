"""BR-05 and BR-07: one run that is stuck starves nobody, and nothing but frames reaches stdout."""

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.bench.fake_model import FakeModel, Ping, Reply, Stall, T
from tests.bench.host import FakeHost

SLACK = 10
"""How many times the stated bound a loaded machine may take."""


@asynccontextmanager
async def within(seconds: float) -> AsyncIterator[None]:
    """The stated bound."""
    async with asyncio.timeout(seconds * SLACK):
        yield


# ---- BR-05 -------------------------------------------------------------------------------------------------------

STUCK = {
    "after some text": Reply([T("a"), Stall()]),
    "before its headers": Reply(before_head=[Stall()]),
    "in comments": Reply([T("a"), Ping(0.01)]),
}


@pytest.mark.parametrize("reply", STUCK.values(), ids=STUCK)
async def test_everything_else_goes_on_while_one_run_is_stuck(
    start_host: Any, model: FakeModel, store: str, reply: Reply
) -> None:
    host: FakeHost = await start_host(store=store, env=model.environment)
    stuck = await host.create_session()
    model.replies(reply)
    run = stuck.start("go")
    await model.received()

    async with within(0.1):
        assert (await stuck.state())["activeRun"]["runId"] == run.id
    async with within(1):
        other = await host.create_session()
        model.says("quick")
        assert (await other.run("go"))["text"] == "quick"
    async with within(1):
        assert await stuck.cancel() == "cancelling"
        assert (await run.result())["status"] == "cancelled"
    model.replies(reply)
    again = stuck.start("once more")
    await model.received(3)
    async with within(1.5):
        await host.request("shutdown")
    assert (await again.result())["status"] == "interrupted"
    assert [event["data"]["status"] for event in stuck.events("run.completed")] == ["cancelled", "interrupted"]


async def test_requests_of_one_read_are_served_while_their_run_is_stuck(start_host: Any, model: FakeModel) -> None:
    host: FakeHost = await start_host(env=model.environment)
    stuck = await host.create_session(sessionId="s1")
    model.says(T("a"), Stall())
    run = stuck.start("go")
    asked = [
        host.ask("getState", {"sessionId": "s1"}),
        host.ask("createSession", {"sessionId": "s2", "model": "scripted:echo"}),
        host.ask("run", {"sessionId": "s2", "input": "quick"}),
        host.ask("cancelRun", {"sessionId": "s1"}),
        host.ask("shutdown"),
    ]
    async with within(3):
        state, _, quick, cancel, _ = [await one.message() for one in asked]
    assert state["result"]["session"]["status"] == "running"
    assert cancel["result"]["status"] == "cancelling"
    assert (await run.result())["status"] == "cancelled"
    assert quick["result"]["status"] in ("completed", "interrupted")


# ---- BR-07 -------------------------------------------------------------------------------------------------------

NOISE = """
import ctypes, logging, os, subprocess, sys, threading, time, warnings
from importlib.abc import MetaPathFinder

LIBC = ctypes.CDLL(None)
LIBC.setvbuf.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int, ctypes.c_size_t]

def noise(where):
    print(f"[print {where}]")
    sys.stdout.write(f"[stdout {where}]\\n")
    os.write(1, f"[fd {where}]\\n".encode())
    LIBC.puts(f"[libc {where}]".encode())
    LIBC.fflush(None)
    warnings.warn(f"[warning {where}]", stacklevel=1)
    subprocess.run(["/bin/sh", "-c", f"echo '[child {where}]'; cat"], timeout=10)

def chatter():
    while True:
        print("[chatter]")
        time.sleep(0.001)

class OnImport(MetaPathFinder):
    # What a provider's or a tool's module might do when it is imported, or later.
    def find_spec(self, name, path=None, target=None):
        if name == "sidecar.app":
            sys.meta_path.remove(self)
            noise("at import")
            logging.basicConfig(stream=sys.stdout)
            logging.getLogger("theirs").warning("[logging]")
            threading.Thread(target=chatter, daemon=True).start()
        return None

sys.meta_path.insert(0, OnImport())
"""
KINDS = ("print", "stdout", "fd", "libc", "warning", "child")


@pytest.fixture
def noisy(tmp_path: Path) -> dict[str, str]:
    """The environment of a sidecar whose process prints by every way there is, as foreign code in it would."""
    folder = tmp_path / "noisy"
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(NOISE)
    return {"PYTHONPATH": str(folder)}


async def test_whatever_code_in_the_process_prints_stdout_holds_frames_only(
    start_host: Any, model: FakeModel, noisy: dict[str, str]
) -> None:
    host: FakeHost = await start_host(env={**model.environment, **noisy})
    model.otherwise(lambda request: [f"{number} " for number in range(200)])
    sessions = [await host.create_session() for _ in range(2)]

    results = [await run.result() for run in [session.start("go") for session in sessions]]

    said = "".join(f"{number} " for number in range(200))
    assert [result["text"] for result in results] == [said, said]
    lines = host.stderr.decode().splitlines()
    for kind in KINDS:
        assert any(f"[{kind} at import]" in line for line in lines), f"{kind} is lost"
    assert lines.count("[chatter]") > 10


async def test_a_key_command_that_talks_does_not_reach_the_wire(
    start_host: Any, model: FakeModel, tmp_path: Path
) -> None:
    command = tmp_path / "key.py"
    command.write_text("import sys; sys.stderr.write('noise\\n'); print('sk-' + repr(sys.stdin.read()))")
    config = tmp_path / "key.toml"
    endpoint = {"base_url": model.url, "api_key_command": [sys.executable, str(command)]}
    lines = [f"{key} = {json.dumps(value)}" for key, value in endpoint.items()]
    config.write_text("\n".join(["[endpoints.mine]", 'type = "openai"', *lines]))
    host: FakeHost = await start_host(args=("--config", str(config)))
    session = await host.create_session(model="mine:fake")
    model.says("hello")

    assert (await session.run("hi"))["text"] == "hello"

    assert model.last_request.headers["authorization"] == "Bearer sk-''", "the child read from our input"
    assert "sk-" not in json.dumps(host.messages) + host.stderr.decode()
