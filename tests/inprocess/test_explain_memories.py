"""An explanation keeps what stands around memories, and no memory, whatever middleware does with them."""

from collections.abc import Callable
from typing import Any

import pytest

from protocol.messages import Message, TextBlock, text_message
from providers.api.memory import MemoryHit, MemoryRecord, Scope
from providers.api.middleware import ChatContext, chat_middleware
from providers.memory_text import NOTED, noted, shown
from tests.bench.agent_run import AgentRun, plan_of
from tests.bench.explained import said, stored
from tests.bench.explained import shown as explained
from tests.bench.fake_client import FakeClient, says
from tests.bench.providers import Log, Recorder, adds

HIT = MemoryHit(
    MemoryRecord("m1", "memory", Scope(user_id="Alice"), "zebrafever", "2026-01-01T10:00:00Z", role="user"), 1.0
)


def remembers(source_id: str, *, metadata: dict[str, Any] | None = None) -> Recorder:
    """A provider that shows a memory."""
    found = noted("Earlier:", [HIT], [], "memory", {"userId": "Alice"}) if metadata is None else metadata
    message = text_message("user", shown("Earlier:", [HIT], [])).model_copy(update={"metadata": found})
    return Recorder(source_id, Log(), before=adds(source_id, message))


async def test_the_text_around_a_memory_is_kept_and_the_memory_is_not() -> None:
    execution = await AgentRun(FakeClient(says("ok")), [remembers("memory")]).say("?")

    assert "zebrafever" not in stored(execution).model_dump_json()
    [call] = explained(execution)
    assert said(call)[0] == ("user", "provider", "memory", "Earlier:\n[2026-01-01 10:00, user] (erased)")
    assert call.messages[0].memory_ids == ("m1",)


@pytest.mark.parametrize("metadata", [{NOTED: {}}, {NOTED: {"memories": []}, "memoryIds": ["m1"]}])
async def test_no_text_is_kept_that_somebody_may_erase_and_whose_places_are_not_known(metadata: dict[str, Any]) -> None:
    execution = await AgentRun(FakeClient(says("ok")), [remembers("memory", metadata=metadata)]).say("?")

    assert "zebrafever" not in stored(execution).model_dump_json()
    [call] = explained(execution)
    assert said(call)[0] == ("user", "provider", "memory", None)


def _upper(message: Message) -> Message:
    return message.model_copy(update={"content": (TextBlock(type="text", text=message.text.upper()),)})


def _longer(message: Message) -> Message:
    return message.model_copy(update={"content": (TextBlock(type="text", text=f"Mind this. {message.text}"),)})


@pytest.mark.parametrize("change", [_upper, _longer])
async def test_a_memory_that_middleware_has_changed_is_not_kept(change: Callable[[Message], Message]) -> None:
    @chat_middleware
    async def meddle(context: ChatContext, call_next: Any) -> None:
        context.messages = [change(one) if "zebra" in one.text else one for one in context.messages]
        await call_next()

    client = FakeClient(says("ok"))
    execution = await AgentRun(client, [remembers("memory")], plan=plan_of(middleware=[meddle])).say("?")

    kept = stored(execution).model_dump_json()
    assert "zebrafever" not in kept.lower()
