"""`agent-sidecar run` and `chat` ask on the terminal before a call and for answers, and say no where there is none."""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.e2e.cli_process import COMMAND, Cli
from tests.e2e.terminal import CTRL_C, CTRL_D, Terminal

QUESTION = "empty rejects) "

PLUGIN = '''
from pathlib import Path

from providers.api.invocation import FunctionInvocationContext
from providers.api.tool import tool


@tool(approval_mode="always_require", kind="edit")
def remove(path: str) -> str:
    """Remove a file."""
    with Path("calls.txt").open("a") as calls:
        calls.write(path + "\\n")
    return f"removed {path}"


@tool
async def introduce(ctx: FunctionInvocationContext) -> str:
    """Ask who the user is."""
    schema = {
        "type": "object",
        "properties": {"name": {"type": "string"}, "age": {"type": "integer", "minimum": 1}},
        "required": ["name"],
    }
    answer = await ctx.run.elicit("Who are you?", schema=schema)
    return f"{answer.action} {answer.content}"
'''

SCRIPT = r"""
[[reply]]
when_tool = "remove"
text = "It says: {result}"
[[reply]]
when_tool = "introduce"
text = "It says: {result}"
[[reply]]
when = "hello"
text = "Hi."
[[reply]]
when = "who"
calls = [{ name = "introduce" }]
[[reply]]
when = "hostile"
calls = [{ name = "remove", arguments = { path = "a\u001b[2J\u202e.txt" } }]
[[reply]]
when = "two"
calls = [{ name = "remove", arguments = { path = "a.txt" } }, { name = "remove", arguments = { path = "b.txt" } }]
[[reply]]
when = "go"
calls = [{ name = "remove", arguments = { path = "a.txt" } }]
"""

CONFIG = """
plugins = ["plugins"]
tools = ["files:remove", "files:introduce"]
[agents.default]
model = "scripted:script.toml"
tools = [{ type = "registered", name = "remove" }, { type = "registered", name = "introduce" }]
"""


@pytest.fixture
def cli(tmp_path: Path) -> Cli:
    cli = Cli(tmp_path)
    cli.script(SCRIPT)
    (tmp_path / "plugins").mkdir()
    (tmp_path / "plugins" / "files.py").write_text(PLUGIN)
    (tmp_path / "mine.toml").write_text(CONFIG)
    return cli


def calls(cli: Cli) -> list[str]:
    """What was removed."""
    path = cli.folder / "calls.txt"
    return path.read_text().splitlines() if path.exists() else []


def arguments(cli: Cli, *more: str) -> list[str]:
    return [*more, "--config", "mine.toml", "--store", cli.store]


def running(cli: Cli, *more: str) -> Terminal:
    return Terminal([*COMMAND, *arguments(cli, "run", *more)], cli.folder, cli.environment)


@contextmanager
def chatting(cli: Cli, *more: str) -> Iterator[Terminal]:
    with Terminal([*COMMAND, *arguments(cli, "chat", *more)], cli.folder, cli.environment) as terminal:
        terminal.expect("· session ")
        yield terminal


def test_a_call_is_shown_and_made_once_after_a_yes(cli: Cli) -> None:
    with running(cli, "go") as terminal:
        terminal.expect("? Run remove?\n")
        terminal.expect('  tool remove (edit)\n  │ path: "a.txt"\n  1  Allow once\n')
        terminal.expect(QUESTION)
        assert calls(cli) == []
        terminal.type("1\n")
        terminal.expect("It says: removed a.txt\n")
        assert terminal.end() == 0
    assert calls(cli) == ["a.txt"]


@pytest.mark.parametrize("answer", ["\n", CTRL_D, "n\n", "what\nis\nthis\n"])
def test_everything_but_a_yes_rejects_the_call_and_the_run_goes_on(cli: Cli, answer: str) -> None:
    with running(cli, "go") as terminal:
        for line in answer.splitlines(keepends=True):
            terminal.expect(QUESTION)
            terminal.type(line)
        terminal.expect("rejected by user")
        assert terminal.end() == 0
    assert calls(cli) == []


def test_the_model_reads_why_a_call_was_rejected(cli: Cli) -> None:
    with running(cli, "go") as terminal:
        terminal.expect(QUESTION)
        terminal.type("n use the bin\n")
        terminal.expect("They said: use the bin")
        assert terminal.end() == 0


