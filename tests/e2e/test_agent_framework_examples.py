"""The programs of `examples/agent_framework`: each is run as its README says, and prints what it promises.

What a promise says of the model's own view is asked of a model that records its requests, with the same `sidecar.toml`.
"""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from tests.bench.embedded import needs_embedded
from tests.bench.fake_model import FakeModel
from tests.bench.host import FakeHost, RpcError

EXAMPLES = Path(__file__).parents[2] / "examples" / "agent_framework"
EMBEDDED = "user_info_memory/main.py embedded:smollm2-135m"
UPDATE = "Email the launch update to finance@example.com"
HEADING = "Memories that may help to answer:"

_MEMORY = """
    You: Are you offline?
    Failed: modelUnavailable
    State: {{}}
    You: The spare key hangs behind the clock.
    Agent: Noted.
    You: Where is the spare key?
    Provider: Memories that may help to answer:
    The spare key hangs behind the clock.
    Agent: Noted.
    You: And what is behind the clock?
    Provider: Memories that may help to answer:
    The spare key hangs behind the clock.
    Agent: Noted.
    State: {{'memory': {{'memories_id': 'memories-{}'}}}}
"""

PRINTED = {
    "user_preference/main.py": """
        You: What shall we cook?
        Agent: That depends on what you like.
        You: My favorite food is sushi.
        Agent: I will keep that in mind.
        You: What shall we cook?
        Agent: Let us make sushi.
        State: {'user-preferences': {'favorite_food': 'sushi'}}
        You: What shall we cook?
        Agent: That depends on what you like.
        State: {}
    """,
    "service_memory/main.py": f"""
    --- simple_service_memory{_MEMORY.format(1).rstrip()}
    --- advanced_service_memory{_MEMORY.format(2).rstrip()}
    """,
    "callback_provider/main.py": """
        You: What is JSON-RPC?
        Agent: Short, as you like it. Answers before this one: 0.
        You: And stdio?
        Agent: Short, as you like it. Answers before this one: 1.
        State: {'user_memory': {'answers': 2}}
    """,
    "database_history/main.py": """
        You: Hello
        Agent: I have answered 0 times before.
        You: Hello
        Agent: I have answered 1 times before.
        --- another sidecar, another session, the same key
        You: Hello again
        Agent: I have answered 2 times before.
        --- primary and audit
        You: Hello
        Agent: I have answered 0 times before.
        You: Good bye
        Agent: I have answered 1 times before.
        house-rules said: No smoking.
        user said: Hello
        primary_and_audit said: I have answered 0 times before.
        house-rules said: No smoking.
        user said: Good bye
        primary_and_audit said: I have answered 1 times before.
    """,
    "user_info_memory/main.py": """
        You: Hello, what is the square root of 9?
        Agent: Before we begin: what is your name?
        You: My name is Ruaidhrí
        Agent: Before we begin: what is your name?
        You: I am 20 years old
        Agent: Thank you, Ruaidhrí. And how old are you?
        MEMORY - User Name: Ruaidhrí
        MEMORY - User Age: 20
    """,
    "invoking_style/main.py": """
        You: Hello, what is the square root of 9?
        Agent: Before we begin: what is your name?
        You: My name is Ruaidhrí
        Agent: Before we begin: what is your name?
        You: I am 20 years old
        Agent: Thank you, Ruaidhrí. And how old are you?
        You: Hello, what is the square root of 9?
        Agent: The square root of 9 is 3, Ruaidhrí.
        MEMORY - User Name: Ruaidhrí
        MEMORY - User Age: 20
    """,
    "send_email/main.py": """
        Queued email for finance@example.com from user-123 (contoso)
        Queued email for finance@example.com from user-123 (default)
        Error: Nobody is signed in.
        Queued email for finance@example.com from user-123 (contoso), asked for by middleware
        Queued email for finance@example.com from user-123 (contoso)
        Error: Argument parsing failed.
    """,
    "request_metadata/main.py": """
        Hello! This is request req-abc-123.
        req-abc-123
    """,
    "chat_client/main.py": """
        [butler in eu-west] You said: Good morning
        [butler in eu-west] Done: sent to ann@example.com, knowing of user_id
        modelUnavailable: house:butler: there is no model in this region
    """,
    "shared_state/main.py": """
        Stored 'the budget review is on Friday' in session state.
        topic: the budget review is on Friday
        No session available.
        --- Coordinator
        The research says: It is stored.
        findings: There is much to say about tea.
        found_for: user-123
        --- CarefulCoordinator
        The research says: It is stored.
        findings: None
        found_for: None
    """,
    "travel_assistant/main.py": """
        --- TravelAssistant
        You: I travel by train and love mountains.
        Agent: I will remember that. File 'travel.md' written with description.
        You: Where shall I go?
        Agent: What I know of you: The user says: I travel by train and love mountains.
        --- ForgetfulAssistant
        You: I travel by train and love mountains.
        Agent: I will remember that. File 'travel.md' written with description.
        You: Where shall I go?
        Agent: What I know of you: File 'travel.md' not found.
    """,
}
"""Program → all that it prints."""


