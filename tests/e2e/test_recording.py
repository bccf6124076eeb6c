"""`serve --record`: what went over the wire, without secrets, as a conversation that can be played again."""

import json
import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from sidecar.cli.conformance.conversations import Line, read
from sidecar.cli.conformance.placeholders import Placeholders
from sidecar.cli.conformance.rules import check
from tests.bench.fake_model import FakeModel
from tests.bench.host import FakeHost
from tests.bench.transcript import Player
from tests.bench.waiting import eventually
from tests.bench.wire import Framing
from tests.e2e.cli_process import Cli

StartHost = Callable[..., Awaitable[FakeHost]]

TRANSCRIPTS = Path(__file__).parents[1] / "transcripts"
CONVERSATIONS = [
    "approval",
    "bad_messages",
    "cancelled_run",
    "editor",
    "failed_run",
    "host_provider",
    "host_tool",
    "streamed_run",
]
SCRIPT = """
[[reply]]
when_tool = "lookup"
text = "It says {result}"

[[reply]]
when = 'look up'
calls = [{ name = "lookup", arguments = { word = "here" } }]
"""


def lines_of(file: Path) -> list[dict[str, Any]]:
    text = file.read_text(encoding="utf-8") if file.exists() else ""
    return [json.loads(line) for line in text.splitlines()]


def kinds_of(file: Path) -> list[str]:
    return [next(iter(line)) for line in lines_of(file)]


def mode_of(file: Path) -> int:
    return stat.S_IMODE(file.stat().st_mode)


def masked(lines: list[Line], folder: Path) -> list[Line]:
    """A recording with placeholders for what differs each time."""
    names = Placeholders(str(folder))
    hide = {"→": names.mask_sent, "←": names.mask}
    return [Line(line.kind, hide.get(line.kind, lambda value: value)(line.value), line.number) for line in lines]


@pytest.mark.parametrize(
    ("name", "framing"), [(name, ("ndjson", "header")[number % 2]) for number, name in enumerate(CONVERSATIONS)]
)
async def test_a_conversation_that_was_recorded_goes_again_as_it_went(
    name: str, framing: Framing, start_host: StartHost, tmp_path: Path
) -> None:
    file = tmp_path / "recorded.jsonl"

    def player(lines: list[Line], run: str, *arguments: str) -> Player:
        folder = shutil.copytree(TRANSCRIPTS / "scripts", tmp_path / run / "scripts").parent
        env = {variable: str(folder) for variable in ("HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME")}
        store = f"sqlite:{tmp_path / run}.db"
        args = ("--on-eof", "finish", *arguments)
        options: dict[str, Any] = {"store": store, "framing": framing, "cwd": folder, "env": env, "greet": False}
        return Player(lines, lambda: start_host(args=args, **options), folder)

    golden = read(TRANSCRIPTS / f"{name}.jsonl")
    first = player(golden, "first", "--record", str(file))
    await first.play()
    if first.host is not None:
        first.host.hang_up()
        await first.host.wait()

    recorded = read(file)
    assert [line.kind for line in recorded].count("→") == [line.kind for line in golden].count("→")
    assert [finding for finding in check(recorded) if finding.side == "sidecar"] == []
    assert mode_of(file) == 0o600
    again = player(masked(recorded, tmp_path / "first"), "again")
    await again.play()


async def test_no_secret_is_in_a_recording(start_host: StartHost, tmp_path: Path, model: FakeModel) -> None:
    secrets = {
        "of initialize": "canary-initialize-1",
        "of a header": "canary-header-2",
        "of the environment": "canary-environment-3",
        "of kwargs": "canary-kwargs-4",
        "of client kwargs": "canary-client-5",
        "by its form": "sk-canaryabcdefghijklmnop",
    }
    file = tmp_path / "recorded.jsonl"
    script = tmp_path / "script.toml"
    script.write_text(SCRIPT)
    config = tmp_path / "mine.toml"
    config.write_text(
        f'[endpoints.other]\nbase_url = "http://x/"\nheaders = {{ X-Key = "{secrets["of a header"]}" }}\n'
    )
    host = await start_host(
        args=("--record", str(file), "--config", str(config), "--log-level", "debug"),
        env={"OPENAI_API_KEY": secrets["of the environment"]},
        initialize={
            "initializationOptions": {
                "sidecar": {"secrets": {"k": secrets["of initialize"]}, "features": {"hostTools": {}}}
            }
        },
    )
    host.serves["host/callTool"] = lambda params: {
        "content": f"{params['kwargs']['pin']}: {' '.join(secrets.values())}"
    }
    tool = {"name": "lookup", "description": "d", "inputSchema": {"type": "object"}}
    session = await host.create_session(model=f"scripted:{script}", tools=[tool])

    result = await session.run(
        "look up",
        functionInvocationKwargs={"pin": secrets["of kwargs"], "token": secrets["of kwargs"]},
        clientKwargs={"extraHeaders": {"X-Key": secrets["of client kwargs"]}},
    )

    assert all(secret in json.dumps(result) for secret in secrets.values())  # they were said, and streamed
    host.hang_up()
    await host.wait()
    text = file.read_text()
    assert {name: secret for name, secret in secrets.items() if secret in text} == {}
    deltas = [line["←"]["params"] for line in lines_of(file) if "←" in line and "run/event" in line["←"].values()]
    streamed = "".join(event["data"]["text"] for event in deltas if event["type"] == "message.delta")
    assert streamed.startswith("It says <secret>")
    assert not any(secret in streamed for secret in secrets.values())
    assert lines_of(file)[-1] == {"exit": 0}


