"""Whose memory a session has: what an entry may say of it, and that nothing in a run changes it."""

from typing import Any

import pytest

from protocol.messages import FunctionCallBlock
from providers.api.invocation import FunctionInvocationContext
from providers.api.memory import Scope
from providers.api.session import Session
from providers.api.tool import tool
from providers.file_memory import FileMemoryProvider
from providers.file_memory_config import FileMemoryConfig
from providers.file_memory_folder import MemoryFolder
from providers.file_memory_scope import ScopeMissing, folder_of_name, folder_of_scope, folder_of_session
from providers.file_stores import MemoryFiles
from sidecar.errors import ConfigInvalid, ProviderFailed
from tests.bench.agent_run import AgentRun, plan_of
from tests.bench.fake_client import FakeClient, says
from tests.bench.tool_calls import asks, call, told

ALICE = {"user_id": "alice", "team": "red"}


def remembers(
    store: MemoryFiles, scope: Any = None, *, session_id: str = "s", state: dict[str, Any] | None = None, **run: Any
) -> AgentRun:
    """A session whose agent has a memory of that scope."""
    config = FileMemoryConfig.model_validate({} if scope is None else {"scope": scope})
    provider = FileMemoryProvider("file_memory", config, store=store)
    return AgentRun(FakeClient(), [provider], session=Session(session_id, state=state), **run)


async def use(run: AgentRun, *calls: FunctionCallBlock) -> list[str]:
    run.client.answers += [*(asks(each) for each in calls), says("ok")]
    return told(await run.say("go"))


async def notes(run: AgentRun, text: str = "x") -> None:
    await use(run, call("file_memory_write", file_name="n.md", content=text))


async def read(run: AgentRun) -> str:
    return (await use(run, call("file_memory_read", file_name="n.md")))[0]


@pytest.mark.parametrize(
    ("scope", "folder"),
    [
        ("users/u1", folder_of_name("users/u1")),
        ({"fromState": "user_id"}, folder_of_name("alice")),
        ({"userId": {"fromState": "user_id"}}, folder_of_scope(Scope(user_id="alice"))),
        (
            {"user_id": "u1", "agentId": "agent", "sessionId": {"fromSession": "sessionId"}, "applicationId": "app"},
            folder_of_scope(Scope(user_id="u1", agent_id="tester", session_id="s", application_id="app")),
        ),
        ({"agentId": "writer"}, folder_of_scope({"agentId": "writer"})),
        (None, folder_of_session("s")),
    ],
)
async def test_a_scope_leads_to_its_folder(scope: Any, folder: str) -> None:
    store = MemoryFiles()
    await notes(remembers(store, scope, state=dict(ALICE)), "alice's")

    assert await MemoryFolder(store, folder).read("n.md") == "alice's"


async def test_sessions_of_one_scope_share_its_files_and_no_others_see_them() -> None:
    """Case 47."""
    store = MemoryFiles()
    await notes(remembers(store, "users/u1", session_id="a"))

    assert await use(remembers(store, "users/u1", session_id="b"), call("file_memory_ls")) == [
        '[{"name": "n.md", "type": "file", "description": ""}]'
    ]
    for other in ("users/u2", "users", "Users/u1", {"userId": "users/u1"}, {"fromState": "user_id"}, None):
        run = remembers(store, other, session_id="b", state=dict(ALICE))
        assert await use(run, call("file_memory_ls")) == ["[]"]


async def test_without_a_scope_each_session_has_its_own_files() -> None:
    """Case 47."""
    store = MemoryFiles()
    await notes(remembers(store, session_id="a"))

    assert await read(remembers(store, session_id="a")) == "x"
    assert await read(remembers(store, session_id="b")) == "File 'n.md' not found."
    assert await read(remembers(store, "a", session_id="b")) == "File 'n.md' not found."


@tool
def take_over(ctx: FunctionInvocationContext, kept: str = "") -> str:
    """Write into the session's state what would make it somebody else's."""
    assert ctx.session is not None
    ctx.session.state["user_id"] = "bob"
    if kept == "forged":
        source = {"userId": {"fromState": "user_id"}}
        ctx.session.state["file_memory"] = {"scope": {"from": source, "is": {"userId": "bob"}}}
    elif kept == "gone":
        ctx.session.state.pop("file_memory")
    return "done"


@pytest.mark.parametrize("kept", ["", "gone", "forged"])
async def test_what_a_tool_writes_into_the_state_does_not_change_whose_memory_it_is(kept: str) -> None:
    store, scope = MemoryFiles(), {"userId": {"fromState": "user_id"}}
    await notes(remembers(store, scope, state={"user_id": "bob"}), "bob's")
    run = remembers(store, scope, state=dict(ALICE), plan=plan_of(tools=[take_over]))
    await notes(run, "alice's")

    run.client.answers += [
        asks(call("take_over", kept=kept)),
        asks(call("file_memory_read", file_name="n.md")),
        says("ok"),
    ]
    assert told(await run.say("go"))[1] == "alice's"

    assert await read(run) == "alice's"
    assert run.session.state["user_id"] == "bob"
    again = remembers(store, scope, state=dict(run.session.state))
    assert await read(again) == "alice's"


