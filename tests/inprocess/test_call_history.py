"""History that is fed and saved around every single model call, instead of around the run."""

from collections.abc import Sequence
from typing import Any

import pytest

from protocol.messages import FunctionResultBlock, Message
from providers.api.history import HistoryProvider
from providers.api.ports import Finished, TextDelta
from providers.api.session import State
from providers.api.tool import tool
from sidecar.errors import ConfigInvalid, ModelUnavailable, ProviderFailed
from tests.bench.agent_run import AgentRun, plan_of
from tests.bench.fake_client import FakeClient, Step, calls, says


@tool
def look() -> str:
    """Look something up."""
    return "found"


class Kept(HistoryProvider):
    """Keeps messages in a list, and notes each call."""

    def __init__(self) -> None:
        super().__init__("kept")
        self.log: list[Any] = []
        self.messages: list[Message] = []
        self.broken = False

    async def get_messages(self, session_id: str | None, *, state: State) -> Sequence[Message]:
        self.log.append("get")
        return tuple(self.messages)

    async def save_messages(self, session_id: str | None, messages: Sequence[Message], *, state: State) -> None:
        if self.broken:
            raise OSError("disk")
        self.log.append([message.role for message in messages])
        self.messages.extend(messages)


def agent(client: FakeClient, history: Kept) -> AgentRun:
    return AgentRun(client, [history], plan=plan_of(tools=[look], perServiceCallHistory=True))


def roles(messages: Sequence[Message]) -> list[str]:
    return [message.role for message in messages]


async def test_each_call_is_fed_and_saved_by_itself() -> None:
    """Case 21."""
    history = Kept()
    run = agent(FakeClient(calls("look"), says("done")), history)

    await run.say("go")

    assert history.log == ["get", ["user", "assistant"], "get", ["tool", "assistant"]]
    assert [roles(request.messages) for request in run.client.requests] == [["user"], ["user", "assistant", "tool"]]


async def test_what_was_saved_before_a_failure_stays_and_the_next_run_goes_on_with_the_call_closed() -> None:
    """Case 21."""
    history = Kept()
    run = agent(FakeClient(calls("look"), [ModelUnavailable("down")], says("again")), history)

    with pytest.raises(ModelUnavailable):
        await run.say("go")
    await run.say("and now?")

    assert roles(history.messages) == ["user", "assistant", "user", "assistant"]
    last = run.client.requests[-1].messages
    assert roles(last) == ["user", "user"], "a call without its result is never sent"
    assert not any(isinstance(block, FunctionResultBlock) for message in last for block in message.content)


async def test_a_service_that_keeps_the_conversation_too_fails_the_run_by_name() -> None:
    """Case 22."""
    kept: list[Step] = [TextDelta("hi"), Finished("stop", conversation_id="conv_1")]

    with pytest.raises(ConfigInvalid, match=r"perServiceCallHistory.*options\.store"):
        await agent(FakeClient(kept), Kept()).say("go")


async def test_a_history_that_cannot_be_saved_fails_the_run_by_its_name() -> None:
    history = Kept()
    history.broken = True

    with pytest.raises(ProviderFailed, match="'kept' failed in afterRun: OSError"):
        await agent(FakeClient(says("hi")), history).say("go")


async def test_without_a_history_that_keeps_its_own_the_flag_changes_nothing() -> None:
    run = AgentRun(FakeClient(says("hi")), plan=plan_of(perServiceCallHistory=True))

    assert (await run.say("go")).progress.text == "hi"
