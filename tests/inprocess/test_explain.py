"""What is noted of a run's model calls, and how it is shown: who said what, what was changed, usage, times."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from protocol.agents import AgentSpec, ProviderEntry
from protocol.messages import EmbeddedResource, Message, ResourceBlock, Source, Usage, text_message
from providers.api.invocation import FunctionInvocationContext
from providers.api.middleware import ChatContext, chat_middleware
from providers.api.ports import ChatAnswer, ChatRequest, ask
from providers.api.provider import Surroundings
from providers.api.run_context import current_run
from providers.api.tool import tool
from sidecar.agents.catalog import ResolvedAgent
from sidecar.agents.plan import SessionSettings, make_plan
from sidecar.errors import ModelBadStream, ProviderFailed
from tests.bench.agent_run import AgentRun, bound, plan_of, user
from tests.bench.explained import Past, gone, pieces, said, shown, stored, turns
from tests.bench.fake_client import FakeClient, Hang, calls, says
from tests.bench.providers import Hook, Log, Recorder, adds, fails


@tool
def weather(city: str = "Oslo") -> str:
    """Tell the weather."""
    return f"rain in {city}"


# ---- who said what ---------------------------------------------------------------------------------------------------


async def test_each_instruction_has_its_source() -> None:
    agent = plan_of(instructions="Be brief.", options={"instructions": "Use metres."})
    run = AgentRun(FakeClient(says("ok")), [Recorder("p", Log(), before=adds("p", "Know this."))], plan=agent)

    [call] = shown(await run.say("?", run_instructions="Now in French."))

    assert pieces(call) == [
        ("Be brief.", "agent", "tester"),
        ("Know this.", "provider", "p"),
        ("Use metres.", "agent", "tester"),
        ("Now in French.", "run", None),
    ]
    assert [one.tokens for one in call.instructions] == [3, 3, 3, 4]


async def test_a_session_s_instructions_are_told_from_its_agent_s() -> None:
    agent = plan_of(instructions="Be brief.")
    both = replace(agent, instructions=("Be brief.", "For Ada."), session_instructions="For Ada.")

    [call] = shown(await AgentRun(FakeClient(says("ok")), plan=both).say("?"))

    assert [(one.text, one.source.source_type) for one in call.instructions] == [
        ("Be brief.", None),
        ("For Ada.", "session"),
    ]


def test_a_plan_says_which_instructions_are_the_session_s() -> None:
    agent = ResolvedAgent("a", AgentSpec(instructions="one"))
    plan = make_plan(agent, SessionSettings("two", (ProviderEntry(type="instructions"),)), Surroundings())

    assert (plan.instructions, plan.session_instructions) == (("one", "two"), "two")


async def test_messages_keep_their_order_and_only_injected_ones_their_text() -> None:
    document = Message(
        role="user",
        content=(ResourceBlock(resource=EmbeddedResource(uri="file:///a", text="the file")),),
        source=Source(type="run"),
    )
    past = turns(2)
    providers = [Past(past), Recorder("facts", Log(), before=adds("facts", user("Ada likes tea.")))]

    execution = await AgentRun(FakeClient(says("ok")), providers).say("hello", context_messages=(document,))

    [call] = shown(execution, past)
    assert said(call) == [
        ("user", "history", "past", None),
        ("assistant", "history", "past", None),
        ("user", "provider", "facts", "Ada likes tea."),
        ("user", "run", None, "the file"),
        ("user", "external", None, None),
    ]
    assert [one.message_id for one in call.messages][:2] == ["m0", "m1"]
    assert all(one.tokens > 0 for one in call.messages)


async def test_a_recalled_message_is_its_provider_s_and_names_its_memories() -> None:
    answer = text_message(
        "assistant",
        "You like tea.",
        source=Source(type="agent", origin_session_ids=("old",)),
        metadata={"memoryIds": [7]},
    )
    run = AgentRun(FakeClient(says("ok")), [Recorder("facts", Log(), before=adds("facts", answer))])

    [call] = shown(await run.say("hello"))

    recalled = call.messages[0]
    assert (recalled.text, recalled.memory_ids) == ("You like tea.", ("7",))
    assert recalled.source == Source(type="provider", source_id="facts", origin_session_ids=("old",))


async def test_later_calls_see_what_was_said_before_and_the_tools_that_there_are_by_then() -> None:
    @tool
    def more(context: FunctionInvocationContext) -> str:
        """Bring another tool."""
        context.add_tools(weather)
        return "there is weather now"

    run = AgentRun(FakeClient(calls("more"), says("done")), plan=plan_of(tools=[more]))

    first, second = shown(await run.say("?"))

    assert [one.role for one in first.messages] == ["user"]
    assert [(one.role, one.source.type) for one in second.messages] == [
        ("user", "external"),
        ("assistant", "agent"),
        ("tool", "agent"),
    ]
    assert [one.text for one in second.messages] == [None, None, None]
    assert second.messages[2].tokens == 5
    assert [(one.name, one.source.type, one.source.source_id) for one in second.tools] == [
        ("more", "agent", "tester"),
        ("weather", "run", None),
    ]
    assert (first.index, second.index) == (0, 1)


async def test_what_providers_took_away_is_named_with_who_did_it() -> None:
    def tidy(hook: Hook) -> None:
        hook.context.replace_messages("tidy", [user("In short: turns.", source="provider")])
        hook.context.replace_instructions("tidy", "All in one.")
        hook.context.remove_tools("tidy", ["weather"])

    past = turns(3)
    providers = [
        Past(past),
        Recorder("a", Log(), before=adds("a", "Old rule.")),
        Recorder("tidy", Log(), before=tidy),
    ]
    run = AgentRun(FakeClient(says("ok")), providers, plan=plan_of(tools=[weather]))

    execution = await run.say("?")

    [call] = shown(execution, past)
    assert gone(call) == [
        ("message", "m0", "provider", "tidy"),
        ("message", "m1", "provider", "tidy"),
        ("message", "m2", "provider", "tidy"),
        ("instruction", "Old rule.", "provider", "tidy"),
        ("tool", "weather", "provider", "tidy"),
    ]
    assert said(call)[0] == ("user", "provider", None, "In short: turns.")
    assert call.tools == ()
    assert len(stored(execution, past).removed) == 3


# ---- middleware ------------------------------------------------------------------------------------------------------


async def test_what_chat_middleware_changed_is_shown_as_it_was_sent() -> None:
    @chat_middleware
    async def guard(context: ChatContext, call_next: Any) -> None:
        del context.messages[0]
        context.messages.append(user("Mind the rules."))
        context.instructions = "Guarded.\n" + context.instructions.replace("Be brief.", "Be very brief.")
        context.tools = []
        await call_next()

    past = turns(3)
    client = FakeClient(says("ok"))
    agent = plan_of(instructions="Be brief.", tools=[weather], middleware=[guard])

    execution = await AgentRun(client, [Past(past)], plan=agent).say("?", run_instructions="In French.")

    [call] = shown(execution, past)
    name = call.instructions[0].source.source_id
    assert name is not None
    assert "guard" in name
    assert pieces(call) == [("Guarded.\nBe very brief.", "middleware", name), ("In French.", "run", None)]
    assert said(call) == [
        ("assistant", "history", "past", None),
        ("user", "history", "past", None),
        ("user", "external", None, None),
        ("user", "middleware", name, "Mind the rules."),
    ]
    assert gone(call) == [
        ("instruction", "Be brief.", "middleware", name),
        ("message", "m0", "middleware", name),
        ("tool", "weather", "middleware", name),
    ]
    assert [one.message_id for one in call.messages[:2]] == ["m1", "m2"]


async def test_a_call_that_middleware_made_twice_is_two_calls_and_one_that_it_left_out_is_none() -> None:
    @chat_middleware
    async def again(context: ChatContext, call_next: Any) -> None:
        await call_next()
        await call_next()

    @chat_middleware
    async def instead(context: ChatContext, call_next: Any) -> None:
        context.result = ChatAnswer("no")

    twice = await AgentRun(FakeClient(says("a"), says("b")), plan=plan_of(middleware=[again])).say("?")
    never = await AgentRun(FakeClient(), plan=plan_of(middleware=[instead])).say("?")

    assert (len(shown(twice)), len(shown(never))) == (2, 0)


# ---- who made the call -----------------------------------------------------------------------------------------------


async def test_a_provider_s_own_calls_are_marked_with_its_id() -> None:
    async def extract(hook: Hook) -> None:
        run = current_run()
        assert run is not None
        client = run.agent.chat_client()
        await ask(client, ChatRequest(messages=[text_message("user", "Any facts?")], instructions="Extract."))

    log = Log()
    providers = [Recorder("facts", log, before=extract), Recorder("diary", log, after=extract)]

    execution = await AgentRun(FakeClient(says("no"), says("hi"), says("none")), providers).say("hello")

    first, own, last = shown(execution)
    assert (first.by, own.by, last.by) == ("facts", None, "diary")
    assert pieces(first) == [("Extract.", "provider", "facts")]
    assert said(first) == [("user", "provider", "facts", "Any facts?")]
    assert said(own) == [("user", "external", None, None)]
    total = execution.progress.meter.usage
    assert sum(one.usage.output_tokens for one in (first, own, last) if one.usage) == total.output_tokens


async def test_a_call_that_a_tool_makes_is_the_run_s() -> None:
    @tool
    async def think(context: FunctionInvocationContext) -> str:
        """Ask the model."""
        client = context.run.agent.chat_client()
        return (await ask(client, ChatRequest(messages=[text_message("user", "Hm?")]))).text

    client = FakeClient(calls("think"), says("aha"), says("done"))

    _, of_tool, _ = shown(await AgentRun(client, plan=plan_of(tools=[think])).say("?"))

    assert (of_tool.by, said(of_tool)) == (None, [("user", "run", None, "Hm?")])


async def test_what_a_tool_hands_on_to_a_model_stays_its_owner_s() -> None:
    @tool
    async def think(context: FunctionInvocationContext) -> str:
        """Ask the model about the same."""
        client = context.run.agent.chat_client()
        request = ChatRequest(messages=context.run.input_messages, instructions="Be brief.\nThink.")
        return (await ask(client, request)).text

    client = FakeClient(calls("think"), says("aha"), says("done"))

    _, of_tool, _ = shown(await AgentRun(client, plan=plan_of(tools=[think], instructions="Be brief.")).say("?"))

    assert pieces(of_tool) == [("Be brief.", "agent", "tester"), ("Think.", "run", None)]
    assert said(of_tool) == [("user", "external", None, None)]


# ---- usage, times, ends ----------------------------------------------------------------------------------------------


async def test_usage_is_the_model_s_or_an_estimate() -> None:
    told = Usage(input_tokens=100, output_tokens=5)

    [counted] = shown(await AgentRun(FakeClient(says("ok", usage=told))).say("?"))
    [estimated] = shown(await AgentRun(FakeClient(says("four words are here"))).say("?"))

    assert counted.usage == told
    assert estimated.usage is not None
    assert (estimated.usage.estimated, estimated.usage.output_tokens) == (True, 5)
    assert counted.first_token_ms is not None
    assert 0 <= counted.first_token_ms <= counted.duration_ms
    assert counted.started_at.endswith("Z")
    assert counted.model == "fake:model"


async def test_a_call_that_failed_is_there_with_what_it_saw() -> None:
    execution = AgentRun(FakeClient([ModelBadStream("no")])).execution("?")
    with pytest.raises(ModelBadStream):
        await execution.run()

    [call] = shown(execution)

    assert (call.usage, call.first_token_ms) == (None, None)
    assert said(call) == [("user", "external", None, None)]


async def test_a_call_under_way_is_shown_too() -> None:
    hang = Hang()
    execution = AgentRun(FakeClient([*says("Once")[:1], hang])).execution("?")
    work = asyncio.create_task(execution.run())
    await hang.reached.wait()

    [call] = shown(execution)

    assert call.usage is None
    assert call.first_token_ms is not None
    work.cancel()
    with pytest.raises(asyncio.CancelledError):
        await work
    [cut] = shown(execution)
    assert cut.usage is not None
    assert cut.usage.estimated


async def test_hooks_are_listed_with_their_times_and_errors() -> None:
    log = Log()
    failing = bound(Recorder("bad", log, before=fails()), on_error="warn")

    execution = await AgentRun(FakeClient(says("ok")), [Recorder("good", log), failing]).say("?")

    hooks = stored(execution).providers
    assert [(one.source_id, one.phase, one.error is None) for one in hooks] == [
        ("good", "beforeRun", True),
        ("bad", "beforeRun", False),
        ("bad", "afterRun", True),
        ("good", "afterRun", True),
    ]
    assert hooks[1].error is not None
    assert hooks[1].error.kind == "providerFailed"
    assert all(one.type == "test" and one.duration_ms >= 0 for one in hooks)


async def test_a_run_whose_provider_failed_has_hooks_and_no_call() -> None:
    run = AgentRun(FakeClient(), [Recorder("bad", Log(), before=fails())])
    execution = run.execution("?")
    with pytest.raises(ProviderFailed):
        await execution.run()

    explanation = stored(execution)

    assert explanation.calls == ()
    assert [one.source_id for one in explanation.providers] == ["bad"]
