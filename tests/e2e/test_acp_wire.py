"""What an ACP client writes wrong costs it an answer, never the agent; files and dead readers do in place of pipes."""

import asyncio
import json
import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from sidecar.cli.acp import command
from sidecar.cli.command import CommandError
from tests.bench.acp_client import Acp, AcpError, prompt
from tests.bench.processes import children
from tests.e2e.cli_process import COMMAND, Cli

SECRET = "hunter2"
ARGUMENTS = ("--store", "memory", "--model", "scripted:echo")


@pytest.fixture
async def acp(tmp_path: Path) -> AsyncIterator[Acp]:
    """An agent that repeats what it is told."""
    async with Acp(Cli(tmp_path), *ARGUMENTS) as agent:
        await agent.initialize()
        yield agent


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("[]", -32600),
        ('[{"jsonrpc":"2.0","id":1,"method":"session/list"}]', -32600),
        ("5", -32600),
        ("null", -32600),
        ('{"jsonrpc":"2.0","id":77}', -32600),
        ('{"jsonrpc":"2.0","id":{},"method":"session/list"}', -32600),
        ('{"jsonrpc":"2.0","id":77,"method":5}', -32600),
        ('{"id":77,"method":"session/list"}', -32600),
        ("{hunter2", -32700),
        ('{"a":' * 300 + "1" + "}" * 300, -32700),
        ("\ufffd", -32700),
    ],
)
async def test_a_line_that_is_no_message_is_answered_and_the_next_one_served(acp: Acp, line: str, code: int) -> None:
    acp.write(line.encode("utf-8", "surrogateescape") + b"\n")

    (answer,) = await acp.until(lambda: acp.loose)

    assert answer["error"]["code"] == code
    assert answer["id"] in (None, 77)
    assert SECRET not in json.dumps(answer)
    assert await acp.new_session()


async def test_answers_that_nobody_waits_for_are_ignored(acp: Acp) -> None:
    for line in ('{"jsonrpc":"2.0","id":9,"result":1}', '{"jsonrpc":"2.0","id":"x","error":5}', "", "  "):
        acp.write(line.encode() + b"\n")

    assert await acp.new_session()
    assert acp.loose == []


@pytest.mark.parametrize(
    ("method", "params", "path"),
    [
        ("session/prompt", {"sessionId": "s", "prompt": [{"type": SECRET, "text": SECRET}]}, "prompt.0"),
        ("session/prompt", {"sessionId": "s", "prompt": SECRET}, "prompt"),
        ("session/prompt", {"sessionId": {SECRET: 1}, "prompt": []}, "sessionId"),
        ("session/new", {"mcpServers": []}, "cwd"),
        ("session/load", {"sessionId": 5, "cwd": "/", "mcpServers": []}, "sessionId"),
        ("session/set_config_option", {"sessionId": "s", "configId": "model", "value": {SECRET: 1}}, "value"),
        ("session/list", [SECRET], ""),
    ],
)
async def test_wrong_params_are_told_by_their_path_and_not_repeated(
    tmp_path: Path, method: str, params: Any, path: str
) -> None:
    async with Acp(Cli(tmp_path), *ARGUMENTS, check=False) as acp:
        await acp.initialize()

        with pytest.raises(AcpError) as refused:
            await acp.request(method, params)

        assert (refused.value.code, refused.value.kind) == (-32602, "invalidParams")
        assert path in [fault["path"] for fault in refused.value.data["errors"]]
        assert SECRET not in json.dumps(acp.log)


async def test_methods_that_are_not_there_are_told_from_wrong_params(tmp_path: Path) -> None:
    async with Acp(Cli(tmp_path), *ARGUMENTS, check=False) as acp:
        await acp.initialize()
        for method in ("session/fork", "authenticate", "logout", "no/such", "_other/thing"):
            with pytest.raises(AcpError) as refused:
                await acp.request(method, {})
            assert (refused.value.code, refused.value.kind) == (-32601, "methodNotFound")


