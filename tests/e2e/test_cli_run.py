"""`agent-sidecar run` with the real server and a scripted model."""

import json
import signal
from pathlib import Path

import pytest

from tests.e2e.cli_process import Cli

ECHO = ("--model", "scripted:echo")


@pytest.fixture
def cli(tmp_path: Path) -> Cli:
    return Cli(tmp_path)


async def test_the_answer_and_nothing_else_is_on_stdout(cli: Cli) -> None:
    assert await cli("run", "hello there", *ECHO, "--store", "memory") == (0, "hello there\n", "")


async def test_a_dash_reads_the_prompt_from_stdin(cli: Cli) -> None:
    assert (await cli("run", "-", *ECHO, "--store", "memory", stdin="from a pipe")).out == "from a pipe\n"


async def test_json_prints_every_event_and_at_last_the_result(cli: Cli) -> None:
    outcome = await cli("run", "hello", "--json", *ECHO, "--store", "memory")
    lines = [json.loads(line) for line in outcome.out.splitlines()]
    types = [line["event"]["type"] for line in lines[:-1]]
    assert (types[0], types[-1]) == ("run.started", "run.completed")
    assert "message.delta" in types
    assert lines[-1]["result"]["text"] == "hello"


async def test_a_session_remembers_from_one_process_to_the_next(cli: Cli) -> None:
    model = cli.script('[[reply]]\ntext = "first"\n[[reply]]\ntext = "second"\n')
    arguments = ("--session", "mine", "--model", model, "--store", cli.store)
    assert (await cli("run", "one", *arguments)).out == "first\n"
    assert (await cli("run", "two", *arguments)).out == "second\n"
    assert (await cli("run", "three", "--model", model, "--store", cli.store)).out == "first\n"


async def test_another_agent_on_an_existing_session_is_refused(cli: Cli) -> None:
    arguments = ("--session", "mine", *ECHO, "--store", cli.store)
    await cli("run", "hello", *arguments)
    outcome = await cli("run", "hello", *arguments, "--agent", "coder")
    assert (outcome.code, outcome.out) == (2, "")
    assert "has the agent 'default'; leave --agent out" in outcome.err


async def test_config_and_agent_reach_the_server(cli: Cli) -> None:
    (cli.folder / "mine.toml").write_text('[agents.parrot]\nmodel = "scripted:echo"\n')
    outcome = await cli("run", "hello", "--agent", "parrot", "--config", "mine.toml", "--store", "memory")
    assert outcome == (0, "hello\n", "")


async def test_a_failed_run_is_one_line_on_stderr_and_code_1(cli: Cli) -> None:
    model = cli.script('[[reply]]\ntext = ["half an "]\nerror = "modelRateLimited"\n')
    outcome = await cli("run", "hello", "--model", model, "--store", "memory")
    assert (outcome.code, outcome.out) == (1, "half an \n")
    assert outcome.err == "agent-sidecar: the script says so\n"


async def test_a_failed_run_as_json_ends_with_the_error(cli: Cli) -> None:
    model = cli.script('[[reply]]\nerror = "modelQuota"\n')
    outcome = await cli("run", "hello", "--json", "--model", model, "--store", "memory")
    assert outcome.code == 1
    assert json.loads(outcome.out.splitlines()[-1])["error"]["data"]["kind"] == "modelQuota"


async def test_timeout_cancels_the_run_and_says_how_long_it_had(cli: Cli) -> None:
    model = cli.script('[[reply]]\ntext = "Once upon"\nstall = true\n')
    outcome = await cli("run", "hello", "--timeout", "0.3", "--model", model, "--store", "memory")
    assert (outcome.code, outcome.out) == (1, "Once upon\n")
    assert "did not end within 0.3 s" in outcome.err


@pytest.mark.parametrize("wrong", [("--timeout", "soon"), ("--timeout", "-1"), ("--no-such-flag",)])
async def test_wrong_usage_is_code_2(cli: Cli, wrong: tuple[str, ...]) -> None:
    outcome = await cli("run", "hello", *wrong)
    assert (outcome.code, outcome.out) == (2, "")
    assert wrong[0] in outcome.err


async def test_a_server_that_cannot_start_tells_why(cli: Cli) -> None:
    outcome = await cli("run", "hello", *ECHO, "--store", "nonsense:x")
    assert outcome.code == 1
    assert outcome.err.count("\n") == 1
    assert "store" in outcome.err


async def test_ctrl_c_cancels_the_run_and_the_session_goes_on(cli: Cli) -> None:
    model = cli.script('[[reply]]\nwhen = "story"\ntext = "Once upon"\nstall = true\n[[reply]]\ntext = "done"\n')
    arguments = ("--session", "mine", "--model", model, "--store", cli.store, "--json")
    process = await cli.start("run", "a story", *arguments)
    assert process.stdout is not None
    while b"message.delta" not in (line := await process.stdout.readline()):
        assert line, "the run ended before it said anything"
    process.send_signal(signal.SIGINT)
    out, err = await process.communicate()

    assert process.returncode == 130
    assert err == b"agent-sidecar: stopped\n"
    last_event, result = [json.loads(line) for line in out.splitlines()[-2:]]
    assert last_event["event"]["data"]["status"] == "cancelled"
    assert result["result"]["status"] == "cancelled"
    assert json.loads((await cli("run", "go on", *arguments)).out.splitlines()[-1])["result"]["text"] == "done"
