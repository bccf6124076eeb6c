"""What a run hands to its tools and middleware: the session, the run's kwargs and properties, and the tools it has."""

import threading
from contextvars import ContextVar
from typing import Annotated, Any

import pytest

from providers.api.invocation import FunctionInvocationContext
from providers.api.middleware import (
    AgentContext,
    CallNext,
    ChatContext,
    agent_middleware,
    chat_middleware,
    function_middleware,
)
from providers.api.run_context import current_run
from providers.api.session import Session
from providers.api.tool import tool
from sidecar.agents.run_request import RunRequest
from sidecar.agents.runner import Execution
from tests.bench.agent_run import AgentRun, plan_of, user
from tests.bench.fake_client import FakeClient, FakeModels, says
from tests.bench.fake_sink import FakeSink
from tests.bench.tool_calls import asks, call, told

Context = FunctionInvocationContext


def agent(*answers: Any, tools: Any = (), middleware: Any = (), session: Session | None = None) -> AgentRun:
    plan = plan_of(tools=tools, middleware=middleware)
    return AgentRun(FakeClient(*answers, says("done")), plan=plan, session=session or Session("s"))


# ---- kwargs ----------------------------------------------------------------------------------------------------------


async def test_a_tool_reads_the_run_s_kwargs_and_the_model_never_hears_of_the_parameter() -> None:
    """Case 29."""

    @tool
    async def orders(status: Annotated[str, "which"], ctx: Context) -> str:
        return f"{status} {ctx.kwargs['user_id']} {ctx.kwargs['tenant']}"

    run = agent(asks(call("orders", status="open")), tools=[orders])
    execution = await run.say("go", kwargs={"user_id": "u", "tenant": "t"})

    assert told(execution) == ["open u t"]
    assert list(run.client.requests[0].tools[0].input_schema["properties"]) == ["status"]


async def test_what_middleware_puts_into_kwargs_is_seen_by_that_call_and_no_other() -> None:
    """Case 30."""

    @tool
    async def look(ctx: Context) -> dict[str, Any]:
        return dict(ctx.kwargs)

    async def fill(context: Context, call_next: CallNext) -> None:
        if context.call_id == "c1":
            context.kwargs.setdefault("tenant", "t1")
            context.kwargs["user"]["name"] = "changed"
            context.kwargs["tags"].append("new")
        await call_next()

    kwargs = {"user": {"name": "u"}, "tags": ["a"]}
    run = agent(
        asks(call("look", "c1"), call("look", "c2")),
        asks(call("look", "c3")),
        tools=[look],
        middleware=[function_middleware(fill)],
    )
    execution = await run.say("go", kwargs=kwargs)

    assert told(execution) == [
        '{"user": {"name": "changed"}, "tags": ["a", "new"], "tenant": "t1"}',
        '{"user": {"name": "u"}, "tags": ["a"]}',
        '{"user": {"name": "u"}, "tags": ["a"]}',
    ]
    assert kwargs == {"user": {"name": "u"}, "tags": ["a"]}


async def test_run_middleware_may_hand_tools_an_object_that_cannot_be_copied() -> None:
    lock = threading.Lock()

    @tool
    async def same(ctx: Context) -> bool:
        return ctx.kwargs["pool"]["lock"] is lock

    async def connect(context: AgentContext, call_next: CallNext) -> None:
        context.kwargs["pool"] = {"lock": lock}
        await call_next()

    execution = await agent(asks("same"), tools=[same], middleware=[agent_middleware(connect)]).say("go")

    assert told(execution) == ["true"]


async def test_client_kwargs_reach_the_client_and_chat_middleware_and_never_a_tool() -> None:
    """Case 31."""
    seen: dict[str, Any] = {}

    @tool
    async def look(ctx: Context) -> None:
        seen["tool"] = dict(ctx.kwargs)

    async def watch_chat(context: ChatContext, call_next: CallNext) -> None:
        seen["chat"] = dict(context.client_kwargs)
        await call_next()

    async def watch_call(context: Context, call_next: CallNext) -> None:
        seen["call"] = dict(context.kwargs)
        await call_next()

    middleware = [chat_middleware(watch_chat), function_middleware(watch_call)]
    run = agent(asks("look"), tools=[look], middleware=middleware)
    await run.say("go", client_kwargs={"token": "x"}, kwargs={"user_id": "u"})

    assert seen == {"chat": {"token": "x"}, "call": {"user_id": "u"}, "tool": {"user_id": "u"}}
    assert [request.client_kwargs for request in run.client.requests] == [{"token": "x"}] * 2


# ---- the session -----------------------------------------------------------------------------------------------------


async def test_what_a_tool_writes_to_the_session_is_there_after_the_run() -> None:
    """Case 32."""

    @tool
    def note(topic: str, ctx: Context) -> None:
        assert ctx.session is not None
        ctx.session.state["topic"] = topic

    run = agent(asks(call("note", topic="sea")), tools=[note])
    await run.say("go")

    assert run.session.state == {"topic": "sea"}


