"""Providers of the 2025 style in runs: when they are made, entered, told, left, and made again."""

import asyncio
from collections.abc import MutableSequence, Sequence
from typing import Any

import pytest

from protocol.messages import Source, text_message
from providers.api.invoking import MOST_LIVE, Context, InvokingAdapter, InvokingProvider
from providers.api.invoking_chat import ChatMessage, ChatOptions, Role, RunChatClient
from providers.api.session import Session
from providers.api.tool import tool
from sidecar.agents.runner import Execution
from sidecar.errors import ModelUnavailable, ProviderFailed
from tests.bench.agent_run import AgentRun, bound
from tests.bench.fake_client import FakeClient, Hang, TextDelta, gives, says
from tests.bench.providers import Log, Recorder


class Diary(InvokingProvider):
    """Notes everything that happens to it, and remembers what the user said."""

    def __init__(self, log: list[str], state: Any = None, **adds: Any) -> None:
        self.heard: list[str] = list(state or [])
        self._log = log
        self._adds = adds
        log.append(f"made from {state}")

    async def thread_created(self, thread_id: str | None) -> None:
        self._log.append(f"created {thread_id}")

    async def invoking(self, messages: ChatMessage | MutableSequence[ChatMessage], **kwargs: Any) -> Context:
        assert isinstance(messages, list)
        self._log.append(f"invoking {[message.text for message in messages]}")
        return Context(**self._adds)

    async def invoked(
        self,
        request_messages: ChatMessage | Sequence[ChatMessage],
        response_messages: ChatMessage | Sequence[ChatMessage] | None = None,
        invoke_exception: Exception | None = None,
        **kwargs: Any,
    ) -> None:
        assert isinstance(request_messages, list)
        answered = "nothing"
        if isinstance(response_messages, list):
            answered = str([f"{message.role}: {message.text}" for message in response_messages])
        self.heard.extend(message.text for message in request_messages)
        self._log.append(f"invoked {answered} {type(invoke_exception).__name__}")

    def serialize(self) -> Any:
        return self.heard

    async def __aenter__(self) -> "Diary":
        self._log.append("enter")
        return self

    async def __aexit__(self, *exc: object) -> None:
        self._log.append("exit")


def diary(log: list[str], **adds: Any) -> InvokingAdapter:
    return InvokingAdapter("diary", lambda state: Diary(log, state, **adds))


async def test_only_so_many_sessions_are_kept_ready_and_none_is_forgotten() -> None:
    log: list[str] = []
    adapter = diary(log)
    runs = [
        AgentRun(FakeClient(says("ok"), says("ok")), [adapter], session=Session(f"s{number}"))
        for number in range(MOST_LIVE + 1)
    ]
    for run in runs:
        await run.say("one")
    log.clear()

    await runs[0].say("two")
    await runs[-1].say("two")

    assert [line for line in log if line.startswith("made")] == ["made from ['one']"]
    assert [run.session.state["diary"]["serialized"] for run in (runs[0], runs[-1])] == [["one", "two"]] * 2


async def test_a_provider_is_made_for_its_session_s_first_run_and_entered_and_left_in_each() -> None:
    log: list[str] = []
    run = AgentRun(FakeClient(says("a1"), says("a2")), [diary(log)])

    await run.say("q1")
    assert log == [
        "made from None",
        "enter",
        "created s",
        "invoking ['q1']",
        "invoked ['assistant: a1'] NoneType",
        "exit",
    ]

    log.clear()
    await run.say("q2")
    assert log == ["enter", "invoking ['q2']", "invoked ['assistant: a2'] NoneType", "exit"]
    assert run.session.state == {"diary": {"serialized": ["q1", "q2"]}}


async def test_what_a_provider_adds_is_attributed_to_the_adapter_and_stands_beside_the_run_s_own() -> None:
    @tool
    def look_up(word: str) -> str:
        """Look it up."""
        return word

    note, plain = ChatMessage(Role.USER, text="a note"), text_message("user", "another")
    adapter = diary([], instructions="Be kind.", messages=[note, plain], tools=[look_up])
    run = AgentRun(FakeClient(says("ok")), [adapter])

    await run.say("hi")

    request = run.client.requests[0]
    assert [message.text for message in request.messages] == ["a note", "another", "hi"]
    stamp = Source(type="provider", source_id="diary", source_type="InvokingAdapter")
    assert [message.source for message in request.messages[:2]] == [stamp, stamp]
    assert request.instructions == "Be kind."
    assert [spec.name for spec in request.tools] == ["look_up"]


