"""One owner a session: locks between processes, takeover after a kill, repair of what a dead process left."""

import asyncio
import signal
from typing import Any

from tests.bench.fake_model import FakeModel, Stall, T
from tests.bench.host import FakeHost, HostRun


async def stalled(host: FakeHost, model: FakeModel) -> HostRun:
    """A run that has said "Once" and then nothing more."""
    model.says(T("Once"), Stall())
    run = (await host.create_session(sessionId="s", state={"n": 1})).start("tell", runId="r")
    await run.text_contains("Once")
    return run


async def test_another_live_process_owns_its_session(start_host: Any, store: str) -> None:
    owner = await start_host(store=store)
    payload = {"sessionId": "s", "model": "scripted:echo"}
    session = await owner.create_session(**payload)
    await session.run("hello", runId="r")
    other = await start_host(store=store)

    for method, params in (("resumeSession", {"sessionId": "s"}), ("createSession", payload)):
        refused = await other.refusal(method, params)
        assert (method, refused.code, refused.kind) == (method, 4043, "sessionLocked")
        assert refused.data["pid"] == owner.process.pid
        assert refused.data["since"]
    assert (await other.refusal("run", {"sessionId": "s", "input": "x"})).kind in ("sessionClosed", "sessionLocked")
    state = await other.request("getState", {"sessionId": "s", "runId": "r"})
    assert (state["session"]["open"], state["run"]["status"]) == (False, "completed")
    assert len((await other.request("getHistory", {"sessionId": "s"}))["messages"]) == 2
    assert [info["sessionId"] for info in (await other.request("listSessions"))["sessions"]] == ["s"]
    assert (await session.run("mine"))["text"] == "mine"

    await owner.request("closeSession", {"sessionId": "s"})
    taken = await other.resume_session("s")
    assert (await taken.run("yours"))["text"] == "yours"
    assert (await owner.refusal("resumeSession", {"sessionId": "s"})).data["pid"] == other.process.pid


async def test_a_run_of_another_process_is_shown_running_and_cannot_be_cancelled_here(
    start_host: Any, model: FakeModel, store: str
) -> None:
    owner = await start_host(store=store, env=model.environment)
    run = await stalled(owner, model)
    other = await start_host(store=store)

    state = await other.request("getState", {"sessionId": "s", "runId": "r"})
    assert (state["session"]["status"], state["run"]["status"]) == ("running", "running")
    assert "unchanged" not in await other.request("getState", {"sessionId": "s", "ifRevision": state["revision"]})
    assert (await other.refusal("cancelRun", {"sessionId": "s", "runId": "r"})).kind == "sessionLocked"
    assert (await other.request("cancelRun", {"sessionId": "s", "runId": "x"})) == {"status": "notRunning"}
    await run.session.cancel()
    await run.result()
    assert (await other.request("cancelRun", {"sessionId": "s", "runId": "r"})) == {"status": "alreadyFinished"}


async def test_a_run_killed_in_mid_stream_is_repaired_at_takeover(
    start_host: Any, model: FakeModel, store: str
) -> None:
    owner = await start_host(store=store, env=model.environment)
    run = await stalled(owner, model)
    seen = run.session.durable()
    other = await start_host(store=store, env=model.environment)
    owner.kill()
    await owner.wait()

    before = await other.request("getState", {"sessionId": "s", "runId": "r"})
    assert (before["run"]["status"], before["run"]["stopReason"]) == ("interrupted", "interrupted")
    assert before["session"]["status"] == "idle"
    assert await other.request("cancelRun", {"sessionId": "s", "runId": "r"}) in (
        {"status": "alreadyFinished"},
        {"status": "notRunning"},
    )
    async with asyncio.timeout(2 * 10):
        session = await other.resume_session("s", replayFrom={"type": "start"})

    assert session.opened["recovered"]["interruptedRuns"] == ["r"]
    assert "activeRun" not in session.opened
    assert session.opened["session"]["epoch"] == run.session.opened["session"]["epoch"]
    await other.until(lambda: session.events("run.completed"))
    assert [event["seq"] for event in session.durable()] == list(range(1, len(seen) + 2))
    assert [event["type"] for event in session.durable()] == [*(event["type"] for event in seen), "run.completed"]
    assert session.durable()[-1]["data"]["status"] == "interrupted"
    assert await session.history() == [("user", "tell")]
    assert (await session.state())["state"] == {"n": 1}
    assert await session.cancel(runId="r") == "alreadyFinished"
    assert (await session.run("tell", runId="r"))["status"] == "interrupted"
    model.says("more")
    assert (await session.run("next"))["text"] == "more"
    assert [message["content"] for message in model.last_request.messages if message["role"] != "system"] == [
        "tell",
        "next",
    ]
    again = await other.resume_session("s")
    assert "recovered" not in again.opened


async def test_a_create_that_is_tried_again_after_a_kill_repairs_too(
    start_host: Any, model: FakeModel, store: str
) -> None:
    owner = await start_host(store=store, env=model.environment)
    await stalled(owner, model)
    owner.kill()
    await owner.wait()

    host = await start_host(store=store, env=model.environment)
    session = await host.create_session(sessionId="s", state={"n": 1})
    assert (await session.state(runId="r"))["run"]["status"] == "interrupted"
    model.says("more")
    assert (await session.run("next"))["text"] == "more"


async def test_a_crash_during_the_repair_is_repaired(start_host: Any, model: FakeModel, store: str) -> None:
    owner = await start_host(store=store, env=model.environment)
    await stalled(owner, model)
    owner.kill()
    await owner.wait()
    for point in ("store.commit.before:1", "store.commit.after:1"):
        env = {"AGENT_SIDECAR_TESTING": "1", "AGENT_SIDECAR_CRASH_AT": point}
        host = await start_host(store=store, env=env)
        host.ask("resumeSession", {"sessionId": "s"})
        host.send({"jsonrpc": "2.0", "method": "exit"})
        await host.wait()

    host = await start_host(store=store, env=model.environment)
    session = await host.resume_session("s", replayFrom={"type": "start"})
    await host.until(lambda: session.events("run.completed"))
    assert len(session.events("run.completed")) == 1
    assert [event["seq"] for event in session.durable()] == list(range(1, session.opened["lastSeq"] + 1))


async def test_a_process_that_was_stopped_writes_nothing_into_a_session_that_was_taken_over(
    start_host: Any, model: FakeModel, store: str
) -> None:
    owner = await start_host(store=store, env=model.environment)
    run = await stalled(owner, model)
    owner.kill(signal.SIGSTOP)
    other = await start_host(store=store, env=model.environment)
    assert (await other.refusal("resumeSession", {"sessionId": "s"})).kind == "sessionLocked"
    owner.kill(signal.SIGCONT)
    await run.session.cancel()
    assert (await run.result())["status"] == "cancelled"