def test_ctrl_c_at_the_question_cancels_the_run_and_makes_no_call(cli: Cli) -> None:
    with running(cli, "go") as terminal:
        terminal.expect(QUESTION)
        terminal.type(CTRL_C)
        terminal.expect("agent-sidecar: stopped")
        assert terminal.end() == 130
    assert calls(cli) == []


def test_ctrl_c_at_the_question_of_a_chat_cancels_the_run_and_the_conversation_goes_on(cli: Cli) -> None:
    with chatting(cli) as terminal:
        terminal.expect("\n> ")
        terminal.type("go\n")
        terminal.expect(QUESTION)
        terminal.type(CTRL_C)
        terminal.expect("the question was taken back\n")
        terminal.expect("the run was cancelled\n> ")
        terminal.type("go\n")
        terminal.expect(QUESTION)
        terminal.type(CTRL_D)
        terminal.expect("rejected by user")
        terminal.expect("\n> ")
        terminal.type(CTRL_D)
        assert terminal.end() == 0
    assert calls(cli) == []


def test_a_question_that_waits_too_long_is_taken_back_and_the_call_denied(cli: Cli) -> None:
    with (cli.folder / "mine.toml").open("a") as config:
        config.write("approvals = { timeout_ms = 500 }\n")
    with running(cli, "go") as terminal:
        terminal.expect(QUESTION)
        terminal.expect("the question was taken back\n")
        terminal.expect("It says: ")
        assert terminal.end() == 0
    assert calls(cli) == []


def test_what_the_model_wrote_cannot_drive_the_terminal_or_hide(cli: Cli) -> None:
    with running(cli, "hostile") as terminal:
        terminal.expect('  │ path: "a\\u001b[2J\\u202e.txt"\n')
        terminal.expect(QUESTION)
        terminal.type("\n")
        assert terminal.end() == 0


def test_two_calls_are_asked_about_one_after_the_other(cli: Cli) -> None:
    with running(cli, "two") as terminal:
        terminal.expect('path: "a.txt"')
        terminal.expect(QUESTION)
        terminal.type("n\n")
        terminal.expect('path: "b.txt"')
        terminal.expect(QUESTION)
        terminal.type("y\n")
        terminal.expect("It says: removed b.txt\n")
        assert terminal.end() == 0
    assert calls(cli) == ["b.txt"]


def test_a_consent_for_the_session_lasts_in_a_chat(cli: Cli) -> None:
    with chatting(cli) as terminal:
        terminal.expect("\n> ")
        terminal.type("go\n")
        terminal.expect("2  Allow this tool for the session\n")
        terminal.expect(QUESTION)
        terminal.type("2\n")
        terminal.expect("It says: removed a.txt\n> ")
        terminal.type("go\n")
        terminal.expect("It says: removed a.txt\n> ")
        terminal.type("/quit\n")
        assert terminal.end() == 0
    assert calls(cli) == ["a.txt", "a.txt"]
    assert terminal.shown.count("? Run remove?") == 1


def test_what_was_typed_before_the_question_is_no_answer_to_it(cli: Cli) -> None:
    with chatting(cli) as terminal:
        terminal.expect("\n> ")
        terminal.type("go\n1\n")
        terminal.expect(QUESTION)
        terminal.type("\n")
        terminal.expect("rejected by user")
        terminal.expect("\n> ")
        terminal.type("/quit\n")
        assert terminal.end() == 0
    assert calls(cli) == []


def test_a_run_that_ended_with_its_question_is_asked_for_and_goes_on(cli: Cli) -> None:
    with (cli.folder / "mine.toml").open("a") as config:
        config.write('approvals = { mode = "inputRequired" }\n')
    with running(cli, "go", "--session", "mine") as terminal:
        terminal.expect(QUESTION)
        assert "Allow this tool for the session" not in terminal.shown
        terminal.type("1\n")
        terminal.expect("It says: removed a.txt\n")
        assert terminal.end() == 0
    assert calls(cli) == ["a.txt"]


def test_a_question_that_was_left_is_asked_again_in_the_next_chat(cli: Cli) -> None:
    with (cli.folder / "mine.toml").open("a") as config:
        config.write('approvals = { mode = "inputRequired" }\n')
    with chatting(cli, "--session", "mine") as terminal:
        terminal.expect("\n> ")
        terminal.type("go\n")
        terminal.expect(QUESTION)
        terminal.type(CTRL_C)
        terminal.expect("the next chat in this session asks again\n> ")
        terminal.type("/quit\n")
        assert terminal.end() == 0
    assert calls(cli) == []
    with chatting(cli, "--session", "mine") as terminal:
        terminal.expect('path: "a.txt"')
        terminal.expect(QUESTION)
        terminal.type("y\n")
        terminal.expect("It says: removed a.txt\n> ")
        terminal.type(CTRL_D)
        assert terminal.end() == 0
    assert calls(cli) == ["a.txt"]