async def test_every_line_is_written_soon(start_host: StartHost, tmp_path: Path) -> None:
    file = tmp_path / "recorded.jsonl"
    host = await start_host(args=("--record", str(file)))
    await host.request("getState")
    await eventually(lambda: len([kind for kind in kinds_of(file) if kind == "←"]) == 2)


async def test_a_recording_that_goes_on_says_that_its_process_was_killed(start_host: StartHost, tmp_path: Path) -> None:
    file = tmp_path / "recorded.jsonl"
    first = await start_host(args=("--record", str(file)))
    await eventually(lambda: kinds_of(file)[-1:] == ["←"])
    first.kill()
    await first.wait()
    with file.open("a") as stream:
        stream.write('{"→":{"id":2,"met')

    second = await start_host(args=("--record", str(file)))
    second.hang_up()
    await second.wait()

    assert kinds_of(file) == ["#", "→", "←", "kill", "#", "→", "←", "eof", "exit"]


async def test_two_sidecars_do_not_record_to_one_file(start_host: StartHost, tmp_path: Path) -> None:
    file = tmp_path / "recorded.jsonl"
    await start_host(args=("--record", str(file)))
    await eventually(lambda: kinds_of(file)[-1:] == ["←"])

    second = await start_host(args=("--record", str(file)))

    await second.until(lambda: b"another sidecar records there" in second.stderr)
    await second.request("getState")
    assert kinds_of(file) == ["#", "→", "←"]


@pytest.mark.parametrize("obstacle", ["no folder", "another file", "a link", "a folder", "a pipe"])
async def test_a_client_is_served_where_nothing_can_be_recorded(
    obstacle: str, start_host: StartHost, tmp_path: Path
) -> None:
    file, diary = tmp_path / "recorded.jsonl", tmp_path / "diary"
    diary.write_text("dear diary\n")
    if obstacle == "no folder":
        file = tmp_path / "nowhere" / "recorded.jsonl"
    elif obstacle == "another file":
        file = diary
    elif obstacle == "a link":
        file.symlink_to(diary)
    elif obstacle == "a folder":
        file.mkdir()
    else:
        os.mkfifo(file)

    host = await start_host(args=("--record", str(file)))

    session = await host.create_session(model="scripted:echo")
    assert (await session.run("hello"))["text"] == "hello"
    assert host.stderr.count(b"nothing is recorded") == 1
    assert diary.read_text() == "dear diary\n"
    assert not (tmp_path / "nowhere").exists()


async def test_a_full_disk_ends_the_recording_and_nothing_else(start_host: StartHost, tmp_path: Path) -> None:
    file = tmp_path / "recorded.jsonl"
    most = 16_000
    host = await start_host(under=("prlimit", f"--fsize={most}"), args=("--record", str(file)))
    session = await host.create_session(model="scripted:echo")

    await session.run("one " * 200)

    await host.until(lambda: b"nothing more is recorded" in host.stderr)
    assert (await session.run("two"))["text"] == "two"
    host.hang_up()
    assert await host.wait() == 0
    assert host.stderr.count(b"\n") == 1
    assert lines_of(file)
    assert file.stat().st_size <= most


async def test_a_message_that_is_too_large_to_read_is_told_of(start_host: StartHost, tmp_path: Path) -> None:
    config, file = tmp_path / "mine.toml", tmp_path / "recorded.jsonl"
    config.write_text("[limits]\nmax_message_bytes = 65536\n")
    host = await start_host(args=("--config", str(config), "--record", str(file)))

    assert (await host.refusal("getState", {"text": "x" * 70_000})).kind == "messageTooLarge"

    await eventually(lambda: len([kind for kind in kinds_of(file) if kind == "←"]) == 2)
    comment, outline, answer = lines_of(file)[-3:]
    assert "65536" in comment["#"]
    assert outline == {"→": {"id": answer["←"]["id"], "method": "<any>"}}


async def test_commands_that_start_a_sidecar_have_it_record(tmp_path: Path) -> None:
    cli = Cli(tmp_path)

    outcome = await cli("run", "hello", "--model", "scripted:echo", "--record", "recorded.jsonl")

    assert (outcome.code, outcome.out) == (0, "hello\n")
    methods = [line["→"].get("method") for line in lines_of(tmp_path / "recorded.jsonl") if "→" in line]
    assert methods[0] == "initialize"
    assert "run" in methods
    assert mode_of(tmp_path / "recorded.jsonl") == 0o600


async def test_an_acp_agent_records_what_its_front_and_the_sidecar_say(tmp_path: Path) -> None:
    cli = Cli(tmp_path)
    hello = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": 1}}
    session = {"jsonrpc": "2.0", "id": 1, "method": "session/new", "params": {"cwd": str(tmp_path), "mcpServers": []}}

    outcome = await cli(
        "acp", "--record", "recorded.jsonl", "--store", "memory", stdin=f"{json.dumps(hello)}\n{json.dumps(session)}\n"
    )

    assert outcome.code == 0
    methods = [line["→"].get("method") for line in lines_of(tmp_path / "recorded.jsonl") if "→" in line]
    assert "createSession" in methods
    assert check(read(tmp_path / "recorded.jsonl")) == []


def test_nothing_of_it_is_imported_where_nothing_is_recorded() -> None:
    script = (
        "import sys, sidecar.app; print(*(name for name in sys.modules if 'recording' in name or 'known_sec' in name))"
    )
    assert subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout == "\n"
