"""What each model call of a run is sent: input that joined under way, and histories that are fed around every call."""

from collections.abc import Sequence
from typing import Any

from protocol.messages import Message
from providers.api.history import HistoryProvider
from providers.api.ports import ChatRequest, Finished, ModelTraits, TextDelta
from providers.api.tool import FunctionTool, tool, tool_from_schema
from sidecar.agents.loop import LIMIT_TEXT
from sidecar.agents.runner import Execution
from tests.bench.agent_run import AgentRun, plan_of, user
from tests.bench.fake_client import FakeClient, says
from tests.bench.providers import Hook, Log, Recorder
from tests.bench.tool_calls import asks, call


@tool
async def echo() -> str:
    return "echo"


class Kept(HistoryProvider):
    """Keeps messages in memory, and every save apart."""

    def __init__(self, source_id: str = "kept", **flags: Any) -> None:
        super().__init__(source_id, **flags)
        self.saves: list[list[str]] = []
        self.messages: list[Message] = []

    async def get_messages(self, session_id: str | None, *, state: Any) -> Sequence[Message]:
        return tuple(self.messages)

    async def save_messages(self, session_id: str | None, messages: Sequence[Message], *, state: Any) -> None:
        self.saves.append([message.role for message in messages])
        self.messages.extend(messages)


def roles(request: ChatRequest) -> list[str]:
    return [message.role for message in request.messages]


def joining(running: list[Execution]) -> FunctionTool:
    """A tool during which some input joins the run."""

    async def store() -> Sequence[Message]:
        return (user("and this").model_copy(update={"message_id": "joined"}),)

    @tool
    async def join() -> bool:
        return await running[0].steering.offer(store)

    return join


async def test_input_that_joins_under_way_is_sent_once_and_behind_what_was_said() -> None:
    running: list[Execution] = []
    seen: list[list[str]] = []

    def after(hook: Hook) -> None:
        seen.append([message.text for message in hook.context.input_messages])

    client = FakeClient(asks(call("join", "c1")), asks(call("echo", "c2")), says("done"))
    run = AgentRun(client, [Recorder("p", Log(), after=after)], plan=plan_of(tools=[joining(running), echo]))
    running.append(run.execution("go"))
    await running[0].run()

    assert [message.text for message in client.requests[1].messages] == ["go", "", "", "and this"]
    assert [message.text for message in client.requests[2].messages] == ["go", "", "", "and this", "", ""]
    assert seen == [["go", "and this"]]


async def test_with_a_history_around_each_call_every_call_is_saved_and_nothing_is_sent_twice() -> None:
    """Case 21."""
    history = Kept()
    client = FakeClient(asks(call("echo", "c1")), says("done"), says("again"))
    run = AgentRun(client, [history], plan=plan_of(tools=[echo], perServiceCallHistory=True))
    await run.say("go")
    await run.say("more")

    assert history.saves == [["user", "assistant"], ["tool", "assistant"], ["user", "assistant"]]
    assert [roles(request) for request in client.requests] == [
        ["user"],
        ["user", "assistant", "tool"],
        ["user", "assistant", "tool", "assistant", "user"],
    ]


async def test_an_audit_around_each_call_keeps_every_call_and_changes_nothing_of_what_is_sent() -> None:
    audit = Kept("audit", load_messages=False)
    client = FakeClient(asks(call("echo", "c1")), asks(call("echo", "c2")), says("done"))
    run = AgentRun(client, [audit], plan=plan_of(tools=[echo], perServiceCallHistory=True))
    await run.say("go")

    assert [roles(request) for request in client.requests] == [
        ["user"],
        ["user", "assistant", "tool"],
        ["user", "assistant", "tool", "assistant", "tool"],
    ]
    assert audit.saves == [["user", "assistant"], ["tool", "assistant"], ["tool", "assistant"]]


async def test_input_that_joins_under_way_is_saved_once_by_a_history_around_each_call() -> None:
    running: list[Execution] = []
    history = Kept()

    client = FakeClient(asks(call("join", "c1")), asks(call("echo", "c2")), says("done"))
    run = AgentRun(client, [history], plan=plan_of(tools=[joining(running), echo], perServiceCallHistory=True))
    running.append(run.execution("go"))
    await running[0].run()

    assert [message.text for message in client.requests[1].messages] == ["go", "", "", "and this"]
    assert [message.text for message in client.requests[2].messages] == ["go", "", "", "and this", "", ""]
    assert [message.text for message in history.messages].count("and this") == 1


async def test_results_behind_which_the_run_ends_are_saved_by_a_history_around_each_call() -> None:
    history = Kept()
    pick = tool_from_schema(None, name="pick", description="")
    run = AgentRun(
        FakeClient(asks(call("echo", "c1"), call("pick", "c2"))),
        [history],
        plan=plan_of(tools=[echo, pick], perServiceCallHistory=True),
    )
    await run.say("go")

    assert history.saves == [["user", "assistant"], ["tool"]]


async def test_the_fallback_text_is_saved_by_a_history_around_each_call() -> None:
    history = Kept()
    run = AgentRun(
        FakeClient(asks("echo"), says()), [history], plan=plan_of(tools=[echo], perServiceCallHistory=True, maxTurns=1)
    )
    await run.say("go")

    assert history.saves == [["user", "assistant"], ["tool"], ["assistant"]]
    assert history.messages[-1].text == LIMIT_TEXT


async def test_a_history_around_each_call_keeps_the_results_too_where_the_service_keeps_the_conversation() -> None:
    class Keeping(FakeClient):
        @property
        def traits(self) -> ModelTraits:
            return ModelTraits(keeps_conversations=True, stores_by_default=True)

    history = Kept()
    first = [*asks(call("echo", "c1"))[:-1], Finished("toolCalls", conversation_id="conv")]
    client = Keeping(first, [TextDelta("done"), Finished("stop", conversation_id="conv")])
    run = AgentRun(client, [history], plan=plan_of(tools=[echo], perServiceCallHistory=True))
    await run.say("go")

    assert history.saves == [["user", "assistant"], ["tool", "assistant"]]
    assert [roles(request) for request in client.requests] == [["user"], ["tool"]]
