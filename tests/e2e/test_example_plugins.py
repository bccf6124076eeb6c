"""The examples of plug-ins, one of each kind, do over the wire what their files say. The model is their script."""

import sqlite3
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tests.bench.host import FakeHost

FOLDER = Path(__file__).parents[2] / "examples" / "plugins"


@pytest.fixture
async def host(start_host: Callable[..., Any]) -> FakeHost:
    """A sidecar as the first lines of the example's configuration start it."""
    return await start_host(args=("--config", "sidecar.toml"), cwd=FOLDER)


async def test_the_provider_tells_the_day(host: FakeHost) -> None:
    before = datetime.now(UTC)
    session = await host.create_session(agent="dated")

    result = await session.run("What day is it?")

    assert result["text"] in {f"It is {day:%A}." for day in (before, datetime.now(UTC))}


async def test_the_provider_s_configuration_is_checked(host: FakeHost) -> None:
    refused = await host.refusal(
        "createSession",
        {"agent": "dated", "contextProviders": [{"type": "today:TodayProvider", "sourceId": "today"}]},
    )

    assert refused.kind == "configInvalid"
    assert "only a configuration file" in refused.message


async def test_the_history_keeps_turns_in_a_database(host: FakeHost, tmp_path: Path) -> None:
    session = await host.create_session(agent="remembering", cwd=str(tmp_path))

    await session.run("Hello.")
    result = await session.run("How often?")

    assert result["text"] == "I have answered 1 times."
    with sqlite3.connect(tmp_path / "history.db") as database:
        assert database.execute("SELECT key, count(*) FROM turns GROUP BY key").fetchall() == [(session.id, 4)]
    database.close()


async def test_the_history_s_key_may_stand_in_the_state(host: FakeHost, tmp_path: Path) -> None:
    state = {"database": {"history_key": "shared"}}
    one = await host.create_session(agent="remembering", cwd=str(tmp_path), state=state)
    other = await host.create_session(agent="remembering", cwd=str(tmp_path), state=state)

    await one.run("Hello.")

    assert (await other.run("How often?"))["text"] == "I have answered 1 times."


async def test_the_tool_counts(host: FakeHost) -> None:
    session = await host.create_session(agent="counting")

    result = await session.run('How many words are in "to be or not to be"?')

    assert result["text"] == "There are 6 words."
    assert [event["data"]["status"] for event in session.events("tool.completed")] == ["completed"]


async def test_a_host_s_own_agent_may_use_the_tool_by_its_name(host: FakeHost) -> None:
    session = await host.create_session(agent={"tools": [{"type": "registered", "name": "count_words"}]})

    assert (await session.run('How many words are in "one"?'))["text"] == "There are 1 word."


async def test_the_middleware_hides_words_both_ways(host: FakeHost) -> None:
    session = await host.create_session(agent="guarded")

    run = session.start("I met mallory, not Mallorys.")

    assert (await run.result())["text"] == "You said: I met […], not Mallorys."
    assert run.text() == "You said: I met […], not Mallorys."


async def test_a_run_may_ask_for_the_middleware(host: FakeHost) -> None:
    session = await host.create_session()
    redact = {"name": "Redact", "config": {"words": ["Bob"]}}

    assert (await session.run("I am Bob.", middleware=[redact]))["text"] == "You said: I am […]."
    assert (await session.run("I am Bob."))["text"] == "You said: I am Bob."


async def test_the_chat_client_answers_and_is_given_its_kwargs(host: FakeHost) -> None:
    session = await host.create_session(agent="shouting")

    assert (await session.run("hello"))["text"] == "HELLO!"
    assert (await session.run("hola", clientKwargs={"language": "es"}))["text"] == "¡HOLA!"


async def test_the_chat_client_says_why_it_cannot(host: FakeHost) -> None:
    session = await host.create_session(model="shout:soft")

    refused = await host.refusal("run", {"sessionId": session.id, "input": "hello"})

    assert (refused.kind, refused.message) == ("modelNotFound", "shout:soft: the only model here is 'loud'")


async def test_the_agent_keeps_its_place_and_asks_the_model_for_praise(host: FakeHost) -> None:
    session = await host.create_session(agent="quiz")

    answers = [(await session.run(text))["text"] for text in ("Begin.", "It is 42.", "Bronte?")]

    assert answers == ["What is 6 x 7?", "Well done! Who wrote Emma?", "It is Austen. That was all."]
    assert (await session.state())["state"]["asked"] == 0
    assert [role for role, _ in await session.history()] == ["user", "assistant"] * 3


async def test_the_agent_needs_a_session(host: FakeHost) -> None:
    refused = await host.refusal("run", {"agent": "quiz", "input": "Begin."})

    assert (refused.kind, refused.message) == ("agentFailed", "agent 'quiz' failed: a quiz needs a session")