async def test_a_tool_of_a_run_without_a_session_is_told_that_there_is_none() -> None:
    """Case 32."""
    seen: list[object] = []

    @tool
    async def look(ctx: Context) -> None:
        seen.extend([ctx.session, ctx.run.session])

    async def watch(context: Any, call_next: CallNext) -> None:
        seen.append(context.session)
        await call_next()

    kinds = (agent_middleware, chat_middleware, function_middleware)
    middleware: list[Any] = []
    for kind in kinds:

        async def each(context: Any, call_next: CallNext) -> None:
            await watch(context, call_next)

        middleware.append(kind(each))
    run = agent(tools=[look], middleware=middleware)
    client = FakeClient(asks("look"), says("done"))
    request = RunRequest("r", (user("go"),), run.plan.options)
    await Execution(run.plan, request, Session("s"), None, FakeModels(client), FakeSink(), {}).run()

    assert seen == [None] * 6


async def test_what_run_middleware_writes_into_the_state_is_read_by_a_tool_of_that_run() -> None:
    """Case 33."""

    @tool
    def read(ctx: Context) -> str:
        assert ctx.session is not None
        return ctx.session.state["request_id"]

    async def stamp(context: AgentContext, call_next: CallNext) -> None:
        assert context.session is not None
        context.session.state["request_id"] = context.properties["request_id"]
        await call_next()

    run = agent(asks("read"), tools=[read], middleware=[agent_middleware(stamp)])

    assert told(await run.say("go", properties={"request_id": "r-7"})) == ["r-7"]


async def test_a_bare_ctx_is_the_context_only_beside_an_explicit_schema() -> None:
    """Case 35."""

    plain = tool(lambda ctx: str(ctx), name="plain")
    explicit = tool(lambda city, ctx: f"{city} {ctx.call_id}", name="explicit", schema={"properties": {"city": {}}})
    calls = asks(call("plain", ctx="text"), call("explicit", "c2", city="Rome"))

    assert told(await agent(calls, tools=[plain, explicit]).say("go")) == ["text", "Rome c2"]


# ---- the current run -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("has_middleware", [False, True])
async def test_code_that_was_handed_nothing_finds_the_run_that_it_is_part_of(has_middleware: bool) -> None:
    seen: list[tuple[str, Any]] = []

    def look() -> None:
        run = current_run()
        assert run is not None
        seen.append((run.run_id, dict(run.kwargs)))

    async def through(_context: Any, call_next: CallNext) -> None:
        look()
        await call_next()

    middleware = [agent_middleware(through)] if has_middleware else []
    run = agent(asks("sync", "other"), tools=[tool(look, name="sync"), tool(look, name="other")], middleware=middleware)
    await run.say("go", kwargs={"user_id": "u"})

    assert seen == [("run-1", {"user_id": "u"})] * (3 if has_middleware else 2)


async def test_one_call_s_context_variables_are_not_another_s() -> None:
    variable: ContextVar[str] = ContextVar("variable", default="unset")

    @tool
    async def write() -> str:
        found = variable.get()
        variable.set("written")
        return found

    assert told(await agent(asks("write", "write"), asks("write"), tools=[write]).say("go")) == ["unset"] * 3


# ---- the run's tools -------------------------------------------------------------------------------------------------

extra = tool(lambda: "extra", name="extra")


async def test_tools_that_a_tool_adds_or_removes_count_from_the_next_model_call_of_the_run_only() -> None:
    @tool
    async def change(ctx: Context) -> list[str]:
        ctx.add_tools(extra, extra)
        ctx.remove_tools("gone", "unknown")
        return [each.name for each in ctx.tools]

    gone = tool(lambda: "gone", name="gone")
    run = agent(asks("change", "gone"), asks("extra", "gone"), tools=[change, gone])
    execution = await run.say("go")

    offered = [[spec.name for spec in request.tools] for request in run.client.requests]
    assert offered == [["change", "gone"], ["change", "extra"], ["change", "extra"]]
    first, second, third, fourth = told(execution)
    assert (first, second, third) == ('["change", "extra"]', "gone", "extra")
    assert 'Requested function "gone" not found' in fourth
    assert [each.tool.name for each in run.plan.tools] == ["change", "gone"]


async def test_tools_are_added_all_or_not_at_all() -> None:
    @tool
    async def change(ctx: Context) -> str:
        with pytest.raises(ValueError, match="Duplicate tool name 'change'"):
            ctx.add_tools(extra, tool(lambda: "other", name="change"))
        return ",".join(each.name for each in ctx.tools)

    run = agent(asks("change"), tools=[change])

    assert told(await run.say("go")) == ["change"]
    assert [spec.name for spec in run.client.requests[1].tools] == ["change"]