@pytest.fixture(scope="module")
def examples(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy that nobody else may write to, whatever the umask of the checkout."""
    copy = tmp_path_factory.mktemp("examples") / EXAMPLES.name
    shutil.copytree(EXAMPLES, copy)
    for folder in (copy, *(path for path in copy.iterdir() if path.is_dir())):
        folder.chmod(0o755)
    return copy


def ran(command: str, examples: Path, home: Path) -> str:
    """What a program prints, run from the examples' folder by somebody who has no key and no configuration."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("OPENAI_", "AGENT_SIDECAR_"))}
    done = subprocess.run(
        [sys.executable, *shlex.split(command)],
        cwd=examples,
        env={**kept, "XDG_DATA_HOME": str(home), "XDG_CONFIG_HOME": str(home)},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout


@pytest.mark.parametrize("program", PRINTED)
def test_a_program_prints_what_it_promises(program: str, examples: Path, tmp_path: Path) -> None:
    assert ran(program, examples, tmp_path) == dedent(PRINTED[program]).lstrip()


@needs_embedded
@pytest.mark.embedded
def test_the_embedded_model_learns_the_same_of_the_user(examples: Path, tmp_path: Path) -> None:
    printed = ran(EMBEDDED, examples, tmp_path)

    assert printed.splitlines()[-2:] == ["MEMORY - User Name: Ruaidhrí", "MEMORY - User Age: 20"]


def test_the_readme_names_every_program_and_no_other() -> None:
    readme = (EXAMPLES / "README.md").read_text(encoding="utf-8")

    assert sorted(re.findall(r"`python ([^`]+)`", readme)) == sorted([*PRINTED, EMBEDDED])
    assert {f"{path.parent.name}/main.py" for path in EXAMPLES.glob("*/main.py")} == set(PRINTED)


# ---- what the model sees ------------------------------------------------------------------------------------------


@pytest.fixture
def start(start_host: Any, examples: Path, model: FakeModel) -> Any:
    """Starts a sidecar with a program's configuration; its sessions talk to the model that records."""

    async def started(program: str) -> FakeHost:
        folder = examples / program
        return await start_host(args=("--config", str(folder / "sidecar.toml")), env=model.environment, cwd=folder)

    return started


async def test_a_preference_stands_in_the_instructions_from_the_next_run_on(start: Any, model: FakeModel) -> None:
    session = await (await start("user_preference")).create_session(agent="user_preference", model="openai:fake")
    model.otherwise(lambda request: ["ok"])

    await session.run("My FAVORITE food is sushi! Yours?")
    await session.run("What shall we cook?")

    assert [request.system for request in model.requests] == [
        "You are a helpful cook.",
        "You are a helpful cook.\nFavorite food of the user: sushi.",
    ]


@pytest.mark.parametrize("agent", ["simple_service_memory", "advanced_service_memory"])
async def test_what_a_service_remembers_is_put_before_the_model_once_and_never_stored_again(
    start: Any, model: FakeModel, agent: str
) -> None:
    host = await start("service_memory")
    session, other = [await host.create_session(agent=agent, model="openai:fake") for _ in range(2)]
    model.otherwise(lambda request: ["ok"])

    await session.run("The spare key hangs behind the clock.")
    for _ in range(3):
        await session.run("Where is the spare key?")
    await other.run("Where is the spare key?")

    *_, last, elsewhere = model.requests
    memories = [message["content"] for message in last.messages if HEADING in str(message)]
    assert memories == [f"{HEADING}\nThe spare key hangs behind the clock.\nWhere is the spare key?"]
    assert HEADING not in elsewhere.text
    assert (await session.state())["state"] != (await other.state())["state"]


@pytest.mark.parametrize("agent", ["simple_service_memory", "advanced_service_memory"])
async def test_nothing_of_a_run_that_failed_is_remembered(start: Any, model: FakeModel, agent: str) -> None:
    session = await (await start("service_memory")).create_session(agent=agent, model="openai:fake")
    model.fails(400)
    model.otherwise(lambda request: ["ok"])

    with pytest.raises(RpcError):
        await session.run("The spare key hangs behind the clock.")
    assert (await session.state())["state"] == {}
    await session.run("What about keys?")
    await session.run("Where is the spare key?")

    assert HEADING not in model.last_request.text


async def test_a_history_in_a_database_is_told_once_and_the_audit_never(
    start: Any, model: FakeModel, tmp_path: Path
) -> None:
    session = await (await start("database_history")).create_session(
        agent="primary_and_audit", model="openai:fake", cwd=str(tmp_path)
    )
    model.otherwise(lambda request: ["ok"])

    await session.run("Hello")
    await session.run("Hello")

    told = [(message["role"], message["content"]) for message in model.last_request.messages]
    assert told == [("user", "Hello"), ("assistant", "ok"), ("user", "No smoking."), ("user", "Hello")]


async def test_the_model_is_asked_to_ask_for_what_is_not_known_and_told_what_is(start: Any, model: FakeModel) -> None:
    session = await (await start("user_info_memory")).create_session(agent="user_info_memory", model="openai:fake")
    model.otherwise(lambda request: ['{"name": "Ann", "age": 99}' if "response_format" in request.body else "ok"])

    await session.run("I am Ann")
    await session.run("What do you know?")

    first, second = [request.system for request in model.requests if "response_format" not in request.body]
    assert "know the user's name yet" in first
    assert "know the user's age yet" in first
    assert "user's name: Ann" in second
    assert "know the user's age yet" in second
    assert (await session.state())["state"] == {"user_info": {"name": "Ann"}}


async def test_values_for_tools_are_neither_in_a_tool_s_schema_nor_in_a_request(start: Any, model: FakeModel) -> None:
    session = await (await start("send_email")).create_session(agent="send_email", model="openai:fake")
    model.calls("send_email", {"address": "finance@example.com"})
    model.says("Done.")

    await session.run(UPDATE, functionInvocationKwargs={"user_id": "user-123", "tenant": "contoso"})

    first, second = model.requests
    [tool] = first.body["tools"]
    assert list(tool["function"]["parameters"]["properties"]) == ["address"]
    assert "user-123" not in json.dumps(first.body)
    assert [*second.tool_results.values()] == ["Queued email for finance@example.com from user-123 (contoso)"]


async def test_a_user_that_the_model_makes_up_sends_nothing(start: Any, model: FakeModel) -> None:
    session = await (await start("send_email")).create_session(agent="inject_run_context", model="openai:fake")
    forged = {"address": "finance@example.com", "user_id": "root", "tenant": "all"}
    for _ in range(2):
        model.calls("send_email_as", forged)
        model.says("Done.")

    await session.run(UPDATE, properties={"user_id": "user-123"})
    by_the_host = [*model.last_request.tool_results.values()][-1]
    await session.run(UPDATE)
    by_nobody = [*model.last_request.tool_results.values()][-1]

    assert by_the_host == "Queued email for finance@example.com from user-123 (default)"
    assert by_nobody == "Error: Argument parsing failed."


async def test_what_another_agent_says_to_itself_never_comes_into_the_conversation(
    start: Any, model: FakeModel
) -> None:
    session = await (await start("shared_state")).create_session(agent="Coordinator", model="openai:fake")
    model.calls("research", {"query": "tea"})
    model.says("It is a drink.")
    model.says("Yes.")

    await session.run("Find out about tea.")
    await session.run("Thanks.")

    assert model.last_request.roles == ["system", "user", "assistant", "tool", "assistant", "user"]
    assert "much to say" not in model.last_request.text
    assert (await session.state())["state"]["findings"] == "There is much to say about tea."


async def test_files_under_a_user_s_name_are_told_to_every_conversation_of_that_user_and_to_no_other(
    start: Any, model: FakeModel, tmp_path: Path
) -> None:
    host = await start("travel_assistant")
    note = {"file_name": "travel.md", "content": "by train", "description": "How to get there."}
    model.calls("file_memory_write", note)
    model.otherwise(lambda request: ["ok"])

    seen: list[str] = []
    for user in ("users/ada", "users/ada", "users/eve"):
        session = await host.create_session(
            agent="TravelAssistant", model="openai:fake", cwd=str(tmp_path), state={"memory_scope": user}
        )
        await session.run("Hello")
        seen.append(model.last_request.text)

    assert "How to get there." in seen[1]
    assert "How to get there." not in seen[2]
    assert "file_memory_write" in model.last_request.tool_names
