"""`file_memory` over the wire: who shares files with whom, over sessions and restarts, and what links lead to."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from tests.bench.fake_model import FakeModel
from tests.bench.host import FakeHost, HostSession
from tests.bench.trees import picture

pytestmark = pytest.mark.skipif(os.name == "nt", reason="POSIX files")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "memory"


def memory(root: Path, scope: Any = None) -> list[dict[str, Any]]:
    """An agent's providers: one memory."""
    config: dict[str, Any] = {"store": {"type": "filesystem", "path": str(root)}}
    return [{"type": "file_memory", "config": config if scope is None else {**config, "scope": scope}}]


async def use(session: HostSession, model: FakeModel, tool: str, **arguments: Any) -> str:
    """What the model is told of one call of a tool."""
    model.calls(f"file_memory_{tool}", arguments)
    model.says("ok")
    assert (await session.run("go"))["status"] == "completed"
    return list(model.last_request.tool_results.values())[-1]


async def test_a_second_session_of_the_scope_recalls_and_no_other_sees_anything(
    start_host: Any, model: FakeModel, root: Path, store: str
) -> None:
    """Case 47."""
    host: FakeHost = await start_host(env=model.environment, store=store)
    first = await host.create_session(contextProviders=memory(root, "users/u1"))
    written = {"file_name": "food.md", "content": "no peanuts", "description": "What the user cannot eat."}
    assert await use(first, model, "write", **written) == "File 'food.md' written with description."

    second = await host.create_session(contextProviders=memory(root, "users/u1"))
    listed = json.loads(await use(second, model, "ls"))
    assert listed == [{"name": "food.md", "type": "file", "description": "What the user cannot eat."}]
    assert "- food.md: What the user cannot eat." in model.last_request.text
    assert await use(second, model, "read", file_name="food.md") == "no peanuts"

    for other in ("users/u2", {"userId": "users/u1"}, None):
        stranger = await host.create_session(contextProviders=memory(root, other))
        assert await use(stranger, model, "ls") == "[]"
        assert await use(stranger, model, "grep", regex_pattern="peanuts") == "[]"
        assert await use(stranger, model, "read", file_name="food.md") == "File 'food.md' not found."
        assert "What the user cannot eat." not in model.last_request.text
    assert await second.history() == [
        ("user", "go"), ("assistant", ""), ("tool", ""), ("assistant", "ok"),
        ("user", "go"), ("assistant", ""), ("tool", ""), ("assistant", "ok"),
    ]  # fmt: skip


async def test_whose_memory_it_is_comes_from_the_session_and_stays(
    start_host: Any, model: FakeModel, root: Path, store: str
) -> None:
    """Case 47."""
    host: FakeHost = await start_host(env=model.environment, store=store)
    scope = {"userId": {"fromState": "user_id"}}
    alice = await host.create_session(sessionId="a", state={"user_id": "alice"}, contextProviders=memory(root, scope))
    await use(alice, model, "write", file_name="n.md", content="ALICE", description="ALICE")
    bob = await host.create_session(state={"user_id": "bob"}, contextProviders=memory(root, scope))
    assert await use(bob, model, "read", file_name="n.md") == "File 'n.md' not found."
    assert "ALICE" not in model.last_request.text
    host.hang_up()
    await host.wait()

    host = await start_host(env=model.environment, store=store)
    again = await host.resume_session("a")
    forged = {"scope": {"from": scope, "is": {"userId": "bob"}}}
    patch = {"user_id": "bob", "file_memory": forged}
    await host.request("updateSession", {"sessionId": "a", "statePatch": patch})
    assert await use(again, model, "read", file_name="n.md") == "ALICE"
    nobody = await host.refusal("createSession", {"contextProviders": memory(root, scope)})
    assert nobody.kind == "configInvalid"
    assert "the session's state has no text 'user_id'" in nobody.message


async def test_a_run_without_a_session_needs_a_scope(start_host: Any, model: FakeModel, root: Path) -> None:
    host: FakeHost = await start_host(env=model.environment)
    agent = {"name": "tester", "contextProviders": memory(root)}
    refused = await host.refusal("run", {"agent": agent, "input": "hi"})
    assert "needs a scope in a run without a session" in refused.message
    assert model.requests == []

    model.says("hello")
    agent = {"name": "tester", "contextProviders": memory(root, "users/u1")}
    assert (await host.request("run", {"agent": agent, "input": "hi"}))["text"] == "hello"
    assert "file_memory_write" in model.last_request.tool_names


async def test_a_scope_that_is_misspelt_is_refused_when_the_session_is_made(host: FakeHost, root: Path) -> None:
    refused = await host.refusal("createSession", {"contextProviders": memory(root, {"userID": "u1"})})

    assert refused.kind == "configInvalid"
    assert "did you mean 'userId'?" in refused.message


BAD_NAMES = ["../../x", "/etc/x", "a/../../b", "..\\..\\x", "a\0b", ".", "x" * 300, "CON", "x/", "memories.md"]


async def test_names_links_and_ids_that_lead_elsewhere_are_refused_and_the_run_goes_on(
    start_host: Any, model: FakeModel, root: Path, tmp_path: Path
) -> None:
    """BR-22."""
    outside = tmp_path / "elsewhere"
    outside.mkdir()
    (outside / "secret.md").write_text("SECRET")
    host: FakeHost = await start_host(env=model.environment)
    ids = ["../../alice/s1", "S1", "s1", "a/../bob", "bob", "a.b", "a_b"]
    sessions = [await host.create_session(sessionId=name, contextProviders=memory(root)) for name in ids]
    for session in sessions:
        assert "written" in await use(session, model, "write", file_name="n.md", content=session.id)
    for session in sessions:
        assert await use(session, model, "read", file_name="n.md") == session.id
    folders = [path.name for path in (root / "sessions").iterdir()]
    assert len({name.lower() for name in folders}) == len(ids)
    assert (await host.refusal("resumeSession", {"sessionId": "../alice/s1"})).kind == "sessionNotFound"

    session = sessions[2]
    folder = root / "sessions" / "s1"
    for planted in ("notes.md", "plan_description.md"):
        (folder / planted).symlink_to(outside / "secret.md")
    before = picture(tmp_path, without=root)
    for name in [*BAD_NAMES, "notes.md", "plan.md"]:
        answer = await use(session, model, "write", file_name=name, content="mine", description="mine")
        assert answer.startswith(("Could not write file '", "Error: Argument parsing failed."))
        assert len(answer) < 250
        assert str(tmp_path) not in answer
        assert "Traceback" not in answer
    assert await use(session, model, "read", file_name="notes.md") == "File 'notes.md' not found."
    assert await use(session, model, "read", file_name="plan.md") == "File 'plan.md' not found."

    folder.rename(folder.with_name("moved"))
    folder.symlink_to(outside)
    assert "is a link" in await use(session, model, "read", file_name="secret.md")
    assert "is a link" in await use(session, model, "write", file_name="new.md", content="mine")

    assert picture(tmp_path, without=root) == before
    assert "SECRET" not in str(host.messages)
