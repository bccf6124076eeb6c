"""Seed 001's memory in runs: the tutorial's own class, through the adapter for providers of the 2025 style."""

from collections.abc import MutableSequence, Sequence
from typing import Any

import pytest
from pydantic import BaseModel

from protocol.messages import Usage
from providers.api.invoking import Context, InvokingAdapter, InvokingProvider
from providers.api.invoking_chat import ChatClientProtocol, ChatMessage, ChatOptions, RunChatClient
from providers.api.session import Session
from sidecar.errors import ModelUnavailable
from tests.bench.agent_run import AgentRun
from tests.bench.fake_client import FakeClient, gives, says

ContextProvider = InvokingProvider


class UserInfo(BaseModel):
    name: str | None = None
    age: int | None = None


class UserInfoMemory(ContextProvider):
    """As the tutorial has it; only what it imports has other names."""

    def __init__(self, chat_client: ChatClientProtocol, user_info: UserInfo | None = None, **kwargs: Any):
        self._chat_client = chat_client
        if user_info:
            self.user_info = user_info
        elif kwargs:
            self.user_info = UserInfo.model_validate(kwargs)
        else:
            self.user_info = UserInfo()

    async def invoked(
        self,
        request_messages: ChatMessage | Sequence[ChatMessage],
        response_messages: ChatMessage | Sequence[ChatMessage] | None = None,
        invoke_exception: Exception | None = None,
        **kwargs: Any,
    ) -> None:
        messages_list = [request_messages] if isinstance(request_messages, ChatMessage) else list(request_messages)
        user_messages = [msg for msg in messages_list if msg.role.value == "user"]
        if (self.user_info.name is None or self.user_info.age is None) and user_messages:
            try:
                result = await self._chat_client.get_response(
                    messages=messages_list,
                    chat_options=ChatOptions(
                        instructions=(
                            "Extract the user's name and age from the message if present. If not present return nulls."
                        ),
                        response_format=UserInfo,
                    ),
                )
                if result.value and isinstance(result.value, UserInfo):
                    if self.user_info.name is None and result.value.name:
                        self.user_info.name = result.value.name
                    if self.user_info.age is None and result.value.age:
                        self.user_info.age = result.value.age
            except Exception:
                pass

    async def invoking(self, messages: ChatMessage | MutableSequence[ChatMessage], **kwargs: Any) -> Context:
        instructions: list[str] = []
        if self.user_info.name is None:
            instructions.append(
                "Ask the user for their name and politely decline to answer any questions until they provide it."
            )
        else:
            instructions.append(f"The user's name is {self.user_info.name}.")
        if self.user_info.age is None:
            instructions.append(
                "Ask the user for their age and politely decline to answer any questions until they provide it."
            )
        else:
            instructions.append(f"The user's age is {self.user_info.age}.")
        return Context(instructions=" ".join(instructions))

    def serialize(self) -> str:
        return self.user_info.model_dump_json()


def remembered(state: Any) -> UserInfoMemory:
    """The memory as it was, or a new one."""
    return UserInfoMemory(RunChatClient(), UserInfo.model_validate_json(state) if state else None)


ASK_BOTH = (
    "Ask the user for their name and politely decline to answer any questions until they provide it. "
    "Ask the user for their age and politely decline to answer any questions until they provide it."
)
KNOWN = "The user's name is Ruaidhrí. The user's age is 20."


async def test_the_tutorial_s_memory_learns_and_is_remembered_with_its_session() -> None:
    client = FakeClient(
        says("Who are you?"),
        gives({"name": None, "age": None}),
        says("And your age?"),
        gives({"name": "Ruaidhrí", "age": None}),
        says("Thanks."),
        gives({"name": None, "age": 20}),
        says("3."),
    )
    run = AgentRun(client, [InvokingAdapter("memory", remembered)])

    for text in ["Hello, what is the square root of 9?", "My name is Ruaidhrí", "I am 20 years old"]:
        await run.say(text)
    restored = AgentRun(
        client, [InvokingAdapter("memory", remembered)], session=Session.from_dict(run.session.to_dict())
    )
    await restored.say("And the square root of 9?")

    asked = [request.instructions for request in client.requests if request.response_schema is None]
    assert asked[0] == ASK_BOTH
    assert asked[1] == ASK_BOTH
    assert asked[2].startswith("The user's name is Ruaidhrí. Ask the user for their age")
    assert asked[3] == KNOWN
    assert UserInfo.model_validate_json(run.session.state["memory"]["serialized"]) == UserInfo(name="Ruaidhrí", age=20)
    assert client.answers == []


async def test_the_tutorial_s_memory_can_be_looked_at() -> None:
    adapter = InvokingAdapter("memory", remembered)
    client = FakeClient(says("Hi."), gives({"name": "Ada", "age": 36}))
    assert adapter.providers("s") == ()

    await AgentRun(client, [adapter]).say("I am Ada, 36")

    [memory] = adapter.providers("s")
    assert isinstance(memory, UserInfoMemory)
    assert memory.user_info == UserInfo(name="Ada", age=36)


async def test_an_extraction_is_asked_of_the_run_s_model_as_told_and_counts_in_its_usage() -> None:
    used = Usage(input_tokens=1, output_tokens=1)
    client = FakeClient(says("Hi.", usage=used), gives({"name": "Ada", "age": 36}, usage=used))

    execution = await AgentRun(client, [InvokingAdapter("memory", remembered)]).say("I am Ada, 36")

    extraction = client.requests[1]
    assert extraction.instructions.startswith("Extract the user's name")
    assert extraction.response_schema == UserInfo.model_json_schema()
    assert [message.text for message in extraction.messages] == ["I am Ada, 36"]
    assert execution.progress.meter.usage == Usage(input_tokens=2, output_tokens=2)


@pytest.mark.parametrize("answer", [says("no JSON"), gives({"name": ["Ada"]}), [ModelUnavailable("down")]])
async def test_an_extraction_that_fails_changes_nothing(answer: Any) -> None:
    run = AgentRun(FakeClient(says("Hi."), answer), [InvokingAdapter("memory", remembered)])

    execution = await run.say("I am Ada, 36")

    assert execution.progress.text == "Hi."
    assert UserInfo.model_validate_json(run.session.state["memory"]["serialized"]) == UserInfo()


async def test_the_tutorial_s_memory_of_one_session_is_not_told_in_another() -> None:
    adapter = InvokingAdapter("memory", remembered)
    ada = gives({"name": "Ada", "age": 36})
    client = FakeClient(says("Hi."), ada, says("Who?"), gives({}), says("Ada."))
    first, second = AgentRun(client, [adapter]), AgentRun(client, [adapter], session=Session("other"))

    await first.say("I am Ada, 36")
    await second.say("Who am I?")
    await first.say("Who am I?")

    asked = [request.instructions for request in client.requests if request.response_schema is None]
    assert asked == [ASK_BOTH, ASK_BOTH, "The user's name is Ada. The user's age is 36."]


async def test_the_chat_client_works_only_while_a_run_asks_its_provider() -> None:
    await AgentRun(FakeClient(says("Hi."), gives({})), [InvokingAdapter("memory", remembered)]).say("hi")

    with pytest.raises(RuntimeError, match="only while a run asks"):
        await RunChatClient().get_response("hi")