async def test_every_run_that_waits_is_asked_for_and_goes_on_by_itself(cli: Cli) -> None:
    with (cli.folder / "mine.toml").open("a") as config:
        config.write('approvals = { mode = "inputRequired" }\n')
    for prompt in ("go", "hello", "hostile", "hello"):
        await cli(*arguments(cli, "run", prompt, "--session", "mine"))
    with chatting(cli, "--session", "mine") as terminal:
        terminal.expect('path: "a.txt"')
        terminal.expect(QUESTION)
        terminal.type("y\n")
        terminal.expect("Hi.\n? Run remove?")
        terminal.expect('path: "a\\u001b[2J\\u202e.txt"')
        terminal.expect(QUESTION)
        terminal.type("n\n")
        terminal.expect("Hi.\n> ")
        terminal.type(CTRL_D)
        assert terminal.end() == 0
    assert calls(cli) == ["a.txt"]


def test_a_question_whose_sidecar_is_killed_is_asked_again(cli: Cli) -> None:
    with chatting(cli) as terminal:
        terminal.expect("\n> ")
        terminal.type("go\n")
        terminal.expect(QUESTION)
        (server,) = Path(f"/proc/{terminal.pid}/task/{terminal.pid}/children").read_text().split()
        os.kill(int(server), signal.SIGKILL)
        terminal.expect(QUESTION)
        assert calls(cli) == []
        terminal.type("1\n")
        terminal.expect("It says: removed a.txt\n> ")
        terminal.type("/quit\n")
        assert terminal.end() == 0
    assert calls(cli) == ["a.txt"]


def test_a_question_of_a_tool_is_a_form_on_the_terminal(cli: Cli) -> None:
    with running(cli, "who am I?") as terminal:
        terminal.expect("? a question:\n  │ Who are you?\n")
        terminal.expect("name (text; empty declines): ")
        terminal.type("Ann\n")
        terminal.expect("age (a whole number; may be empty): ")
        terminal.type("0\n")
        terminal.expect("it must be 1 or more\nage (a whole number; may be empty): ")
        terminal.type("33\n")
        terminal.expect("It says: accept {'name': 'Ann', 'age': 33}\n")
        assert terminal.end() == 0


def test_an_empty_answer_to_a_question_declines(cli: Cli) -> None:
    with running(cli, "who am I?") as terminal:
        terminal.expect("name (text; empty declines): ")
        terminal.type("\n")
        terminal.expect("It says: decline None\n")
        assert terminal.end() == 0


async def test_without_a_terminal_a_call_is_denied_and_stderr_tells_of_it(cli: Cli) -> None:
    for command, stdin in (("run", ""), ("chat", "go\n")):
        prompt = ["go"] if command == "run" else []
        outcome = await cli(*arguments(cli, command, *prompt), stdin=stdin)
        assert outcome.code == 0
        assert "It says: Error: Tool call invocation was rejected by user." in outcome.out
        assert "agent-sidecar: denied: nobody can be asked (no terminal, or --no-input): Run remove?\n" in outcome.err
    assert calls(cli) == []


async def test_without_a_terminal_a_question_is_declined(cli: Cli) -> None:
    outcome = await cli(*arguments(cli, "run", "who am I?"))
    assert (outcome.code, outcome.out) == (0, "It says: decline None\n")
    assert outcome.err == "agent-sidecar: declined: nobody can be asked (no terminal, or --no-input): Who are you?\n"


def test_no_input_asks_nothing_on_a_terminal_either(cli: Cli) -> None:
    with running(cli, "go", "--no-input") as terminal:
        terminal.expect("agent-sidecar: denied: nobody can be asked")
        terminal.expect("rejected by user")
        assert terminal.end() == 0
    assert calls(cli) == []


async def test_a_run_that_ended_with_its_question_and_nobody_to_ask_says_where_to_go_on(cli: Cli) -> None:
    with (cli.folder / "mine.toml").open("a") as config:
        config.write('approvals = { mode = "inputRequired" }\n')
    outcome = await cli(*arguments(cli, "run", "go", "--session", "mine"))
    assert outcome.code == 1
    assert "the run waits for consent to a call; agent-sidecar chat --session asks, on a terminal" in outcome.err
    assert calls(cli) == []
