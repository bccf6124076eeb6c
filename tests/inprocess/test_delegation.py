"""Agents as tools, without a process: the tool, what a delegated run is made of, what it may undo, what it counts."""

from typing import Any

import pytest

from protocol.agents import AgentSpec
from protocol.messages import FunctionCallBlock, Usage
from providers.api.agent_tool import as_tool, tool_name
from providers.api.context import SessionContext
from providers.api.delegation import Errand
from providers.api.ports import CallRequested, Finished
from providers.api.provider import ContextProvider
from providers.api.session import Session
from sidecar.agents.catalog import AgentCatalog
from sidecar.agents.delegation import make_child
from sidecar.agents.metering import Meter
from sidecar.agents.workspaces import Workspace
from sidecar.config.load import Loaded
from sidecar.config.model import Config
from sidecar.errors import AgentNotFound
from tests.bench.agent_run import AgentRun, bound
from tests.bench.fake_client import FakeClient, says


@pytest.mark.parametrize(
    ("agent", "name"),
    [
        ("Research Agent", "Research_Agent"),
        ("code-reviewer", "code-reviewer"),
        ("3D & more", "_3D_more"),
        ("köln", "k_ln"),
        ("研究", "agent"),
        ("x" * 100, "x" * 64),
    ],
)
def test_a_tool_is_called_as_its_agent_as_far_as_a_tool_may_be(agent: str, name: str) -> None:
    assert tool_name(agent) == name
    assert as_tool(agent).name == name


def test_the_tool_asks_for_one_text_and_nothing_else() -> None:
    tool = as_tool("helper", name="ask", description="Ask.", arg_name="query", arg_description="what to look for")

    assert (tool.name, tool.description) == ("ask", "Ask.")
    assert tool.input_schema == {
        "type": "object",
        "properties": {"query": {"type": "string", "description": "what to look for"}},
        "required": ["query"],
        "additionalProperties": False,
    }


@pytest.mark.parametrize("names", [{"agent": ""}, {"agent": "a", "arg_name": ""}, {"agent": "a", "name": "a b"}])
def test_names_that_cannot_be_used_are_refused(names: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="name"):
        as_tool(**names)


class Offers(ContextProvider):
    """Offers another agent for the run."""

    async def before_run(self, *, context: SessionContext, **_: Any) -> None:
        context.extend_tools(self, [as_tool("helper", propagate_session=True)])


async def test_a_provider_may_offer_another_agent_which_gets_task_call_and_kwargs() -> None:
    call = FunctionCallBlock(call_id="c1", name="helper", arguments={"task": "find tea"})
    client = FakeClient([CallRequested(call), Finished("toolCalls")], says("done"))
    errands: list[Errand] = []

    async def delegate(errand: Errand) -> str:
        errands.append(errand)
        return "found"

    run = AgentRun(client, [Offers("p")])

    await run.say("go", delegate=delegate, kwargs={"user": "u"})

    assert errands == [Errand("helper", "find tea", "c1", {"user": "u"}, propagate_session=True)]
    assert [ended["content"][0]["text"] for ended in run.sink.of("tool.completed")] == ["found"]


async def test_without_a_way_to_run_agents_the_tool_gives_an_error_result() -> None:
    call = FunctionCallBlock(call_id="c1", name="helper", arguments={"task": "find tea"})
    client = FakeClient([CallRequested(call), Finished("toolCalls")], says("done"))
    run = AgentRun(client, [Offers("p")])

    await run.say("go")

    (ended,) = run.sink.of("tool.completed")
    assert (ended["status"], ended["content"][0]["text"]) == ("failed", "Error: No other agent can be called here.")


# ---- what a delegated run is made of ------------------------------------------------------------------------------


HELPER = AgentSpec.model_validate(
    {
        "contextProviders": [
            {"type": "history"},
            {"type": "static_messages", "config": {"messages": [{"role": "user", "content": "x"}]}},
            {"type": "instructions", "stateKey": "rules"},
        ]
    }
)


def workspace() -> Workspace:
    unused: Any = None
    return Workspace(Loaded(Config(), (), (), {}), AgentCatalog({"helper": HELPER}), unused, unused)


async def made(caller: Session, **errand: Any) -> Any:
    return await make_child(workspace(), Errand("helper", "task", "c1", **errand), caller, "run_1", None)


async def test_a_child_that_shares_state_has_the_callers_session_but_no_place_of_its_providers() -> None:
    caller = Session("s", state={"rules": {"of": "caller"}, "topic": "tea"}, service_session_id="conv_1")

    child = await made(caller, propagate_session=True)

    assert child.session.session_id == "s"
    assert child.session.state is caller.state
    assert child.session.lock is caller.lock
    assert child.session.service_session_id is None
    assert child.conversation_id != "s"
    keys = [provider.state_key for provider in child.plan.providers]
    assert keys == ["helper/run_1/in_memory", "helper/static_messages", "helper/rules"]
    assert [provider.provider.state_key for provider in child.plan.providers] == keys


async def test_what_is_private_to_a_child_leaves_the_shared_state_with_it() -> None:
    caller = Session("s", state={"topic": "tea"})
    child = await made(caller, propagate_session=True)
    child.session.state_of("helper/run_1/in_memory")["messages"] = ["x"]
    child.session.state_of("helper/rules")["n"] = 1

    child.forget()

    assert caller.state == {"topic": "tea", "helper/rules": {"n": 1}}


async def test_a_child_that_shares_nothing_has_a_session_of_its_own() -> None:
    caller = Session("s", state={"topic": "tea"}, service_session_id="conv_1")

    child = await made(caller)

    assert child.session.session_id not in ("s", "")
    assert child.session.state == {}
    assert child.session.service_session_id is None
    assert [provider.state_key for provider in child.plan.providers] == ["in_memory", "static_messages", "rules"]


async def test_an_agent_that_is_not_there_is_told_by_name() -> None:
    with pytest.raises(AgentNotFound):
        await make_child(workspace(), Errand("nobody", "task", "c1"), Session("s"), "run_1", None)


class Breaks(ContextProvider):
    """Writes, lets somebody else write, and fails."""

    on_error = "warn"

    async def before_run(self, *, session: Session, state: dict[str, Any], **_: Any) -> None:
        state["mine"] = 1
        session.state["sibling"] = "was here"
        raise ValueError("no")


@pytest.mark.parametrize("is_shared", [True, False])
async def test_a_hook_that_fails_undoes_no_more_than_its_own_where_others_write_the_state(*, is_shared: bool) -> None:
    run = AgentRun(FakeClient(says("ok")), [bound(Breaks("b"))])

    await run.say("go", shares_state=is_shared)

    assert ("sibling" in run.session.state) == is_shared
    assert run.session.state["b"] == {}


def test_what_a_child_uses_counts_for_its_caller_too() -> None:
    caller = Meter()
    child = Meter(within=Meter(within=caller))

    child.add(Usage(input_tokens=3, output_tokens=2))
    caller.add(Usage(input_tokens=1, output_tokens=1))

    assert (child.usage.input_tokens, caller.usage.input_tokens) == (3, 4)
    assert (child.usage.output_tokens, caller.usage.output_tokens) == (2, 3)
