"""`structured_memory` over the wire: the dialogue of seed 001, with a scripted model and with the embedded one."""

import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from sidecar.models import embedded_files
from tests.bench.host import FakeHost, HostSession, RpcError

StartHost = Callable[..., Awaitable[FakeHost]]

MEMORY: dict[str, Any] = {
    "type": "structured_memory",
    "sourceId": "user_info",
    "config": {
        "schema": {"type": "object", "properties": {"name": {"type": "string"}, "age": {"type": "integer"}}},
    },
}

SCRIPT = r"""
[[reply]]
when_fields = ["name"]
when = 'my name is (?P<name>\w+)'
data = { name = "{name}", age = 99 }

[[reply]]
when_fields = ["age"]
when = '20 years'
data = { age = 20 }

[[reply]]
when_fields = ["age"]
when = 'square root'
data = { name = "John", age = 25 }

[[reply]]
when_fields = ["age"]
when = 'break'
error = "modelUnavailable"

[[reply]]
when_fields = ["age"]
when = 'too long'
data = { age = 20 }
finish = "length"

[[reply]]
when = '.'
text = "{instructions}"
"""


@pytest.fixture
def script(tmp_path: Path) -> str:
    """A model that answers with its instructions, and extracts what the dialogue says, and more."""
    path = tmp_path / "memory.toml"
    path.write_text(SCRIPT, encoding="utf-8")
    return f"scripted:{path}"


async def learnt(session: HostSession) -> Any:
    return (await session.state())["state"].get("user_info", {})


async def test_the_dialogue_teaches_name_and_age_and_survives_a_crash(
    start_host: StartHost, store: str, script: str
) -> None:
    """Case 53."""
    host = await start_host(store=store)
    session = await host.create_session(sessionId="s", model=script, contextProviders=[MEMORY])

    first = await session.run("Hello, what is the square root of 9?")
    assert await learnt(session) == {}
    assert "user's name yet" in first["text"]
    assert "user's age yet" in first["text"]

    await session.run("My name is Ruaidhrí")
    assert await learnt(session) == {"name": "Ruaidhrí"}

    third = await session.run("I am 20 years old")
    assert await learnt(session) == {"name": "Ruaidhrí", "age": 20}
    assert "Ruaidhrí" in third["text"]
    assert "user's age yet" in third["text"]

    host.kill()
    await host.wait()
    again = await (await start_host(store=store)).resume_session("s")
    assert await learnt(again) == {"name": "Ruaidhrí", "age": 20}
    last = await again.run("And now?")
    assert "Ruaidhrí" in last["text"]
    assert "20" in last["text"]
    assert "yet" not in last["text"]


@pytest.mark.parametrize("said", ["break, I am 20", "too long, I am 20"])
async def test_an_extraction_that_fails_costs_a_warning_and_nothing_else(
    host: FakeHost, script: str, said: str
) -> None:
    session = await host.create_session(model=script, contextProviders=[MEMORY])

    result = await session.run(said)

    assert result["status"] == "completed"
    assert [(warning["kind"], warning["sourceId"]) for warning in result["warnings"]] == [
        ("providerFailed", "user_info")
    ]
    assert await learnt(session) == {}
    assert [event["data"]["sourceId"] for event in session.events("provider.failed")] == ["user_info"]


async def test_what_was_known_when_the_session_began_is_used_and_kept(host: FakeHost, script: str) -> None:
    session = await host.create_session(model=script, contextProviders=[MEMORY], state={"user_info": {"name": "Ann"}})

    result = await session.run("My name is Bob, 20 years")

    assert "Ann" in result["text"]
    assert await learnt(session) == {"name": "Ann", "age": 20}


async def test_two_sessions_of_one_agent_share_nothing(host: FakeHost, script: str) -> None:
    one = await host.create_session(model=script, contextProviders=[MEMORY])
    two = await host.create_session(model=script, contextProviders=[MEMORY])

    await one.run("My name is Ann")

    assert await learnt(one) == {"name": "Ann"}
    assert await learnt(two) == {}


async def test_a_change_of_the_state_is_told_once_with_its_key(host: FakeHost, script: str) -> None:
    session = await host.create_session(model=script, contextProviders=[MEMORY])

    await session.run("My name is Ann")
    await session.run("nothing new")

    assert [event["data"]["keys"] for event in session.events("state.changed")] == [["user_info"]]


