"""Whose messages a provider is given: by type of source, by id, by a filter of its own, by configuration."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from pydantic import ValidationError

from protocol.agents import RunOptions
from protocol.messages import Message, Source, text_message
from providers.api.context import SessionContext
from providers.api.filters import SourceFilter, filter_of, request_messages
from providers.api.provider import ContextProvider
from providers.api.simple import Exchange, ProvideRequest, SimpleConfig, SimpleProvider
from tests.bench.agent_run import AgentRun, user
from tests.bench.fake_client import FakeClient, says
from tests.bench.providers import Hook, Log, Recorder, adds


def turns(*texts: str) -> Callable[[Hook], None]:
    """A hook that loads earlier turns as a history does."""

    def load(hook: Hook) -> None:
        hook.context.load_history("past", [user(text) for text in texts])

    return load


def noted(found: dict[str, list[str]], **sources: Any) -> ContextProvider:
    """A provider that notes what it is given."""

    def provide(request: ProvideRequest) -> None:
        found["provide"] = [message.text for message in request.messages]

    def store(exchange: Exchange) -> None:
        found["request"] = [message.text for message in exchange.request]
        found["response"] = [message.text for message in exchange.response]

    return ContextProvider.of("noted", provide=provide, store=store, **sources)


def among(noting: ContextProvider) -> AgentRun:
    """A run with messages of every source."""
    past = Recorder("past", Log(), before=turns("earlier"))
    other = Recorder("other", Log(), before=adds("other", text_message("user", "added")))
    return AgentRun(FakeClient(says("answer")), [past, other, noting])


async def test_a_provider_sees_what_the_host_sent_now_and_every_answer_unless_it_says_otherwise() -> None:
    found: dict[str, list[str]] = {}
    run = among(noted(found))
    aside = text_message("user", "aside", source=Source(type="run"))

    await run.say("now", user("stamped as history", source="history"), context_messages=(aside,))

    assert found == {"provide": ["now"], "request": ["now"], "response": ["answer"]}


@pytest.mark.parametrize(
    ("sources", "expected"),
    [
        (["external"], ["now"]),
        (["history"], ["earlier"]),
        (["provider"], ["added"]),
        (["other"], ["added"]),
        (["past"], ["earlier"]),
        (["run"], ["aside"]),
        (["external", "provider", "history", "run"], ["earlier", "added", "aside", "now"]),
        (["nobody"], []),
        ([], []),
    ],
)
async def test_sources_are_types_or_ids(sources: list[str], expected: list[str]) -> None:
    found: dict[str, list[str]] = {}
    run = among(noted(found, provide_sources=sources, store_request_sources=sources))
    aside = text_message("user", "aside", source=Source(type="run"))

    await run.say("now", context_messages=(aside,))

    assert (found["provide"], found["request"]) == (expected, expected)


async def test_a_filter_of_one_s_own_sees_every_message_and_history_as_history() -> None:
    found: dict[str, list[str]] = {}
    kinds: list[str | None] = []

    def last(messages: Sequence[Message]) -> Sequence[Message]:
        kinds.extend(message.source.type if message.source else None for message in messages)
        return messages[-1:]

    await among(noted(found, provide_sources=last, store_response_sources=["external"])).say("now", "and now")

    assert kinds == ["history", "provider", "external", "external"]
    assert found == {"provide": ["and now"], "request": ["now", "and now"], "response": []}


async def test_earlier_turns_are_not_copied_for_a_provider_that_does_not_want_them() -> None:
    stored = [user("earlier")]
    context = SessionContext(session_id="s", input_messages=[user("now")], options=RunOptions())
    context.load_history("past", stored)

    [copied] = request_messages(context, filter_of(["history"]))

    assert [message.text for message in request_messages(context, SourceFilter(["external"]))] == ["now"]
    assert copied.source == Source(type="history", source_id="past")
    assert stored[0].source == Source(type="external")


async def test_a_configuration_says_whose_messages_are_looked_at() -> None:
    config = SimpleConfig.model_validate({"provideSources": ["provider"], "storeRequestSources": ["history"]})
    seen: list[list[str]] = []

    class Notes(SimpleProvider):
        async def provide(self, request: ProvideRequest) -> None:
            seen.append([message.text for message in request.messages])

        async def store(self, exchange: Exchange) -> None:
            seen.extend([[message.text for message in exchange.request], [m.text for m in exchange.response]])

    await among(Notes("notes", config, provide_sources=["external"])).say("now")

    assert seen == [["added"], ["earlier"], ["answer"]]
    with pytest.raises(ValidationError, match="provideSource"):
        SimpleConfig.model_validate({"provideSource": ["provider"]})


def test_one_name_for_several_is_refused() -> None:
    with pytest.raises(TypeError, match="not the one name 'external'"):
        ContextProvider.of("p", provide=lambda request: None, provide_sources="external")
