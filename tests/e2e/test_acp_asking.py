"""What an agent asks its editor's user: consent to calls, and questions; at once, late, and in vain."""

import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from tests.bench.acp_agent import BEGINNING, agents, ended_runs, opening, selected
from tests.bench.acp_client import CAPABLE, Acp, AcpError, prompt


@pytest.fixture
async def start(tmp_path: Path) -> AsyncIterator[Callable[..., Any]]:
    """Starts agents in one folder, with one store."""
    async with agents(tmp_path) as starting:
        yield starting


@pytest.fixture
async def acp(start: Callable[..., Any]) -> Acp:
    """An agent whose client can ask its user everything."""
    return await start(capabilities=CAPABLE)


@pytest.mark.parametrize(
    ("outcome", "said"),
    [
        ({"outcome": {"outcome": "selected", "optionId": "allowOnce"}}, "removed a.txt"),
        ({"outcome": {"outcome": "selected", "optionId": "rejectOnce"}}, "denied"),
        ({"outcome": {"outcome": "selected", "optionId": "no such option"}}, "denied"),
        ({"outcome": {"outcome": "cancelled"}}, "denied"),
        (AcpError({"code": -32601, "message": "no"}), "denied"),
    ],
)
async def test_the_user_is_asked_before_a_gated_call(acp: Acp, outcome: Any, said: str) -> None:
    acp.serves["session/request_permission"] = lambda params: outcome

    answer = await acp.prompt(await acp.new_session(), "remove a file")

    assert answer["stopReason"] == "end_turn"
    ((_, asked),) = acp.asked
    (begun,) = acp.of_kind("tool_call")
    call = asked["toolCall"]
    assert (call["toolCallId"], call["kind"]) == (begun["toolCallId"], "delete")
    assert (begun["status"], call["rawInput"]) == ("pending", {"path": "a.txt"})
    kinds = {option["optionId"]: option["kind"] for option in asked["options"]}
    assert kinds["allowOnce"] == "allow_once"
    assert kinds["rejectOnce"] == "reject_once"
    assert set(kinds.values()) <= {"allow_once", "allow_always", "reject_once", "reject_always"}
    statuses = [update["status"] for update in acp.of_kind("tool_call_update")]
    assert statuses == (["in_progress", "completed"] if said == "removed a.txt" else ["failed"])
    assert said in (acp.text() if said == "removed a.txt" else json.dumps(acp.of_kind("tool_call_update")))


async def test_a_standing_consent_is_not_asked_for_again(acp: Acp) -> None:
    acp.serves["session/request_permission"] = lambda params: selected("allowSession")
    session = await acp.new_session()

    for _ in range(2):
        await acp.prompt(session, "remove a file")

    assert len(acp.asked) == 1
    assert len({update["toolCallId"] for update in acp.of_kind("tool_call")}) == 2


async def test_a_question_that_nobody_needs_answered_is_taken_back(acp: Acp) -> None:
    session = await acp.new_session()
    waiting = acp.begin("session/prompt", prompt(session, "remove a file"))
    await acp.until(lambda: acp.asked)

    acp.notify("session/cancel", {"sessionId": session})

    assert (await waiting)["stopReason"] == "cancelled"
    await acp.until(lambda: acp.withdrawn)
    assert acp.withdrawn == [m["id"] for m in acp.log if m.get("method") == "session/request_permission"]
    acp.answer(acp.withdrawn[0], "session/request_permission", {"outcome": {"outcome": "cancelled"}})
    assert (await acp.prompt(session, "hello"))["stopReason"] == "end_turn"


async def test_consent_that_was_waited_for_at_the_end_is_asked_for_when_the_session_is_loaded(
    start: Callable[..., Any],
) -> None:
    first = await start()
    session = await first.new_session()
    waiting = first.begin("session/prompt", prompt(session, "remove a file"))
    await first.until(lambda: first.asked)
    assert await first.end() == 0
    assert (await waiting)["stopReason"] == "end_turn"

    second = await start()
    second.serves["session/request_permission"] = lambda params: selected("allowOnce")
    await second.request("session/load", opening(second, session))

    await second.until(lambda: "removed a.txt" in second.text())
    (begun,) = second.of_kind("tool_call")
    assert second.asked[0][1]["toolCall"]["toolCallId"] == begun["toolCallId"]
    assert {update["toolCallId"] for update in second.of_kind("tool_call_update")} == {begun["toolCallId"]}


async def test_a_run_that_goes_on_by_late_consent_is_cancelled_too(start: Callable[..., Any]) -> None:
    first = await start()
    session = await first.new_session()
    waiting = first.begin("session/prompt", prompt(session, "rewrite"))
    await first.until(lambda: first.asked)
    await first.end()
    await waiting

    second = await start()
    second.serves["session/request_permission"] = lambda params: selected("allowOnce")
    await second.request("session/load", opening(second, session))
    await second.until(lambda: second.text().endswith(BEGINNING))
    second.notify("session/cancel", {"sessionId": session})

    assert await second.until(lambda: second.of_kind("tool_call_update"))
    assert await ended_runs(second, session, 2) == ["completed", "cancelled"]


async def test_a_form_is_asked_and_its_content_comes_back(acp: Acp) -> None:
    acp.serves["elicitation/create"] = lambda params: {"action": "accept", "content": {"name": "Ruaidhrí"}}

    await acp.prompt(await acp.new_session(), "who am I")

    ((_, asked),) = acp.asked
    assert (asked["mode"], asked["message"]) == ("form", "Who are you?")
    assert asked["requestedSchema"]["properties"] == {"name": {"type": "string"}}
    assert "accept {'name': 'Ruaidhrí'}" in acp.text()


@pytest.mark.parametrize(
    ("text", "answer", "said"),
    [
        ("who am I", {"action": "decline"}, "decline"),
        ("who am I", {"action": "cancel"}, "cancel"),
        ("sign in", {"action": "accept"}, "accept"),
        ("nested", None, "decline"),
    ],
)
async def test_questions_are_answered_in_acp_s_words(acp: Acp, text: str, answer: Any, said: str) -> None:
    acp.serves["elicitation/create"] = lambda params: answer

    await acp.prompt(await acp.new_session(), text)

    assert f"It says: {said}" in acp.text()
    assert len(acp.asked) == (0 if answer is None else 1)


async def test_a_client_that_knows_no_forms_is_not_asked(start: Callable[..., Any]) -> None:
    acp = await start()

    await acp.prompt(await acp.new_session(), "who am I")

    assert acp.asked == []
    assert "It says: decline" in acp.text()