async def test_initial_facts_are_shown_by_the_first_run_and_survive_a_crash(
    start_host: StartHost, store: str, script: str
) -> None:
    entry = {**MEMORY, "config": {**MEMORY["config"], "initial": {"name": "Ann"}, "decline": False}}
    host = await start_host(store=store)
    session = await host.create_session(sessionId="s", model=script, contextProviders=[entry])

    result = await session.run("I am 20 years old")

    assert result["text"].splitlines()[0] == "The user's name: Ann."
    assert "Answer as usual" in result["text"]
    host.kill()
    await host.wait()
    again = await (await start_host(store=store)).resume_session("s")
    assert await learnt(again) == {"name": "Ann", "age": 20}


async def test_two_memories_of_one_session_learn_side_by_side(host: FakeHost, script: str) -> None:
    schema = {"type": "object", "properties": {"age": {"type": "integer"}}}
    other = {**MEMORY, "sourceId": "ages", "stateKey": "numbers", "config": {"schema": schema}}
    session = await host.create_session(model=script, contextProviders=[MEMORY, other])

    await session.run("I am 20 years old")
    await session.run("My name is Ann")

    state = (await session.state())["state"]
    assert (state["user_info"], state["numbers"]) == ({"name": "Ann", "age": 20}, {"age": 20})
    assert [set(event["data"]["keys"]) for event in session.events("state.changed")] == [
        {"numbers", "user_info"},
        {"user_info"},
    ]


def example(language: str) -> str:
    """A block of the page that tells of structured memory."""
    page = (Path(__file__).parents[2] / "docs" / "structured-memory.md").read_text(encoding="utf-8")
    return page.partition(f"```{language}\n")[2].partition("```")[0]


async def test_the_page_s_own_model_is_learnt_as_a_plug_in(start_host: StartHost, tmp_path: Path, script: str) -> None:
    """Case 53, with a pydantic model."""
    (tmp_path / "people.py").write_text(example("python"), encoding="utf-8")
    config = tmp_path / "sidecar.toml"
    config.write_text(example("toml").replace("openai:gpt-4.1-mini", script), encoding="utf-8")
    host = await start_host(args=("--config", str(config)))
    session = await host.create_session(sessionId="ann", agent="friendly")

    first = await session.run("hello")
    await session.run("I am 20 years old")

    assert first["text"].splitlines() == ["The user's name: ann.", "How old is the user? Ask."]
    assert await learnt(session) == {"name": "ann", "age": 20}


async def test_the_page_s_entry_speaks_in_its_own_words(host: FakeHost, script: str) -> None:
    session = await host.create_session(model=script, contextProviders=[json.loads(example("json"))])

    result = await session.run("hello")

    name, birthday, language = result["text"].splitlines()
    assert name == "Ask for the user's name, and say why you ask."
    assert "birthday (The user's date of birth) yet. Answer as usual" in birthday
    assert language == "language: English"


async def test_a_host_finds_every_option_described(host: FakeHost) -> None:
    types = (await host.request("listProviders"))["items"]

    [schema] = [kind["configSchema"] for kind in types if kind["type"] == "structured_memory"]
    options = schema["properties"]
    assert {"schema", "ask", "known", "decline", "initial", "instructions", "model", "grounded"} == set(options)
    assert all(option["description"] for option in options.values())


async def test_a_faulty_schema_is_refused_when_the_session_is_made(host: FakeHost) -> None:
    entry = {**MEMORY, "config": {"schema": {"type": "object", "properties": {"a": {"type": "strin"}}}}}

    with pytest.raises(RpcError) as refused:
        await host.create_session(contextProviders=[entry])

    assert refused.value.kind == "configInvalid"
    assert "user_info" in refused.value.message
    assert "strin" in refused.value.message


@pytest.mark.embedded
@pytest.mark.skipif(
    not embedded_files.is_installed(), reason="the embedded model is not installed (agent-sidecar setup embedded)"
)
async def test_the_embedded_model_learns_the_dialogue(start_host: StartHost, store: str) -> None:
    host = await start_host(store=store)
    agent = {
        "name": "friendly",
        "instructions": "You are a friendly assistant. Always address the user by their name.",
        "model": "embedded:smollm2-135m",
        "options": {"maxOutputTokens": 8},
        "contextProviders": [MEMORY],
    }
    session = await host.create_session(sessionId="s", agent=agent)

    await session.run("Hello, what is the square root of 9?")
    assert await learnt(session) == {}
    await session.run("My name is Ruaidhrí")
    assert await learnt(session) == {"name": "Ruaidhrí"}
    await session.run("I am 20 years old")
    assert await learnt(session) == {"name": "Ruaidhrí", "age": 20}

    host.kill()
    await host.wait()
    again = await (await start_host(store=store)).resume_session("s")
    assert await learnt(again) == {"name": "Ruaidhrí", "age": 20}
    assert (await again.run("Hello again"))["warnings"] == []
