"""What a provider may replace or take away, and what is undone of it when it fails: messages, tools, instructions."""

from typing import Any

import pytest

from protocol.agents import RunOptions
from protocol.messages import Message, Source, text_message
from providers.api.context import Removal, SessionContext
from providers.api.tool import FunctionTool, tool
from sidecar.errors import ProviderFailed
from tests.bench.agent_run import AgentRun, bound, plan_of
from tests.bench.fake_client import FakeClient, says
from tests.bench.providers import Action, Hook, Log, Recorder, adds, fails

echo, other = tool(lambda: "echo", name="echo"), tool(lambda: "other", name="other")
BY = Source(type="provider", source_id="b")


def message(text: str) -> Message:
    return text_message("user", text, message_id=f"m-{text}")


def trims(hook: Hook) -> None:
    """As compaction does it: one summary stands for all but the last message."""
    found = hook.context.get_messages()
    hook.context.replace_messages("b", [message("summary"), *found[-1:]])


class Kept:
    """A provider that keeps the context of its run."""

    def __init__(self) -> None:
        self.context: SessionContext | None = None
        self.provider = Recorder("last", Log(), before=self._keep)

    def _keep(self, hook: Hook) -> None:
        self.context = hook.context

    @property
    def removed(self) -> list[Removal]:
        assert self.context is not None
        return self.context.removed


async def run_with(*before: Action, tools: Any = (), **fields: Any) -> tuple[AgentRun, Kept]:
    """A run of providers a, b, … with these hooks; `fields` are of the last of them."""
    kept = Kept()
    providers = [Recorder(name, Log(), before=hook) for name, hook in zip("abc", before, strict=False)]
    listed = [*providers[:-1], bound(providers[-1], **fields), kept.provider]
    run = AgentRun(FakeClient(says("ok")), listed, plan=plan_of(tools=tools))
    await run.say("go")
    return run, kept


def removed_count(run: AgentRun, source_id: str = "b") -> Any:
    [event] = [e for e in run.sink.of("provider.completed") if (e["sourceId"], e["phase"]) == (source_id, "beforeRun")]
    return event.get("removed")


async def test_messages_of_the_context_are_replaced_and_those_that_went_are_counted() -> None:
    run, kept = await run_with(adds("a", message("1"), message("2"), message("3")), trims)

    assert [each.text for each in run.client.requests[0].messages] == ["summary", "3", "go"]
    assert removed_count(run) == 2
    assert kept.removed == [Removal("message", "m-1", BY), Removal("message", "m-2", BY)]


async def test_a_message_that_stays_keeps_its_attribution_and_a_new_one_is_the_replacer_s() -> None:
    run, _ = await run_with(adds("a", message("1")), trims)

    sources = [each.source.source_id for each in run.client.requests[0].messages if each.source is not None]
    assert sources[:2] == ["b", "a"]


async def test_only_the_named_sources_are_replaced() -> None:
    def replace(hook: Hook) -> None:
        hook.context.replace_messages("c", [message("new")], of=["b"])

    run, _ = await run_with(adds("a", message("1")), adds("b", message("2")), replace)

    assert [each.text for each in run.client.requests[0].messages] == ["1", "new", "go"]
    assert removed_count(run, "c") == 1


async def test_the_run_s_own_input_is_never_replaced() -> None:
    def clear(hook: Hook) -> None:
        hook.context.replace_messages("b", [])

    run, _ = await run_with(adds("a", message("1")), clear)

    assert [each.text for each in run.client.requests[0].messages] == ["go"]


async def test_instructions_of_providers_are_replaced_and_the_agent_s_own_are_not() -> None:
    def replace(hook: Hook) -> None:
        hook.context.replace_instructions("b", ["kept", "new", " "])

    run = AgentRun(
        FakeClient(says("ok")),
        [Recorder("a", Log(), before=adds("a", "gone", "kept")), Recorder("b", Log(), before=replace)],
        plan=plan_of(instructions="base"),
    )
    await run.say("go")

    assert run.client.requests[0].instructions == "base\nkept\nnew"
    assert removed_count(run) == 1


async def test_tools_that_are_taken_away_are_neither_offered_nor_run_and_come_back_with_the_next_run() -> None:
    def remove(hook: Hook) -> None:
        hook.context.remove_tools("b", ["echo", "unknown"])

    run, kept = await run_with(adds("a"), remove, tools=[echo, other])

    assert [spec.name for spec in run.client.requests[0].tools] == ["other"]
    assert removed_count(run) == 1
    assert kept.removed == [Removal("tool", "echo", BY)]
    assert [offered.tool.name for offered in run.plan.tools] == ["echo", "other"]


async def test_a_tool_may_take_the_place_of_one_that_was_taken_away() -> None:
    mine = tool(lambda: "mine", name="echo", description="mine")

    def swap(hook: Hook) -> None:
        hook.context.remove_tools("b", ["echo"])
        hook.context.extend_tools("b", mine)

    run, _ = await run_with(adds("a"), swap, tools=[echo])

    assert [spec.description for spec in run.client.requests[0].tools] == ["mine"]


async def test_options_that_nobody_has_set_are_set_and_others_stay() -> None:
    def sets(**options: Any) -> Action:
        return lambda hook: hook.context.extend_options("x", RunOptions(**options))

    run = AgentRun(
        FakeClient(says("ok")),
        [
            Recorder("a", Log(), before=sets(temperature=0.9, seed=1)),
            Recorder("b", Log(), before=sets(seed=2, max_output_tokens=5)),
        ],
    )
    await run.say("go", options=RunOptions(temperature=0.1))

    options = run.client.requests[0].options
    assert (options.temperature, options.seed, options.max_output_tokens) == (0.1, 1, 5)


def overrides(hook: Hook) -> None:
    hook.context.replace_messages("b", [])
    hook.context.replace_instructions("b", "mine")
    hook.context.remove_tools("b", ["echo"])
    hook.context.extend_tools("b", other)
    hook.context.extend_options("b", RunOptions(temperature=0.9))


async def test_everything_that_a_failing_provider_replaced_is_as_it_was() -> None:
    first = adds("a", "from a", message("1"))
    run, kept = await run_with(first, fails(first=overrides), tools=[echo], on_error="warn")

    [request] = run.client.requests
    assert [each.text for each in request.messages] == ["1", "go"]
    assert (request.instructions, request.options.temperature) == ("from a", None)
    assert [spec.name for spec in request.tools] == ["echo"]
    assert kept.removed == []


async def test_nothing_taken_away_is_no_count() -> None:
    run, _ = await run_with(adds("a", "x"), adds("b", "y"))

    assert removed_count(run) is None


@pytest.mark.parametrize("count", [1, 2])
async def test_a_tool_is_offered_once_however_often_it_is_added(count: int) -> None:
    def offer(hook: Hook) -> None:
        tools: list[FunctionTool] = [echo] * count
        hook.context.extend_tools("b", tools)

    run, _ = await run_with(adds("a"), offer, tools=[echo])

    assert [spec.name for spec in run.client.requests[0].tools] == ["echo"]


async def test_tools_of_two_providers_with_one_name_fail_the_run() -> None:
    def offers(made: FunctionTool) -> Action:
        return lambda hook: hook.context.extend_tools("p", made)

    another = tool(lambda: "another", name="echo")
    run = AgentRun(
        FakeClient(), [Recorder("p1", Log(), before=offers(echo)), Recorder("p2", Log(), before=offers(another))]
    )
    with pytest.raises(ProviderFailed) as caught:
        await run.say("go")

    assert caught.value.fields["source_id"] == "p2"
