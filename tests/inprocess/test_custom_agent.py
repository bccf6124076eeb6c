"""An agent with a `run` of its own: what it gives is the run's answer, and all around it stays as it is."""

import asyncio
import threading
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest

from protocol.agents import AgentSpec
from protocol.messages import FunctionCallBlock, Message, TextBlock, text_message
from providers.api.agent import AgentError, AgentRequest, CustomAgent
from providers.api.context import Response
from providers.api.middleware import AgentContext, CallNext, ChatContext, chat_middleware
from providers.api.ports import ask
from providers.api.provider import Surroundings
from providers.api.run_context import current_run
from providers.api.simple import SimpleProvider
from providers.api.tool import tool
from sidecar.agents.catalog import ResolvedAgent
from sidecar.agents.parts import Parts
from sidecar.agents.plan import SessionSettings, make_plan
from sidecar.errors import AgentFailed, ConfigInvalid, ModelRateLimited
from tests.bench.agent_run import AgentRun, plan_of, user
from tests.bench.fake_client import FakeClient, says
from tests.bench.waiting import eventually


class Given(CustomAgent):
    """Gives what it was made with, and keeps the requests."""

    def __init__(self, answer: Any) -> None:
        super().__init__("tester")
        self.answer = answer
        self.requests: list[AgentRequest] = []

    async def run(self, request: AgentRequest) -> Any:
        self.requests.append(request)
        return self.answer(request) if callable(self.answer) else self.answer


class Pieces(CustomAgent):
    """Gives pieces; one that is an exception is raised."""

    def __init__(self, *pieces: Any) -> None:
        super().__init__("tester")
        self.pieces = pieces
        self.freed = False

    async def run(self, request: AgentRequest) -> AsyncIterator[Any]:
        del request
        try:
            for piece in self.pieces:
                if isinstance(piece, asyncio.Event):
                    await piece.wait()
                elif isinstance(piece, BaseException):
                    raise piece
                else:
                    yield piece
        finally:
            self.freed = True


def agent(implementation: Any, *answers: Any, **plan: Any) -> AgentRun:
    providers, entries = plan.pop("providers", ()), plan.pop("entries", ())
    made = AgentRun(FakeClient(*answers), providers=providers, plan=plan_of(*entries, **plan))
    made.plan = replace(made.plan, implementation=implementation)
    return made


def texts(messages: Any) -> list[str]:
    return [message.text for message in messages]


# ---- what it gives ---------------------------------------------------------------------------------------------------


async def test_pieces_are_streamed_and_stored_as_one_message() -> None:
    run = agent(Pieces("Hel", "lo", ""))

    progress = (await run.say("hi")).progress

    assert texts(progress.messages) == ["Hello"]
    assert [data["text"] for data in run.sink.of("message.delta")] == ["Hel", "lo"]
    [stored] = progress.messages
    assert (stored.role, stored.author_name, stored.run_id) == ("assistant", "tester", "run-1")
    assert (stored.source and stored.source.type, stored.source and stored.source.source_id) == ("agent", "tester")
    assert progress.stop_reason == "endTurn"


async def test_a_message_stands_by_itself_between_texts() -> None:
    whole = Message(role="assistant", content=(TextBlock(text="whole"),), message_id="mine")

    progress = (await agent(Pieces("a", whole, "b", "c")).say("hi")).progress

    assert texts(progress.messages) == ["a", "whole", "bc"]
    assert len({message.message_id for message in progress.messages} - {"mine", None}) == 3


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("text", ["text"]),
        ("", []),
        (None, []),
        (text_message("assistant", "one"), ["one"]),
        ([text_message("assistant", "one"), text_message("assistant", "two")], ["one", "two"]),
        (Response((text_message("assistant", "one"),), "one"), ["one"]),
        (Response((), "text"), ["text"]),
        (lambda _: Pieces("a", "b").run(None), ["ab"]),
    ],
    ids=["text", "empty", "nothing", "message", "messages", "response", "response of text", "iterator"],
)
async def test_an_answer_may_be_given_whole(answer: Any, expected: list[str]) -> None:
    assert texts((await agent(Given(answer)).say("hi")).progress.messages) == expected


async def test_a_plain_run_is_called_in_a_thread_and_may_block() -> None:
    seen: list[Any] = []

    class Plain(CustomAgent):
        def run(self, request: AgentRequest) -> str:
            seen.extend([threading.current_thread(), current_run()])
            return request.input_text

    assert texts((await agent(Plain("x")).say("one", "two")).progress.messages) == ["one\ntwo"]
    assert seen[0] is not threading.main_thread()
    assert seen[1].run_id == "run-1"


async def test_broken_text_is_mended() -> None:
    progress = (await agent(Pieces("\ud83d", "\ude00\0", text_message("assistant", "\ud83d"))).say("hi")).progress

    assert texts(progress.messages) == ["\U0001f600\ufffd", "\ufffd"]


@pytest.mark.parametrize(
    ("piece", "why"),
    [
        (3, "its run gave a int, not text or a Message"),
        (user("x"), "the role 'user'"),
        (Message(role="assistant", content=(FunctionCallBlock(call_id="c", name="t", arguments={}),)), "holds calls"),
    ],
)
async def test_what_is_no_answer_fails_the_run(piece: Any, why: str) -> None:
    for implementation in (Pieces("a", piece), Given([piece])):
        with pytest.raises(AgentFailed) as failed:
            await agent(implementation).say("hi")
        assert why in failed.value.message


# ---- what it is given ------------------------------------------------------------------------------------------------


class Note(SimpleProvider):
    async def provide(self, request: Any) -> Any:
        return "a note"

    async def store(self, exchange: Any) -> None:
        exchange.state["answer"] = exchange.response_text


