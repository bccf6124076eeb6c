"""Providers that are declared independent: they work at the same time, and what they add stands in the list's order."""

import asyncio
from typing import Any

import pytest

from protocol.agents import RunOptions
from protocol.messages import text_message
from providers.api.tool import FunctionTool, tool
from sidecar.errors import ProviderFailed
from tests.bench.agent_run import AgentRun, bound
from tests.bench.fake_client import FakeClient, says
from tests.bench.providers import Action, Hook, Log, Recorder, adds, fails, writes


def beside(name: str, log: Log, before: Action, **fields: Any) -> Any:
    return bound(Recorder(name, log, before=before), independent=True, **fields)


def waits(for_event: asyncio.Event, then: Action) -> Action:
    async def act(hook: Hook) -> None:
        await asyncio.wait_for(for_event.wait(), 5)
        result = then(hook)
        assert result is None

    return act


def signals(event: asyncio.Event, then: Action) -> Action:
    def act(hook: Hook) -> None:
        then(hook)
        event.set()

    return act


def offers(made: FunctionTool) -> Action:
    return lambda hook: hook.context.extend_tools("p", made)


async def test_neighbours_work_at_the_same_time_and_what_they_add_keeps_the_order_of_the_list() -> None:
    second_done = asyncio.Event()
    log = Log()
    providers = [
        beside("a", log, waits(second_done, adds("a", "from a", text_message("user", "m-a")))),
        beside("b", log, signals(second_done, adds("b", "from b", text_message("user", "m-b")))),
    ]
    run = AgentRun(FakeClient(says("ok")), providers)
    await run.say("go")

    [request] = run.client.requests
    assert request.instructions == "from a\nfrom b"
    assert [message.text for message in request.messages] == ["m-a", "m-b", "go"]
    assert log.lines == ["before:a", "before:b", "after:b", "after:a"]


async def test_a_provider_between_them_waits_for_those_before_it_and_is_waited_for() -> None:
    log = Log()
    seen: list[list[str]] = []

    def look(hook: Hook) -> None:
        seen.append([instruction.text for instruction in hook.context.instructions])

    providers = [
        beside("a", log, adds("a", "1")),
        beside("b", log, adds("b", "2")),
        Recorder("c", log, before=look),
        beside("d", log, look),
    ]
    await AgentRun(FakeClient(says("ok")), providers).say("go")

    assert seen == [["1", "2"], ["1", "2"]]


async def test_neighbours_do_not_see_what_the_others_add() -> None:
    seen: list[int] = []

    def look(hook: Hook) -> None:
        seen.append(len(hook.context.instructions))
        hook.context.extend_instructions("x", "more")

    await AgentRun(FakeClient(says("ok")), [beside("a", Log(), look), beside("b", Log(), look)]).say("go")

    assert seen == [0, 0]


async def test_what_a_failing_neighbour_added_goes_and_what_the_others_added_stays() -> None:
    providers = [
        beside("a", Log(), adds("a", "from a")),
        beside("b", Log(), fails(first=adds("b", "from b")), on_error="warn"),
    ]
    run = AgentRun(FakeClient(says("ok")), providers)
    await run.say("go")

    assert run.client.requests[0].instructions == "from a"
    assert [(kind, source) for kind, _, source in run.sink.warnings] == [("providerFailed", "b")]


async def test_a_failing_neighbour_s_state_is_put_back_and_the_others_is_not() -> None:
    providers = [
        beside("a", Log(), writes(n=1)),
        beside("b", Log(), fails(first=writes(n=1)), on_error="warn"),
    ]
    run = AgentRun(FakeClient(says("ok")), providers)
    await run.say("go")

    assert run.session.state == {"a": {"n": 1}, "b": {}}


async def test_a_neighbour_whose_failure_fails_the_run_is_named_and_all_that_had_begun_are_told() -> None:
    log = Log()
    providers = [beside("a", log, adds("a", "x")), beside("b", log, fails()), Recorder("c", log)]
    run = AgentRun(FakeClient(), providers)
    with pytest.raises(ProviderFailed) as caught:
        await run.say("go")

    assert caught.value.fields["source_id"] == "b"
    assert log.lines == ["before:a", "before:b", "failed:b", "failed:a"]
    assert [event["sourceId"] for event in run.sink.of("provider.completed", "provider.failed")] == ["a", "b"]


async def test_tools_and_options_of_neighbours_are_put_together() -> None:
    one, two = tool(lambda: 1, name="one"), tool(lambda: 2, name="two")

    def sets(**options: Any) -> Action:
        return lambda hook: hook.context.extend_options("x", RunOptions(**options))

    def both(*actions: Action) -> Action:
        def act(hook: Hook) -> None:
            for action in actions:
                action(hook)

        return act

    providers = [
        beside("a", Log(), both(offers(one), sets(temperature=0.1))),
        beside("b", Log(), both(offers(two), offers(one), sets(temperature=0.9, seed=7))),
    ]
    run = AgentRun(FakeClient(says("ok")), providers)
    await run.say("go")

    [request] = run.client.requests
    assert [spec.name for spec in request.tools] == ["one", "two"]
    assert (request.options.temperature, request.options.seed) == (0.1, 7)


@pytest.mark.parametrize("on_error", ["fail", "warn"])
async def test_neighbours_whose_tools_clash_are_dealt_with_by_the_later_one_s_policy(on_error: Any) -> None:
    providers = [
        beside("a", Log(), offers(tool(lambda: "a", name="same"))),
        beside("b", Log(), offers(tool(lambda: "b", name="same")), on_error=on_error),
    ]
    run = AgentRun(FakeClient(says("ok")), providers)
    if on_error == "fail":
        with pytest.raises(ProviderFailed, match="same") as caught:
            await run.say("go")
        assert caught.value.fields["source_id"] == "b"
    else:
        await run.say("go")
        assert [spec.name for spec in run.client.requests[0].tools] == ["same"]
        assert [source for _, _, source in run.sink.warnings] == ["b"]


async def test_a_neighbour_may_not_take_away_what_is_there() -> None:
    def clear(hook: Hook) -> None:
        hook.context.replace_instructions("b", "mine")

    providers = [Recorder("first", Log(), before=adds("first", "kept")), beside("a", Log(), adds("a", "x"))]
    run = AgentRun(FakeClient(says("ok")), [*providers, beside("b", Log(), clear, on_error="warn")])
    await run.say("go")

    assert run.client.requests[0].instructions == "kept\nx"
    assert "may add but not replace or remove" in run.sink.warnings[0][1]


async def test_a_hanging_neighbour_ends_at_its_own_limit() -> None:
    async def hang(_hook: Hook) -> None:
        await asyncio.Event().wait()

    providers = [
        beside("a", Log(), hang, on_error="warn", timeout_ms=20),
        beside("b", Log(), adds("b", "from b")),
    ]
    run = AgentRun(FakeClient(says("ok")), providers)
    await run.say("go")

    assert run.client.requests[0].instructions == "from b"
