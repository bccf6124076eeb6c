"""Several sidecars on one store, as two editor windows and a command line make them; ownership alone is beside it."""

import asyncio
import sqlite3
import time
from contextlib import closing
from pathlib import Path
from typing import Any, Final

from tests.bench.fake_model import FakeModel, Recorded, Stall, T
from tests.bench.host import FakeHost, HostSession

PROCESSES: Final = 8
SESSIONS: Final = 3
"""Of each process."""
TURNS: Final = 4
"""Of each session."""
AT_ONCE_S: Final = 2.0 * 5
"""How long it may take to open what a killed process left: 2 s, times what a loaded machine needs."""

Transcript = list[tuple[str, str]]


async def test_eight_processes_work_on_one_store_at_once_and_lose_nothing(
    start_host: Any, model: FakeModel, store: str, tmp_path: Path
) -> None:
    model.otherwise(heard)
    hosts: list[FakeHost] = await asyncio.gather(
        *(start_host(store=store, env=model.environment) for _ in range(PROCESSES))
    )

    await asyncio.gather(
        *(work(host, f"{number}.{which}") for number, host in enumerate(hosts) for which in range(SESSIONS))
    )

    for number in range(PROCESSES):
        neighbour = hosts[(number + 1) % PROCESSES]
        for session_id in (f"{number}.{which}" for which in range(SESSIONS)):
            assert await read(neighbour, session_id) == talk(session_id)
            seen = [event["seq"] for event in hosts[number].events(session_id) if not event.get("ephemeral")]
            events = await neighbour.request("getEvents", {"sessionId": session_id, "afterSeq": 0, "limit": 1000})
            assert [event["seq"] for event in events["events"]] == seen == list(range(1, len(seen) + 1))
    listed = (await hosts[0].request("listSessions", {"limit": 1000}))["sessions"]
    assert sorted(info["sessionId"] for info in listed) == sorted(
        f"{number}.{which}" for number in range(PROCESSES) for which in range(SESSIONS)
    )
    assert len(model.requests) == PROCESSES * SESSIONS * TURNS, "a turn was done twice"
    with closing(sqlite3.connect(tmp_path / "sessions.db")) as database:
        assert database.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


async def test_a_second_process_reads_a_session_that_is_owned_and_takes_it_over_when_its_owner_is_killed(
    start_host: Any, model: FakeModel, store: str
) -> None:
    model.otherwise(heard)
    owner: FakeHost = await start_host(store=store, env=model.environment)
    session = await work(owner, "s")
    other: FakeHost = await start_host(store=store, env=model.environment)
    model.says(T("Once"), Stall())
    cut = session.start("tell", runId="cut")
    await cut.text_contains("Once")

    refused = await other.refusal("resumeSession", {"sessionId": "s"})
    assert (refused.kind, refused.data["pid"]) == ("sessionLocked", owner.process.pid)
    assert await read(other, "s") == [*talk("s"), ("user", "tell")]
    shown = await other.request("getState", {"sessionId": "s", "runId": "cut"})
    assert (shown["session"]["status"], shown["run"]["status"]) == ("running", "running")
    seen = session.durable()
    events = await other.request("getEvents", {"sessionId": "s", "afterSeq": 0, "limit": 1000})
    assert [event["seq"] for event in events["events"]] == [event["seq"] for event in seen]

    owner.kill()
    await owner.wait()
    asked = time.monotonic()
    taken = await other.resume_session("s")
    assert time.monotonic() - asked < AT_ONCE_S
    assert taken.opened["recovered"]["interruptedRuns"] == ["cut"]
    assert (await taken.run("and now"))["text"] == "I heard and now"
    whole = [*talk("s"), ("user", "tell"), ("user", "and now"), ("assistant", "I heard and now")]
    assert await taken.history() == whole
    assert conversation(model.last_request) == [text for _, text in whole[:-1]]


def heard(request: Recorded) -> list[str]:
    """What the model answers to anything."""
    return ["I heard ", request.last_user_text]


async def work(host: FakeHost, session_id: str) -> HostSession:
    """Make a session and let it do its turns."""
    session = await host.create_session(sessionId=session_id)
    for turn in range(TURNS):
        assert (await session.run(f"{session_id}: {turn}"))["status"] == "completed"
    return session


def talk(session_id: str) -> Transcript:
    """The transcript that `work` makes."""
    return [
        message
        for turn in range(TURNS)
        for message in (("user", f"{session_id}: {turn}"), ("assistant", f"I heard {session_id}: {turn}"))
    ]


async def read(host: FakeHost, session_id: str) -> Transcript:
    """The transcript, as a process reads it that has not opened the session."""
    assert not (await host.request("getState", {"sessionId": session_id}))["session"]["open"]
    return await HostSession(host, session_id, {}).history()


def conversation(request: Recorded) -> list[str]:
    """What a model request held, without instructions."""
    return [message["content"] for message in request.messages if message["role"] != "system"]
