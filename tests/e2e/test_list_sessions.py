"""`listSessions` by workspace: several processes on one store, each in a folder of its own."""

from pathlib import Path
from typing import Any

from tests.bench.host import FakeHost


async def ids(host: FakeHost, **params: Any) -> list[str]:
    return [info["sessionId"] for info in (await host.request("listSessions", params))["sessions"]]


async def test_a_workspaces_sessions_are_found_from_any_process_however_the_folder_was_named(
    start_host: Any, store: str, tmp_path: Path
) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    one.mkdir()
    other.mkdir()
    root: FakeHost = await start_host(store=store, initialize={"rootUri": one.as_uri()})
    folders: FakeHost = await start_host(
        store=store, initialize={"workspaceFolders": [{"uri": one.as_uri(), "name": "one"}]}
    )
    started: FakeHost = await start_host(store=store, cwd=one)
    elsewhere: FakeHost = await start_host(store=store, cwd=other)
    for host, name in ((root, "root"), (folders, "folders"), (started, "started"), (elsewhere, "elsewhere")):
        await host.create_session(sessionId=name, model="scripted:echo")
    await elsewhere.create_session(sessionId="named", model="scripted:echo", cwd=str(one))
    await elsewhere.create_session(sessionId="slashed", model="scripted:echo", cwd=f"{one}/")

    assert await ids(elsewhere, cwd=str(one)) == ["slashed", "named", "started", "folders", "root"]
    assert await ids(root, cwd=f"{one}/") == ["slashed", "named", "started", "folders", "root"]
    assert await ids(root, cwd=str(other)) == ["elsewhere"]
    assert await ids(root, cwd=str(tmp_path)) == []


async def test_each_row_has_the_sessions_usage_of_all_its_runs(start_host: Any, store: str) -> None:
    owner: FakeHost = await start_host(store=store)
    session = await owner.create_session(sessionId="s", model="scripted:echo")
    results = [await session.run("12345678"), await session.run("12345678")]
    other: FakeHost = await start_host(store=store)

    (row,) = (await other.request("listSessions"))["sessions"]

    summed = {key: sum(result["usage"][key] for result in results) for key in ("inputTokens", "outputTokens")}
    assert row["usage"] == {**summed, "estimated": True}
    assert summed["inputTokens"] > 0
    assert (await other.request("getState", {"sessionId": "s"}))["usage"] == row["usage"]
