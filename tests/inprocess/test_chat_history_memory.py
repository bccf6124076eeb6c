"""`chat_history_memory` beside a memory that can fail: what is asked, what is kept, and what a failure costs."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from protocol.messages import Message
from providers.api.memory import MemoryHit, MemoryPage, MemoryQuery, MemoryRecord, MemoryUnavailable, Scope
from providers.api.provider import Surroundings
from providers.api.session import Session
from providers.chat_history_memory import ChatHistoryMemory
from providers.chat_history_memory_config import ChatHistoryMemoryConfig
from tests.bench.agent_run import AgentRun, bound, user
from tests.bench.fake_client import FakeClient, says


@dataclass
class FakeMemory:
    """Answers every search with the same records, and notes what was asked."""

    records: Sequence[MemoryRecord] = ()
    broken: bool = False
    embedder: str | None = None
    problem: str | None = None
    queries: list[MemoryQuery] = field(default_factory=list)

    async def search(self, query: MemoryQuery) -> Sequence[MemoryHit]:
        self.queries.append(query)
        if self.broken:
            raise MemoryUnavailable("the disk is full")
        return [MemoryHit(record, 1.0) for record in self.records[: query.limit]]

    async def newest(self, collection: str, scope: Scope, limit: int) -> Sequence[MemoryRecord]:
        return list(self.records)[-limit:]

    async def page(self, collection: str, scope: Scope, cursor: str | None, limit: int) -> MemoryPage:
        return MemoryPage(self.records)

    async def delete(self, collection: str, scope: Scope, memory_ids: Sequence[str] | None) -> int:
        return 0

    async def count(self, collection: str, scope: Scope) -> int:
        return len(self.records)


def record(text: str, number: int = 0) -> MemoryRecord:
    return MemoryRecord(
        f"m{number}", "memory", Scope(user_id="Alice"), text, f"2026-11-{10 + number}T12:00:00Z", "user"
    )


def provider(memory: FakeMemory, **options: Any) -> ChatHistoryMemory:
    config = ChatHistoryMemoryConfig.model_validate(
        {"storageScope": {"userId": {"fromState": "user_id"}}, **options.pop("config", {})}
    )
    return ChatHistoryMemory("memory", config, Surroundings(memory=memory), **options)


def agent(memory: FakeMemory, *answers: Any, state: dict[str, Any] | None = None, **options: Any) -> AgentRun:
    session = Session("s", state={"user_id": "Alice"} if state is None else state)
    made = provider(memory, **options)
    return AgentRun(FakeClient(*(answers or (says("ok"),))), [bound(made, on_error="warn")], session=session)


async def test_a_search_that_fails_costs_the_run_nothing_and_is_reported() -> None:
    """Case 52."""
    run = agent(FakeMemory(broken=True))

    execution = await run.say("hello")

    assert execution.progress.text == "ok"
    assert [(kind, source) for kind, _, source in run.sink.warnings] == [("providerFailed", "memory")]
    assert "the disk is full" in run.sink.warnings[0][1]


async def test_what_was_said_is_kept_with_whose_it_is_and_its_neighbour() -> None:
    run = agent(FakeMemory(), says("Noted."))

    execution = await run.say("No spicy food.")

    request, response = execution.memories
    assert (request.text, request.role, request.scope) == ("No spicy food.", "user", Scope(user_id="Alice"))
    assert (response.text, response.role, response.context) == ("Noted.", "assistant", "No spicy food.")
    assert request.session_id == "s"


async def test_messages_of_providers_and_histories_are_neither_searched_with_nor_kept_by_default() -> None:
    """Case 51."""
    memory = FakeMemory()
    injected = user("from a provider", source="provider")
    earlier = user("from history", source="history")
    run = agent(memory)

    execution = await run.say(injected, earlier, "from the host")

    assert [query.text for query in memory.queries] == ["from the host"]
    assert [one.text for one in execution.memories if one.role == "user"] == ["from the host"]


async def test_a_filter_of_one_s_own_changes_that() -> None:
    """Case 51."""
    memory = FakeMemory()

    def everything(messages: Sequence[Message]) -> Sequence[Message]:
        return messages

    run = agent(memory, search_filter=everything, store_request_filter=everything)

    execution = await run.say(user("from a provider", source="provider"), "from the host")

    assert [query.text for query in memory.queries] == ["from the host\nfrom a provider"], "newest first"
    assert [one.text for one in execution.memories if one.role == "user"] == ["from a provider", "from the host"]


@pytest.mark.parametrize(
    ("config", "kept"),
    [
        ({"storeRequestSources": []}, ["answer"]),
        ({"storeResponseSources": []}, ["question"]),
        ({"storeRequestSources": [], "storeResponseSources": []}, []),
    ],
)
async def test_an_empty_list_of_sources_keeps_nothing(config: dict[str, Any], kept: list[str]) -> None:
    run = agent(FakeMemory(), says("answer"), config=config)

    execution = await run.say("question")

    assert [one.text for one in execution.memories] == kept


async def test_a_session_that_does_not_say_whose_memory_it_is_gets_none() -> None:
    memory = FakeMemory([record("secret")])
    run = agent(memory, state={})

    execution = await run.say("hello")

    assert memory.queries == []
    assert execution.memories == []
    assert "userId is missing or empty" in run.sink.warnings[0][1]


async def test_what_middleware_of_one_s_own_writes_into_the_state_later_changes_nothing() -> None:
    memory = FakeMemory()
    run = agent(memory, says("ok"), says("ok"))
    await run.say("first")
    run.session.state["user_id"] = "Bob"

    await run.say("second")

    assert {query.scope for query in memory.queries} == {Scope(user_id="Alice")}


async def test_the_text_that_is_shown_has_time_and_role_and_a_redactor_of_one_s_own_is_used() -> None:
    run = agent(FakeMemory([record("No spicy food.")]), redactor=lambda text: text.replace("Moritz", "X"))

    execution = await run.say("Moritz is hungry")

    shown = run.client.requests[0].messages[-1].text
    assert "[2026-11-10 12:00, user] No spicy food." in shown
    assert execution.memories[0].text == "X is hungry"


async def test_a_search_without_the_vectors_that_there_should_be_is_reported() -> None:
    """F6."""
    run = agent(FakeMemory([record("No spicy food.")], embedder="fake", problem="the endpoint is silent"))

    execution = await run.say("hello")

    assert execution.progress.text == "ok"
    message = "provider 'memory': memory was searched by full text alone: the endpoint is silent"
    assert run.sink.warnings == [("providerWarning", message, "memory")]