async def test_several_providers_add_in_their_order_and_are_asked_at_once() -> None:
    meet = asyncio.Barrier(2)

    class Meets(InvokingProvider):
        def __init__(self, name: str) -> None:
            self.name = name

        async def invoking(self, messages: Any, **kwargs: Any) -> Context:
            await meet.wait()
            return Context(self.name, [ChatMessage("user", text=self.name)])

        async def serialize(self) -> Any:
            return self.name

    given: list[Any] = []

    def make(state: Any) -> list[InvokingProvider]:
        given.append(state)
        return [Meets("one"), Meets("two")]

    run = AgentRun(FakeClient(says("ok"), says("ok")), [InvokingAdapter("both", make)])
    await run.say("hi")
    restored = AgentRun(run.client, [InvokingAdapter("both", make)], session=run.session)
    await restored.say("hi")

    assert run.client.requests[0].instructions == "one\ntwo"
    assert [message.text for message in run.client.requests[0].messages] == ["one", "two", "hi"]
    assert given == [None, ["one", "two"]]


async def test_a_failed_run_is_told_with_its_exception_and_left() -> None:
    log: list[str] = []
    run = AgentRun(FakeClient([TextDelta("Once"), ModelUnavailable("down")]), [diary(log)])

    with pytest.raises(ModelUnavailable):
        await run.say("q1")

    assert log[-2:] == ["invoked nothing ModelUnavailable", "exit"]


async def test_a_run_that_is_stopped_is_told_and_left() -> None:
    log: list[str] = []
    hang = Hang()
    run = AgentRun(FakeClient([TextDelta("Once"), hang]), [diary(log)])
    execution = run.execution("q1")
    work = asyncio.create_task(execution.run())
    await hang.reached.wait()

    await stop(execution, work)

    assert log[-2:] == ["invoked nothing RuntimeError", "exit"]


async def test_a_run_that_fails_after_the_provider_had_its_turn_is_not_told_twice() -> None:
    log: list[str] = []
    reached = asyncio.Event()

    async def hang(_: Any) -> None:
        reached.set()
        await asyncio.Event().wait()

    run = AgentRun(FakeClient(says("ok")), [Recorder("last", Log(), after=hang), diary(log)])
    execution = run.execution("q1")
    work = asyncio.create_task(execution.run())
    await reached.wait()

    await stop(execution, work)

    assert log[-2:] == ["invoked ['assistant: ok'] NoneType", "exit"]
    assert sum(line.startswith("invoked") for line in log) == 1


async def test_what_a_dropped_run_has_taught_a_provider_is_dropped_with_it() -> None:
    log: list[str] = []
    adapter = diary(log)
    run = AgentRun(FakeClient(says("ok"), [ModelUnavailable("down")], says("ok")), [adapter])
    await run.say("kept")
    before = run.session.to_dict()
    with pytest.raises(ModelUnavailable):
        await run.say("dropped")
    run.session = Session.from_dict(before)

    await run.say("again")

    assert "made from ['kept']" in log
    assert run.session.state["diary"] == {"serialized": ["kept", "again"]}


async def test_a_state_that_the_host_has_changed_is_what_the_provider_is_made_from() -> None:
    log: list[str] = []
    run = AgentRun(FakeClient(says("ok"), says("ok")), [diary(log)])
    await run.say("one")

    run.session.state["diary"] = {"serialized": ["told by the host"]}
    await run.say("two")

    assert run.session.state["diary"] == {"serialized": ["told by the host", "two"]}


async def test_a_provider_that_fails_fails_the_run_and_is_left() -> None:
    log: list[str] = []

    class Fails(Diary):
        async def invoking(self, messages: Any, **kwargs: Any) -> Context:
            raise KeyError("secret")

    run = AgentRun(FakeClient(), [InvokingAdapter("diary", lambda state: Fails(log, state))])

    with pytest.raises(ProviderFailed, match="KeyError"):
        await run.say("hi")

    assert log[-2:] == ["invoked nothing ProviderFailed", "exit"]


async def test_a_provider_whose_failure_only_warns_still_learns_from_the_run() -> None:
    log: list[str] = []

    class Fails(Diary):
        async def invoking(self, messages: Any, **kwargs: Any) -> Context:
            raise KeyError("secret")

    adapter = InvokingAdapter("diary", lambda state: Fails(log, state))
    run = AgentRun(FakeClient(says("ok")), [bound(adapter, on_error="warn")])

    await run.say("hi")

    assert log[-2:] == ["invoked ['assistant: ok'] NoneType", "exit"]
    assert run.session.state["diary"] == {"serialized": ["hi"]}