async def test_an_id_is_echoed_as_it_came_and_used_once(acp: Acp) -> None:
    line = b'{"jsonrpc":"2.0","id":"\\u00e9","method":"session/list","params":{}}\n'
    acp.write(line + line)

    answers = await acp.until(lambda: acp.loose if len(acp.loose) == 2 else None)

    assert [answer["id"] for answer in answers] == ["é", "é"]
    assert sorted("error" in answer for answer in answers) == [False, True]


async def test_a_request_other_than_a_prompt_can_be_taken_back(acp: Acp) -> None:
    request = acp.begin_all(("session/list", {}), ("$/cancel_request", {"requestId": acp.next_id}))

    (outcome,) = await asyncio.gather(*request, return_exceptions=True)

    assert isinstance(outcome, dict) or (isinstance(outcome, AcpError) and outcome.code == -32800)
    assert await acp.new_session()


async def test_files_in_place_of_pipes_are_read_to_their_end_and_answered(tmp_path: Path) -> None:
    requests = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": 1}},
        {"jsonrpc": "2.0", "id": 2, "method": "session/new", "params": {"cwd": "/tmp", "mcpServers": []}},
        {"jsonrpc": "2.0", "id": 3, "method": "session/list", "params": {}},
    ]
    questions, answers = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    questions.write_text("".join(json.dumps(request) + "\n" for request in requests))

    with questions.open() as read, answers.open("w") as write:
        process = await asyncio.create_subprocess_exec(
            *COMMAND, "acp", *ARGUMENTS, stdin=read, stdout=write, env=Cli(tmp_path).environment
        )
        async with asyncio.timeout(30):
            assert await process.wait() == 0

    by_id = {answer["id"]: answer for answer in map(json.loads, answers.read_text().splitlines())}
    assert [by_id[number].keys() - {"jsonrpc", "id"} for number in (1, 2, 3)] == [{"result"}] * 3


async def test_an_agent_whose_output_nobody_reads_ends(acp: Acp) -> None:
    acp.hang_up()

    async with asyncio.timeout(10):
        assert await acp.process.wait() == 1


async def test_sigterm_ends_the_agent_and_its_sidecar(acp: Acp) -> None:
    session = await acp.new_session()
    await acp.prompt(session, "hello")
    sidecar = sidecar_of(acp)

    acp.process.send_signal(signal.SIGTERM)

    assert await acp.exit_code() == 128 + signal.SIGTERM
    with pytest.raises(ProcessLookupError):
        os.kill(sidecar, 0)


async def test_a_sidecar_that_dies_is_replaced_and_its_session_goes_on(tmp_path: Path) -> None:
    cli = Cli(tmp_path)
    model = cli.script('[[reply]]\nwhen = "story"\ntext = "Once"\nstall = true\n[[reply]]\nwhen = "."\ntext = "Yes."\n')
    async with Acp(cli, "--store", cli.store, "--model", model) as acp:
        await acp.initialize()
        session = await acp.new_session()
        story = acp.begin("session/prompt", prompt(session, "story"))
        await acp.until(lambda: acp.text() == "Once")
        sidecar = sidecar_of(acp)

        os.kill(sidecar, signal.SIGKILL)

        assert (await story)["stopReason"] == "cancelled"
        assert (await acp.prompt(session, "hello"))["stopReason"] == "end_turn"
        assert acp.text() == "OnceYes."


async def test_a_sidecar_that_cannot_start_is_told_and_the_agent_waits_for_another_try(tmp_path: Path) -> None:
    async with Acp(Cli(tmp_path), "--store", "no such store") as acp:
        await acp.initialize()
        with pytest.raises(AcpError) as refused:
            await acp.new_session()
        assert refused.value.kind == "configInvalid"
        assert await acp.end() == 0


def test_without_the_package_the_command_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "find_spec", lambda name: None)

    with pytest.raises(CommandError, match=r"agent-sidecar\[acp\]"):
        command.COMMAND.execute(None)


def sidecar_of(acp: Acp) -> int:
    """The process behind the agent."""
    (child,) = children(acp.process.pid)
    return int(child)
