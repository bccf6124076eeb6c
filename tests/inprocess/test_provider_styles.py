"""Providers written as a class, as a pair, and as functions: what they are given, what they add, what they store."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from protocol.agents import RunOptions
from protocol.messages import Message, Source, text_message
from providers.api.context import SessionContext
from providers.api.middleware import ChatContext, chat_middleware
from providers.api.ports import AgentView
from providers.api.provider import ContextProvider, ProviderConfig, Surroundings
from providers.api.session import Session, State
from providers.api.simple import Exchange, Provided, ProvideRequest, SimpleProvider
from providers.api.state import ProviderState
from providers.api.tool import tool
from sidecar.errors import ModelUnavailable, ProviderFailed
from tests.bench.agent_run import AgentRun
from tests.bench.fake_client import FakeClient, says
from tests.bench.providers import Log, Recorder, adds


class UserPreference(ContextProvider):
    """Remembers the favourite food: both hooks, written by hand."""

    async def before_run(self, *, agent: AgentView, session: Session, context: SessionContext, state: State) -> None:
        if food := state.get("favorite_food"):
            context.extend_instructions(self, f"User's favorite food is {food}.")

    async def after_run(self, *, agent: AgentView, session: Session, context: SessionContext, state: State) -> None:
        for message in context.input_messages:
            if "favorite food is" in message.text.lower():
                state["favorite_food"] = message.text.split("favorite food is", 1)[1].strip().rstrip(".")


class Likes(SimpleProvider):
    """The same as a pair."""

    async def provide(self, request: ProvideRequest) -> str | None:
        food = request.state.get("food")
        return f"User's favorite food is {food}." if food else None

    async def store(self, exchange: Exchange) -> None:
        if "favorite food is" in exchange.request_text:
            exchange.state["food"] = exchange.request_text.split("favorite food is", 1)[1].strip().rstrip(".")


def likes() -> ContextProvider:
    """The same as functions, one of them async."""

    def provide(request: ProvideRequest) -> str | None:
        food = request.state.get("food")
        return f"User's favorite food is {food}." if food else None

    async def store(exchange: Exchange) -> None:
        await Likes("x").store(exchange)

    return ContextProvider.of("likes", provide=provide, store=store)


@dataclass
class Container:
    memories_id: str | None = None


class ServiceMemory(SimpleProvider):
    """Keeps memories in a service, under an id that stands in the session."""

    def __init__(self, service: dict[str, list[str]], *, config: ProviderConfig | None = None) -> None:
        super().__init__("memory", config)
        self._service = service
        self._state = ProviderState(Container, key=self.state_key)

    async def provide(self, request: ProvideRequest) -> Message | None:
        kept = self._state.get(request.session)
        if kept.memories_id is None:
            return None
        return text_message("user", "Memories:\n" + "\n".join(self._service[kept.memories_id]))

    async def store(self, exchange: Exchange) -> None:
        def opened(kept: Container) -> Container:
            return Container(kept.memories_id or f"c{len(self._service)}")

        kept = self._state.update(exchange.session, opened)
        assert kept.memories_id is not None
        texts = [message.text for message in (*exchange.request, *exchange.response)]
        self._service.setdefault(kept.memories_id, []).extend(texts)


@pytest.mark.parametrize("make", [lambda: UserPreference("likes"), lambda: Likes("likes"), likes])
async def test_what_is_learnt_in_one_run_is_told_in_the_next_and_in_no_other_session(
    make: Callable[[], ContextProvider],
) -> None:
    provider = make()
    client = FakeClient(says("ok"), says("ok"), says("ok"))
    run, other = AgentRun(client, [provider]), AgentRun(client, [provider], session=Session("other"))

    await run.say("my favorite food is sushi.")
    await run.say("what shall I eat?")
    await other.say("what shall I eat?")

    told = [request.instructions for request in client.requests]
    assert told == ["", "User's favorite food is sushi.", ""]


async def test_a_memory_behind_a_service_keeps_its_id_in_the_session() -> None:
    service: dict[str, list[str]] = {}
    client = FakeClient(says("Hello Alice."), says("Vegetarian."), says("Hello."))
    run = AgentRun(client, [ServiceMemory(service)])
    await run.say("I am Alice")
    restored = AgentRun(client, [ServiceMemory(service)], session=Session.from_dict(run.session.to_dict()))
    other = AgentRun(client, [ServiceMemory(service)], session=Session("other"))

    await restored.say("What do I eat?")
    await other.say("Hi")

    sent = [[message.text for message in request.messages] for request in client.requests]
    assert sent == [["I am Alice"], ["Memories:\nI am Alice\nHello Alice.", "What do I eat?"], ["Hi"]]
    assert service == {
        "c0": ["I am Alice", "Hello Alice.", "What do I eat?", "Vegetarian."],
        "c1": ["Hi", "Hello."],
    }
    assert restored.session.state == {"memory": {"memories_id": "c0"}}


async def test_everything_that_is_provided_reaches_the_model_with_its_source() -> None:
    @tool
    def look_up(word: str) -> str:
        """Look it up."""
        return word

    calls: list[str] = []

    @chat_middleware
    async def count(context: ChatContext, call_next: Any) -> None:
        calls.append(context.model)
        await call_next()

    contexts: list[SessionContext] = []

    def provide(request: ProvideRequest) -> Provided:
        contexts.append(request.context)
        return Provided(
            instructions=["Be kind.", " "],
            messages=text_message("user", "note"),
            tools=look_up,
            middleware=count,
            options=RunOptions(temperature=0.5),
        )

    run = AgentRun(FakeClient(says("ok"), says("ok")), [ContextProvider.of("p", provide=provide)])

    await run.say("hi")
    run.plan = AgentRun(run.client).plan
    await run.say("hi")

    first, second = run.client.requests
    assert (first.instructions, [message.text for message in first.messages]) == ("Be kind.", ["note", "hi"])
    assert [spec.name for spec in first.tools] == ["look_up"]
    assert calls == ["fake:model"]
    assert first.options.temperature == 0.5
    stamp = Source(type="provider", source_id="p", source_type="CallbackProvider")
    [context] = contexts
    assert first.messages[0].source == stamp
    assert [item.source for item in (*context.instructions, *context.tools, *context.middleware)] == [stamp] * 3
    assert (second.instructions, list(second.tools), second.options.temperature) == ("", [], None)


async def test_a_message_of_another_provider_stays_that_provider_s() -> None:
    def again(request: ProvideRequest) -> Sequence[Message]:
        return request.messages

    other = Recorder("other", Log(), before=adds("other", text_message("user", "added")))
    provider = ContextProvider.of("again", provide=again, provide_sources=["other"])
    run = AgentRun(FakeClient(says("ok")), [other, provider])

    await run.say("now")

    sent = run.client.requests[0].messages
    assert [message.text for message in sent] == ["added", "added", "now"]
    assert [message.source.source_id for message in sent[:2] if message.source] == ["other", "other"]


async def test_a_provider_sees_what_others_have_added_and_may_put_something_else_there() -> None:
    @tool
    def shout(word: str) -> str:
        """Shout."""
        return word

    seen: list[Any] = []

    def change(request: ProvideRequest) -> Provided:
        seen.extend((list(request.instructions), [tool.name for tool in request.tools], request.text))
        return Provided(
            replace_messages=[text_message("user", "summary")],
            replace_instructions="Be brief.",
            remove_tools=["shout"],
            instructions="Be kind.",
            messages=[text_message("user", "note")],
        )

    adding = ContextProvider.of("adding", provide=lambda request: Provided(instructions="Be long.", tools=[shout]))
    other = Recorder("other", Log(), before=adds("other", text_message("user", "added")))
    run = AgentRun(FakeClient(says("ok")), [other, adding, ContextProvider.of("p", provide=change)])

    await run.say("one", "two")

    request = run.client.requests[0]
    assert seen == [["Be long."], ["shout"], "one\ntwo"]
    assert request.instructions == "Be brief.\nBe kind."
    assert [message.text for message in request.messages] == ["summary", "note", "one", "two"]
    assert list(request.tools) == []


async def test_a_failed_run_is_not_stored() -> None:
    run = AgentRun(FakeClient([ModelUnavailable("down")]), [Likes("likes")])

    with pytest.raises(ModelUnavailable):
        await run.say("my favorite food is sushi.")

    assert run.session.state == {"likes": {}}


async def test_a_first_value_that_is_refused_fails_the_hook_and_leaves_the_state_alone() -> None:
    def refuse(session: Session | None) -> Container:
        raise PermissionError

    state = ProviderState(Container, refuse, key="p")
    provider = ContextProvider.of("p", provide=lambda request: str(state.get(request.session)))
    run = AgentRun(FakeClient(), [provider])

    with pytest.raises(ProviderFailed, match="PermissionError"):
        await run.say("hi")

    assert run.session.state == {"p": {}}


async def test_a_failed_store_takes_back_what_it_wrote_to_its_typed_state() -> None:
    state = ProviderState(Container, key="p")

    def store(exchange: Exchange) -> None:
        state.save(exchange.session, Container("half"))
        raise KeyError

    def provide(request: ProvideRequest) -> None:
        state.save(request.session, Container("whole"))

    run = AgentRun(FakeClient(says("ok")), [ContextProvider.of("p", provide=provide, store=store)])

    await run.say("hi")

    assert state.get(run.session) == Container("whole")


@pytest.mark.parametrize("odd", [3, [3], [text_message("user", "a"), "b"], {"instructions": "x"}])
async def test_what_cannot_be_added_fails_the_run(odd: Any) -> None:
    run = AgentRun(FakeClient(), [ContextProvider.of("p", provide=lambda request: odd)])

    with pytest.raises(ProviderFailed, match="TypeError"):
        await run.say("hi")


def takes_two(one: object, two: object) -> None:
    """No callback."""


@pytest.mark.parametrize(
    ("functions", "error", "text"),
    [
        ({}, ValueError, "neither provide nor store"),
        ({"provide": lambda: None}, TypeError, r"provide must be a function \(request\)"),
        ({"store": takes_two}, TypeError, r"store must be a function \(exchange\)"),
        ({"store": "text"}, TypeError, "not a str"),
    ],
)
def test_functions_that_would_fail_in_every_run_are_refused_at_once(
    functions: dict[str, Any], error: type[Exception], text: str
) -> None:
    with pytest.raises(error, match=text):
        ContextProvider.of("p", **functions)


def test_a_provider_s_state_stands_where_its_surroundings_say_or_else_under_its_id() -> None:
    assert ContextProvider("p").state_key == "p"
    assert ContextProvider("p", None, Surroundings(state_key="elsewhere")).state_key == "elsewhere"
