"""`agent-sidecar chat`: on a terminal as a person has it, and with lines out of a pipe."""

import os
import signal
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.e2e.cli_process import COMMAND, Cli
from tests.e2e.terminal import CTRL_C, CTRL_D, UP, Terminal

STALLS = '[[reply]]\nwhen = "story"\ntext = "Once upon"\nstall = true\n[[reply]]\nwhen = "hi"\ntext = "Good day."\n'


@pytest.fixture
def cli(tmp_path: Path) -> Cli:
    return Cli(tmp_path)


@contextmanager
def chatting(cli: Cli, *arguments: str) -> Iterator[Terminal]:
    command = [*COMMAND, "chat", "--store", cli.store, *arguments]
    with Terminal(command, cli.folder, cli.environment) as terminal:
        terminal.expect("· session ")
        terminal.expect("\n> ")
        yield terminal


def test_answers_are_streamed_and_ctrl_d_leaves(cli: Cli) -> None:
    with chatting(cli, "--model", cli.script(STALLS)) as terminal:
        terminal.type("hi there\n")
        terminal.expect("Good day.\n> ")
        terminal.type(CTRL_D)
        assert terminal.end() == 0


def test_ctrl_c_cancels_the_run_and_the_conversation_goes_on(cli: Cli) -> None:
    with chatting(cli, "--model", cli.script(STALLS)) as terminal:
        terminal.type("a story\n")
        terminal.expect("Once upon")
        terminal.type(CTRL_C)
        terminal.expect("the run was cancelled\n> ")
        terminal.type("hi\n")
        terminal.expect("Good day.\n> ")
        terminal.type("/quit\n")
        assert terminal.end() == 0


def test_ctrl_c_at_the_prompt_warns_and_a_second_one_leaves(cli: Cli) -> None:
    with chatting(cli, "--model", "scripted:echo") as terminal:
        interrupt(terminal, "half a li")
        terminal.expect("Ctrl-C again, or Ctrl-D, leaves\n> ")
        terminal.type("hello\n")
        terminal.expect("hello\nhello\n> ")
        interrupt(terminal, "anoth")
        terminal.expect("leaves\n> ")
        interrupt(terminal, "er")
        assert terminal.end() == 0


def interrupt(terminal: Terminal, typed: str) -> None:
    """Ctrl-C at the prompt."""
    terminal.type(typed)
    terminal.expect(typed)
    terminal.resting()
    terminal.type(CTRL_C)


def test_a_second_ctrl_c_leaves_a_run_that_does_not_end(cli: Cli) -> None:
    with chatting(cli, "--model", cli.script(STALLS)) as terminal:
        terminal.type("a story\n")
        terminal.expect("Once upon")
        (server,) = children(terminal.pid)
        os.kill(server, signal.SIGSTOP)
        terminal.type(CTRL_C)
        terminal.expect("Ctrl-C again leaves")
        terminal.type(CTRL_C)
        terminal.expect("agent-sidecar: stopped")
        assert terminal.end() == 130


def children(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def test_a_sidecar_that_is_killed_in_a_run_costs_that_run_only(cli: Cli) -> None:
    with chatting(cli, "--model", cli.script(STALLS)) as terminal:
        terminal.type("a story\n")
        terminal.expect("Once upon")
        (server,) = children(terminal.pid)
        os.kill(server, signal.SIGKILL)
        terminal.expect("the run was interrupted\n> ")
        terminal.type("hi\n")
        terminal.expect("Good day.\n> ")
        terminal.type("/history\n")
        terminal.expect("user: a story\nuser: hi\ndefault: Good day.\n> ")
        terminal.type("/quit\n")
        assert terminal.end() == 0


def test_lines_of_earlier_times_come_back_and_are_private(cli: Cli) -> None:
    with chatting(cli, "--model", "scripted:echo") as terminal:
        terminal.type("remember this\n")
        terminal.expect("remember this\nremember this\n> ")
        terminal.type(CTRL_D)
        assert terminal.end() == 0
    with chatting(cli, "--model", "scripted:echo") as terminal:
        terminal.type(UP)
        terminal.expect("remember this")
        terminal.type("\n")
        terminal.expect("\nremember this\n> ")
        terminal.type("/quit\n")
        assert terminal.end() == 0
    (kept,) = cli.folder.rglob("chat-history")
    assert kept.read_text().splitlines() == ["remember this", "/quit"]
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    assert stat.S_IMODE(kept.parent.stat().st_mode) == 0o700


async def test_lines_out_of_a_pipe_are_answered_and_leave_no_history(cli: Cli) -> None:
    outcome = await cli("chat", "--model", "scripted:echo", "--store", "memory", stdin="one\n\ntwo\n")
    assert (outcome.code, outcome.out) == (0, "one\ntwo\n")
    assert list(cli.folder.rglob("chat-history")) == []


async def test_a_named_session_goes_on_from_one_chat_to_the_next(cli: Cli) -> None:
    arguments = ("chat", "--session", "mine", "--model", "scripted:echo", "--store", cli.store)
    await cli(*arguments, stdin="one\n")
    outcome = await cli(*arguments, stdin="two\n/history\n")
    assert outcome.out == "two\nuser: one\ndefault: one\nuser: two\ndefault: two\n"


async def test_new_begins_an_empty_session_and_state_shows_it(cli: Cli) -> None:
    arguments = ("chat", "--session", "mine", "--model", "scripted:echo", "--store", cli.store)
    outcome = await cli(*arguments, stdin="one\n/new\n/history\n/state\n")
    assert outcome.out.startswith("one\nsessionId: ses_")
    assert "model: scripted:echo\n" in outcome.out
    assert "sessionId: mine" not in outcome.out


async def test_a_failed_run_and_an_unknown_command_do_not_end_the_chat(cli: Cli) -> None:
    model = cli.script('[[reply]]\nwhen = "fail"\nerror = "modelQuota"\n[[reply]]\nwhen = "hi"\ntext = "Good day."\n')
    outcome = await cli("chat", "--model", model, "--store", "memory", stdin="/nonsense now\nfail\nhi\n/quit\nnever\n")
    assert (outcome.code, outcome.out) == (0, "Good day.\n")
    assert "there is no /nonsense; there are /new, /state, /history and /quit" in outcome.err
    assert "agent-sidecar: the script says so" in outcome.err


async def test_an_agent_that_is_not_configured_ends_the_chat_before_it_begins(cli: Cli) -> None:
    outcome = await cli("chat", "--agent", "nobody", "--store", "memory", stdin="hi\n")
    assert (outcome.code, outcome.out) == (1, "")
    assert "nobody" in outcome.err