async def test_it_sees_what_a_model_would_see() -> None:
    implementation = Given("done")
    before = {"type": "static_messages", "sourceId": "s", "config": {"messages": [{"role": "user", "content": "b"}]}}
    run = agent(
        implementation,
        entries=[before],
        providers=[Note("note")],
        tools=[tool(lambda: 1, name="one")],
        instructions="Be kind.",
    )

    await run.say("hi", client_kwargs={"a": 1}, kwargs={"b": 2}, run_instructions="Now.", is_streaming=False)

    [request] = implementation.requests
    assert texts(request.messages) == ["b", "hi"]
    assert (request.input_text, request.instructions) == ("hi", "Be kind.\na note\nNow.")
    assert [one.name for one in request.tools] == ["one"]
    assert (request.client_kwargs, request.run.kwargs, request.is_streaming) == ({"a": 1}, {"b": 2}, False)
    assert [spec.name for spec in request.chat_request().tools] == ["one"]
    assert run.session.state["note"] == {"answer": "done"}


async def test_the_model_is_its_own_to_ask_and_is_counted() -> None:
    class Asks(CustomAgent):
        async def run(self, request: AgentRequest) -> str:
            answer = await ask(request.run.agent.chat_client(), request.chat_request())
            return f"The model says: {answer.text}"

    run = agent(Asks("x"), says("yes"))

    progress = (await run.say("really?")).progress

    assert texts(progress.messages) == ["The model says: yes"]
    assert texts(run.client.requests[0].messages) == ["really?"]
    assert progress.meter.usage.output_tokens


async def test_one_that_asks_no_model_needs_none() -> None:
    class NoModels:
        def get(self, model: str) -> Any:
            pytest.fail(f"{model} was asked for")

        async def ready(self, model: str) -> Any:
            pytest.fail(f"{model} was asked for")

        async def default(self) -> str:
            pytest.fail("the default model was asked for")

    run = agent(Given("x"))
    execution = run.execution("hi")
    execution._models = NoModels()

    await execution.run()

    assert texts(execution.progress.messages) == ["x"]


# ---- what stands around it -------------------------------------------------------------------------------------------


async def test_run_middleware_stands_around_it() -> None:
    async def louder(context: AgentContext, call_next: CallNext) -> None:
        context.messages.append(user("also"))
        await call_next()
        assert context.result is not None
        context.result = Response((), context.result.text.upper())

    progress = (await agent(Given(lambda r: f"<{r.input_text}>"), middleware=[louder]).say("hi")).progress

    assert progress.text == "<HI\nALSO>"


async def test_middleware_of_the_loop_s_own_calls_is_left_out_with_a_warning() -> None:
    @chat_middleware
    async def around(_context: ChatContext, _call_next: CallNext) -> None:
        pytest.fail("there is no call of the loop's")

    run = agent(Given("x"), middleware=[around])

    assert texts((await run.say("hi")).progress.messages) == ["x"]
    assert [kind for kind, *_ in run.sink.warnings] == ["middlewareNotUsed"]


async def test_a_value_is_read_from_its_text() -> None:
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}}
    implementation = Given('{"n": 3}')

    progress = (await agent(implementation).say("hi", response_schema=schema)).progress

    assert progress.value == {"n": 3}
    assert implementation.requests[0].response_schema == schema


async def test_input_that_came_before_it_began_is_part_of_it_once() -> None:
    implementation = Given("x")
    execution = agent(implementation).execution("one")

    async def store() -> list[Message]:
        return [user("two").model_copy(update={"message_id": "m2"})]

    assert await execution.steering.offer(store)
    await execution.run()

    [request] = implementation.requests
    assert texts(request.messages) == ["one", "two"]
    assert texts(request.input_messages) == ["one", "two"]
    assert texts(execution.progress.transcript) == ["two", "x"]
    assert not await execution.steering.offer(store)


def test_histories_cannot_be_saved_around_its_model_calls() -> None:
    spec = ResolvedAgent("a", AgentSpec(per_service_call_history=True))

    with pytest.raises(ConfigInvalid, match="leave out perServiceCallHistory"):
        make_plan(spec, SessionSettings(), Surroundings(), parts=Parts(implementation=Given("x")))


# ---- how it ends -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("raised", "why"),
    [
        (ValueError("secret"), "ValueError"),
        (SystemExit("secret"), "SystemExit"),
        (asyncio.CancelledError("secret"), "CancelledError"),
        (AgentError("no more questions"), "no more questions"),
    ],
)
async def test_what_it_raises_fails_the_run(raised: BaseException, why: str) -> None:
    implementation = Pieces("partial", raised)

    with pytest.raises(AgentFailed) as failed:
        await agent(implementation).say("hi")

    assert failed.value.message == f"agent 'tester' failed: {why}"
    assert implementation.freed


async def test_what_a_model_raised_in_it_stays_what_it_is() -> None:
    with pytest.raises(ModelRateLimited):
        await agent(Pieces(ModelRateLimited("slow down"))).say("hi")


async def test_one_that_is_cancelled_leaves_its_text_and_frees_what_it_holds() -> None:
    implementation = Pieces("par", "tial", asyncio.Event())
    execution = agent(implementation).execution("hi")
    running = asyncio.create_task(execution.run())
    await eventually(lambda: execution.progress.partial_text == "partial")

    running.cancel()

    with pytest.raises(asyncio.CancelledError):
        await running
    assert implementation.freed
    assert execution.progress.partial_text == "partial"


async def test_one_that_never_waits_holds_up_nobody() -> None:
    others = 0

    async def other() -> None:
        nonlocal others
        while True:
            others += 1
            await asyncio.sleep(0)

    beside = asyncio.create_task(other())
    await agent(Pieces(*"x" * 1000)).say("hi")
    beside.cancel()

    assert others > 50