async def test_one_that_cannot_be_entered_leaves_those_that_were() -> None:
    log: list[str] = []

    class Shut(InvokingProvider):
        async def __aenter__(self) -> Any:
            raise OSError("shut")

    run = AgentRun(FakeClient(), [InvokingAdapter("diary", lambda state: [Diary(log, state), Shut()])])

    with pytest.raises(ProviderFailed, match="OSError"):
        await run.say("hi")

    assert log == ["made from None", "enter", "exit"]


async def test_state_that_is_no_json_costs_this_provider_s_state_only() -> None:
    class Odd(Diary):
        def serialize(self) -> Any:
            return {"when": {1, 2}}

    run = AgentRun(FakeClient(says("ok")), [InvokingAdapter("odd", lambda state: Odd([], state))])

    execution = await run.say("hi")

    assert execution.progress.text == "ok"
    assert run.session.state == {"odd": {}}
    assert [source for _, _, source in run.sink.warnings] == ["odd"]


async def test_the_state_is_no_part_of_the_provider() -> None:
    log: list[str] = []
    adapter = diary(log)
    run = AgentRun(FakeClient(says("ok")), [adapter])
    await run.say("one")
    [provider] = adapter.providers("s")
    assert isinstance(provider, Diary)

    provider.heard.append("behind the sidecar's back")

    assert run.session.state["diary"] == {"serialized": ["one"]}


@pytest.mark.parametrize("shared", [InvokingProvider(), [InvokingProvider()], None])
def test_a_shared_instance_is_refused_with_the_advice_to_give_a_factory(shared: Any) -> None:
    with pytest.raises(TypeError, match="'m' needs a factory that makes a new provider each time"):
        InvokingAdapter("m", shared)


async def test_a_factory_that_hands_out_one_instance_twice_fails_the_second_session() -> None:
    memory = Diary([])
    client = FakeClient(says("ok"))
    await AgentRun(client, [InvokingAdapter("m", lambda state: memory)]).say("hi")

    with pytest.raises(ProviderFailed, match="TypeError"):
        await AgentRun(client, [InvokingAdapter("m", lambda state: memory)], session=Session("other")).say("hi")

    assert memory.heard == ["hi"]


async def test_a_factory_that_makes_no_provider_fails_the_run() -> None:
    made: Any = [object()]
    run = AgentRun(FakeClient(), [InvokingAdapter("m", lambda state: made)])

    with pytest.raises(ProviderFailed, match="TypeError"):
        await run.say("hi")


async def test_the_chat_client_takes_options_and_another_model() -> None:
    other = FakeClient(gives({"n": 1}), name="other:model")
    answers: list[Any] = []

    class Asks(InvokingProvider):
        async def invoking(self, messages: Any, **kwargs: Any) -> Context:
            schema = {"type": "object"}
            options = ChatOptions(model_id="other:model", max_tokens=5, stop=["."], response_format=schema)
            answer = await RunChatClient().get_response("count", chat_options=options)
            answers.extend((answer.value, answer.text, [message.role for message in answer.messages]))
            return Context()

    adapter = InvokingAdapter("asks", lambda state: Asks())

    await AgentRun(FakeClient(says("ok")), [adapter], others=[other]).say("hi")

    [request] = other.requests
    assert answers == [{"n": 1}, '{"n": 1}', ["assistant"]]
    assert [(message.role, message.text) for message in request.messages] == [("user", "count")]
    assert (request.options.max_output_tokens, request.options.stop) == (5, (".",))
    assert request.options.model_fields_set == {"max_output_tokens", "stop"}
    assert request.response_schema == {"type": "object"}


def test_a_chat_message_is_a_view_of_a_message() -> None:
    message = text_message("assistant", "hi", author_name="A", message_id="m1", metadata={"n": 1})

    view = ChatMessage.of(message)

    assert view.message is message
    assert (view.role, view.role.value, view.text) == (Role.ASSISTANT, "assistant", "hi")
    assert (view.author_name, view.message_id, view.additional_properties) == ("A", "m1", {"n": 1})
    assert [type(block).__name__ for block in view.contents] == ["TextBlock"]


def test_a_chat_message_can_be_made_of_text_and_contents() -> None:
    made = ChatMessage("user", text="one", contents=["two", *text_message("user", "three").content])

    assert made.text == "onetwothree"
    assert made.message == text_message("user", "one").model_copy(update={"content": made.message.content})
    with pytest.raises(ValueError, match="narrator"):
        ChatMessage("narrator")


async def stop(execution: Execution, work: "asyncio.Task[None]") -> None:
    """End a run as its turn does."""
    work.cancel()
    with pytest.raises(asyncio.CancelledError):
        await work
    await execution.failed(RuntimeError("the run was stopped"))
