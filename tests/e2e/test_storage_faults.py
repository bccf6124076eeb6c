"""Storage that fails: told in the answer that it affects; the process lives, and saving resumes by itself."""

import contextlib
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from tests.bench.fake_model import FakeModel, Stall, T
from tests.bench.host import FakeHost, RpcError
from tests.bench.small_disk import SmallDisk

START = {"type": "start"}


async def assert_lives_without_its_store(host: FakeHost) -> None:
    """What needs no store works: looking in, an ephemeral session, a one-off run."""
    assert "server" in await host.request("getState")
    session = await host.create_session(model="scripted:echo", ephemeral=True)
    assert (await session.run("hello"))["text"] == "hello"
    one_off = {"input": "hi", "agent": {"model": "scripted:echo"}}
    assert (await host.request("run", one_off))["text"] == "hi"


# ---- a store that cannot be opened -------------------------------------------------------------------------------


def text_file(path: Path) -> None:
    path.write_text("Dear diary,\n" * 100)


def database_of_others(path: Path) -> None:
    with contextlib.closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE diary (entry TEXT)")


def newer_store(path: Path) -> None:
    with contextlib.closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("PRAGMA user_version = 99")


def folder(path: Path) -> None:
    path.mkdir()


@pytest.mark.parametrize("make", [text_file, database_of_others, folder])
async def test_a_file_that_is_no_store_is_refused_by_name_and_left_alone(
    start_host: Any, tmp_path: Path, make: Any
) -> None:
    path = tmp_path / "diary"
    make(path)
    before = path.read_bytes() if path.is_file() else None
    host = await start_host(store=f"sqlite:{path}")

    for method, params in (
        ("createSession", {}),
        ("resumeSession", {"sessionId": "s"}),
        ("listSessions", {}),
        ("getHistory", {"sessionId": "s"}),
    ):
        refused = await host.refusal(method, params)
        assert (method, refused.code, refused.kind) == (method, 4042, "storageFailed")
        assert str(path) in refused.message
        assert "--store" in refused.message
    await assert_lives_without_its_store(host)
    assert (path.read_bytes() if path.is_file() else None) == before


async def test_a_store_of_a_newer_version_is_refused_and_left_alone(start_host: Any, tmp_path: Path) -> None:
    path = tmp_path / "sessions.db"
    host = await start_host(store=f"sqlite:{path}")
    await host.create_session(sessionId="s")
    host.hang_up()
    await host.wait()
    newer_store(path)

    host = await start_host(store=f"sqlite:{path}")
    refused = await host.refusal("createSession")
    assert refused.kind == "storageFailed"
    assert "newer" in refused.message
    await assert_lives_without_its_store(host)
    with contextlib.closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (99,)


async def test_a_store_that_becomes_usable_is_used_without_a_restart(start_host: Any, tmp_path: Path) -> None:
    path = tmp_path / "sessions.db"
    text_file(path)
    host = await start_host(store=f"sqlite:{path}")
    assert (await host.refusal("createSession")).kind == "storageFailed"
    path.unlink()
    assert (await (await host.create_session(model="scripted:echo")).run("hello"))["text"] == "hello"


# ---- a disk that is full -----------------------------------------------------------------------------------------


async def test_nothing_is_acknowledged_on_a_full_disk_and_saving_resumes_with_space(
    start_host: Any, model: FakeModel, small_disk: SmallDisk
) -> None:
    host = await start_host(store=small_disk.store, env=model.environment)
    session = await host.create_session(sessionId="s")
    small_disk.fill()

    refused = await host.refusal("createSession", {"sessionId": "t", "metadata": {"pad": "x" * 100_000}})
    assert (refused.code, refused.kind) == (4042, "storageFailed")
    assert "space" in refused.message
    with pytest.raises(RpcError) as not_begun:
        await session.run("x" * 100_000, runId="r")
    assert not_begun.value.kind == "storageFailed"
    assert model.requests == [], "a model call was made for a run that is stored nowhere"
    assert session.events() == []
    await assert_lives_without_its_store(host)

    small_disk.free()
    model.says("hello")
    assert (await session.run("x" * 100_000, runId="r"))["text"] == "hello"
    assert await host.create_session(sessionId="t", metadata={"pad": "x" * 100_000})
    assert [event["seq"] for event in session.durable()] == list(range(1, session.durable()[-1]["seq"] + 1))


async def test_a_reply_that_cannot_be_stored_is_delivered_and_stored_later(
    start_host: Any, model: FakeModel, small_disk: SmallDisk
) -> None:
    host = await start_host(store=small_disk.store, env=model.environment)
    session = await host.create_session(sessionId="s")
    long = "y" * 100_000
    model.says(T("Once"), Stall(0.5), T(long))
    run = session.start("tell", runId="r")
    await run.text_contains("Once")
    stored = len(session.durable())
    small_disk.fill()

    result = await run.result()

    assert result["status"] == "completed"
    assert result["text"] == "Once" + long
    assert [warning["kind"] for warning in result["warnings"]] == ["storageFailed"]
    completed = session.events("run.completed")[-1]
    assert completed["ephemeral"] is True
    assert (completed["seq"], completed["sub"] > 0) == (stored, True)
    assert result["lastSeq"] == stored
    assert len(session.durable()) == stored
    with pytest.raises(RpcError) as not_begun:
        await session.run("next")
    assert not_begun.value.kind == "storageFailed"
    assert len(model.requests) == 1

    small_disk.free()
    model.says("on")
    assert (await session.run("next"))["text"] == "on"
    assert [message["content"] for message in model.last_request.messages if message["role"] != "system"] == [
        "tell",
        "Once" + long,
        "next",
    ]
    assert [role for role, _ in await session.history()] == ["user", "assistant", "user", "assistant"]
    host.kill()
    await host.wait()
    again = await (await start_host(store=small_disk.store)).resume_session("s", replayFrom=START)
    await again.host.until(lambda: len(again.events("run.completed")) == 2)
    assert [event["seq"] for event in again.durable()] == list(range(1, again.opened["lastSeq"] + 1))
    assert {event["data"]["status"] for event in again.events("run.completed")} == {"completed"}


async def test_a_process_whose_disk_is_full_ends_when_it_is_told_to(
    start_host: Any, model: FakeModel, small_disk: SmallDisk
) -> None:
    host = await start_host(store=small_disk.store, env=model.environment)
    session = await host.create_session(sessionId="s")
    model.says(T("Once" + "x" * 100_000), Stall())
    run = session.start("tell", runId="r")
    await run.text_contains("Once")
    small_disk.fill()

    await host.request("shutdown")
    assert (await run.result())["status"] == "interrupted"
    host.notify("exit")
    assert await host.wait() == 0
    small_disk.free()
    again = await (await start_host(store=small_disk.store)).resume_session("s")
    assert again.opened["recovered"]["interruptedRuns"] == ["r"]
    assert await again.history() == [("user", "tell")]


async def test_a_disk_that_is_read_only_is_told_and_reads_go_on(
    start_host: Any, model: FakeModel, small_disk: SmallDisk
) -> None:
    first = await start_host(store=small_disk.store, env=model.environment)
    model.says("hello")
    await (await first.create_session(sessionId="s")).run("hi")
    first.hang_up()
    await first.wait()
    small_disk.remount("ro")

    host = await start_host(store=small_disk.store, env=model.environment)
    refused = await host.refusal("createSession", {"sessionId": "t"})
    assert refused.kind == "storageFailed"
    await assert_lives_without_its_store(host)
    small_disk.remount("rw")
    session = await host.resume_session("s")
    model.says("again")
    assert (await session.run("hi"))["text"] == "again"