async def test_nor_does_it_when_the_run_fails() -> None:
    store, scope = MemoryFiles(), {"fromState": "user_id"}
    await notes(remembers(store, "bob"), "bob's")
    run = remembers(store, scope, state=dict(ALICE), plan=plan_of(tools=[take_over]))
    await notes(run, "alice's")

    run.client.answers += [asks(call("take_over", kept="gone")), [RuntimeError("the model is gone")]]
    with pytest.raises(RuntimeError):
        await run.say("go")

    assert await read(remembers(store, scope, state=dict(run.session.state))) == "alice's"


def provider_of(store: MemoryFiles, scope: Any) -> FileMemoryProvider:
    return FileMemoryProvider("file_memory", FileMemoryConfig.model_validate({"scope": scope}), store=store)


async def test_what_was_settled_for_a_session_comes_before_its_state() -> None:
    store = MemoryFiles()
    provider = provider_of(store, {"userId": {"fromState": "user_id"}})
    provider.settled = provider.settle(Session("s", state=dict(ALICE)), "tester")
    run = AgentRun(FakeClient(), [provider], session=Session("s", state={"user_id": "bob"}))

    await notes(run, "alice's")

    assert await MemoryFolder(store, folder_of_scope(Scope(user_id="alice"))).read("n.md") == "alice's"
    assert run.session.state["file_memory"] == {}
    assert not provider.takes_part("afterRun")


def test_a_fork_has_the_user_of_its_original_and_a_session_of_its_own() -> None:
    scope = {"userId": {"fromState": "user_id"}, "sessionId": {"fromSession": "sessionId"}, "agentId": "agent"}
    provider = provider_of(MemoryFiles(), scope)
    original = provider.settle(Session("s", state=dict(ALICE)), "tester")

    fork = provider.settle(Session("f", state={"user_id": "bob"}), "tester", original)

    assert original["scope"]["is"] == {"userId": "alice", "sessionId": "s", "agentId": "tester"}
    assert fork["scope"]["is"] == {"userId": "alice", "sessionId": "f", "agentId": "tester"}


def test_a_session_that_does_not_say_whose_memory_it_uses_is_not_settled() -> None:
    with pytest.raises(ScopeMissing, match="'user_id'"):
        provider_of(MemoryFiles(), {"fromState": "user_id"}).settle(Session("s"), "tester")
    assert FileMemoryProvider("file_memory", store=MemoryFiles()).settle(Session("s"), "tester") == {}


@pytest.mark.parametrize("is_settled", [False, True])
async def test_another_scope_in_the_entry_is_read_anew(*, is_settled: bool) -> None:
    store, run = MemoryFiles(), remembers(MemoryFiles(), {"fromState": "user_id"}, state=dict(ALICE))
    await notes(run)

    changed = remembers(store, {"fromState": "team"}, state=dict(run.session.state))
    if is_settled:
        [bound] = changed.plan.providers
        bound.provider.settled = provider_of(store, {"fromState": "user_id"}).settle(run.session, "tester")
    await notes(changed, "the team's")
    changed.session.state["team"] = "blue"
    await notes(changed, "the team's still")

    assert await MemoryFolder(store, folder_of_name("red")).read("n.md") == "the team's still"


@pytest.mark.parametrize("value", [None, "", "  ", 7, ["alice"], {"id": "alice"}])
@pytest.mark.parametrize("scope", [{"fromState": "user_id"}, {"userId": {"fromState": "user_id"}, "agentId": "agent"}])
async def test_a_value_that_the_state_lacks_fails_the_run_before_the_model(scope: Any, value: Any) -> None:
    run = remembers(MemoryFiles(), scope, state={} if value is None else {"user_id": value})

    with pytest.raises(ProviderFailed, match="the session's state has no text 'user_id'"):
        await run.say("hi")

    assert run.client.requests == []
    assert run.session.state.get("file_memory", {}) == {}


REFUSED = [
    ("", "scope"),
    ("  ", "scope"),
    ({}, "a scope needs a key"),
    ({"userId": ""}, "scope"),
    ({"userID": "u1"}, "a scope has no key 'userID'; did you mean 'userId'?"),
    ({"fromState": ""}, "scope"),
    ({"fromState": "a", "userId": "b"}, "userId"),
    ({"userId": {"fromStat": "a"}}, "fromStat"),
    ({"sessionId": {"fromSession": "userId"}}, "fromSession"),
    (7, "scope"),
]


@pytest.mark.parametrize(("scope", "why"), REFUSED)
def test_a_scope_that_is_none_is_refused_when_the_agent_is_made(scope: Any, why: str) -> None:
    with pytest.raises(ConfigInvalid) as caught:
        plan_of({"type": "file_memory", "config": {"scope": scope, "store": {"type": "memory"}}})

    assert why in caught.value.message


@pytest.mark.parametrize(
    "config",
    [
        {"store": {"type": "disk"}},
        {"store": {"type": "filesystem", "path": "../x"}},
        {"store": {"type": "memory", "path": "x"}},
        {"maxFiles": 0},
        {"maxFileBytes": 1 << 30},
        {"maxTotalBytes": "9"},
        {"scopes": "x"},
    ],
)
def test_a_place_or_a_limit_that_cannot_be_is_refused_when_the_agent_is_made(config: Any) -> None:
    with pytest.raises(ConfigInvalid):
        plan_of({"type": "file_memory", "config": config})


def test_an_empty_scope_has_no_folder() -> None:
    for scope in (Scope(), {}):
        with pytest.raises(ValueError, match="needs a key"):
            folder_of_scope(scope)
