"""The process boundary: stdio, handshake, end of input, signals and parents, with an echo in the program's place."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from sidecar.handshake import initialize_result
from sidecar.transport.framing import FrameParser, Framing, encode

ECHO = [sys.executable, str(Path(__file__).with_name("echo_app.py"))]
CHECKOUT = str(Path(__file__).parents[2])
Start = Callable[..., subprocess.Popen[bytes]]


@pytest.fixture
def start() -> Iterator[Start]:
    started: list[subprocess.Popen[bytes]] = []

    def begin(*arguments: str, command: list[str] = ECHO, env: dict[str, str] | None = None, **options: Any) -> Any:
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        environment = {**os.environ, "PYTHONPATH": CHECKOUT, **(env or {})}
        process = subprocess.Popen([*command, "serve", *arguments], env=environment, **{**pipes, **options})
        started.append(process)
        return process

    yield begin
    for process in started:
        process.kill()
        process.communicate()


class Talk:
    """Sends to one process, and reads what it says with a strict parser."""

    def __init__(self, process: subprocess.Popen[bytes], framing: Framing = "ndjson") -> None:
        self.process, self.framing = process, framing
        self.parser = FrameParser(framing)
        self.items: list[Any] = []

    def send(self, *messages: Any) -> None:
        assert self.process.stdin
        data = b"".join(encode(json.dumps(m, separators=(",", ":")).encode(), self.framing) for m in messages)
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def receive(self) -> Any:
        assert self.process.stdout
        while not self.items:
            data = os.read(self.process.stdout.fileno(), 65536)
            assert data, "the process closed its output"
            self.items += self.parser.feed(data)
        return json.loads(self.items.pop(0))

    def end(self) -> tuple[int, bytes]:
        """Close stdin; give the exit code and stderr. Nothing but frames may have come on stdout."""
        out, err = self.process.communicate(timeout=20)
        assert self.parser.feed(out) + self.parser.finish() == []
        return self.process.returncode, err


def request(identity: int | str, method: str = "initialize", **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": identity, "method": method, "params": params}


@pytest.mark.parametrize("framing", ["header", "ndjson"])
def test_initialize_and_what_follows_it_in_one_read_are_answered_in_order(start: Start, framing: Framing) -> None:
    talk = Talk(start(), framing)
    talk.send(request("a"), {"n": 1}, {"do": "answered"}, {"n": 2})
    answer = talk.receive()
    assert answer["id"] == "a"
    assert answer["result"]["capabilities"]["experimental"]["sidecar"]["protocolVersion"] == 1
    assert [talk.receive() for _ in range(3)] == [{"n": 1}, ["a", {}], {"n": 2}]
    assert talk.end()[0] == 0


PLAIN = {
    "no params": {"jsonrpc": "2.0", "id": 1, "method": "initialize"},
    "null params": {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": None},
    "a string id": request("x"),
    "an editor's": request(
        1,
        processId=os.getpid(),
        rootUri=None,
        workspaceFolders=[{"uri": "file:///ü", "name": "ü"}],
        capabilities={"general": {"positionEncodings": ["utf-32", "utf-8"]}, "textDocument": {"x": [1.5, None]}},
        initializationOptions={"other": {"config": 1}},
    ),
    "a host's": request(1, initializationOptions={"sidecar": {"protocolVersions": [1, 2], "features": {"mcp": {}}}}),
}
UNUSUAL = {
    "with config": request(1, initializationOptions={"sidecar": {"config": {}}}),
    "of another version": request(1, initializationOptions={"sidecar": {"protocolVersions": [2]}}),
    "ill typed": request(1, capabilities=[]),
    "ill typed inside": request(1, capabilities={"general": {"positionEncodings": ["utf-8", 5]}}),
    "deep": request(1, capabilities=json.loads("[" * 250 + "]" * 250)),
    "a repaired text": request(1, clientInfo={"name": "\ud83e"}),
    "a number out of range": request(1, clientInfo={"n": 2**63}),
    "a float id": {"jsonrpc": "2.0", "id": 1.0, "method": "initialize"},
}


@pytest.mark.parametrize("message", PLAIN.values(), ids=PLAIN.keys())
def test_a_plain_initialize_is_answered_before_the_program_is_loaded(start: Start, message: dict[str, Any]) -> None:
    talk = Talk(start(env={"ECHO_IMPORT_SECONDS": "60"}))
    talk.send(message)
    answer = talk.receive()
    instance = answer["result"]["capabilities"]["experimental"]["sidecar"]["instanceId"]
    expected = initialize_result(message.get("params") or {}, instance)
    assert answer == {"jsonrpc": "2.0", "id": message["id"], "result": expected}


def test_a_late_initialize_is_answered_while_the_program_is_loading(start: Start) -> None:
    process = start(env={"ECHO_IMPORT_SECONDS": "60"})
    assert process.stderr
    assert process.stderr.readline() == b"importing\n"
    talk = Talk(process)
    talk.send(request(1))
    assert talk.receive()["id"] == 1


@pytest.mark.parametrize("message", UNUSUAL.values(), ids=UNUSUAL.keys())
def test_an_unusual_initialize_is_left_to_the_program(start: Start, message: dict[str, Any]) -> None:
    talk = Talk(start())
    talk.send(message, {"do": "answered"})
    assert talk.receive()["id"] == message["id"]
    assert talk.receive() is None


def test_both_paths_give_the_same_answer(start: Start) -> None:
    answers: list[Any] = []
    for first in ([], [{"n": 1}]):
        talk = Talk(start())
        talk.send(*first, PLAIN["an editor's"], {"n": 2})
        received = [talk.receive() for _ in range(len(first) + 2)]
        answer = received[len(first)]
        answer["result"]["capabilities"]["experimental"]["sidecar"].pop("instanceId")
        answers.append(answer)
    assert answers[0] == answers[1]


def test_a_message_that_trickles_in_is_not_lost(start: Start) -> None:
    process = start()
    stream = encode(json.dumps(request(1)).encode(), "header") + encode(b'{"n":1}', "header")
    assert process.stdin
    for at in range(len(stream)):
        process.stdin.write(stream[at : at + 1])
        process.stdin.flush()
    talk = Talk(process, "header")
    assert talk.receive()["id"] == 1
    assert talk.receive() == {"n": 1}


@pytest.mark.parametrize("tail", [b"", b"\n"])
def test_a_script_that_ends_its_input_gets_its_answers(start: Start, tail: bytes) -> None:
    process = start()
    out, _ = process.communicate(b'{"jsonrpc":"2.0","id":1,"method":"initialize"}\n{"n":1}' + tail, timeout=20)
    first, second = out.splitlines()
    assert json.loads(first)["id"] == 1
    assert json.loads(second) == {"n": 1}
    assert process.returncode == 0


def test_nothing_but_frames_reaches_stdout(start: Start) -> None:
    talk = Talk(start())
    talk.send(request(1), {"do": "print"}, {"n": 1})
    assert [talk.receive().get("n") for _ in range(3)] == [None, None, 1]
    code, noise = talk.end()
    assert code == 0
    for line in (b"from print\n", b"without newline", b"from fd 1\n", b"from a child\n", b"read 0 bytes"):
        assert line in noise


@pytest.mark.parametrize("closed", [(2,), (0, 2), (1, 2), (0, 1, 2)])
def test_closed_standard_streams_do_not_shift_the_others(start: Start, closed: tuple[int, ...], tmp_path: Path) -> None:
    redirections = " ".join(f"{fd}{'<' if fd == 0 else '>'}&-" for fd in closed)
    script = f'"$@" {redirections}; echo $? > {tmp_path}/code'
    process = start(command=["sh", "-c", script, "sh", *ECHO])
    out, _ = process.communicate(json.dumps(request(1)).encode() + b'\n{"do":"print"}\n', timeout=20)
    assert (tmp_path / "code").read_text() == "0\n"
    assert len(out.splitlines()) == (2 if closed == (2,) else 0)


def test_input_and_output_may_be_files(start: Start, tmp_path: Path) -> None:
    (tmp_path / "in").write_bytes(json.dumps(request(1)).encode() + b'\n{"n":1}\n')
    with (tmp_path / "in").open("rb") as inbound, (tmp_path / "out").open("wb") as outbound:
        process = start(stdin=inbound, stdout=outbound)
        assert process.wait(timeout=20) == 0
    assert [json.loads(line).get("n") for line in (tmp_path / "out").read_bytes().splitlines()] == [None, 1]


def test_stdout_and_stderr_may_be_one_pipe(start: Start) -> None:
    process = start(stderr=subprocess.STDOUT)
    out, _ = process.communicate(b'{"n":1}\n', timeout=20)
    assert out == b'{"n":1}\n'


def test_a_client_that_closes_our_output_ends_us(start: Start) -> None:
    process = start()
    talk = Talk(process)
    talk.send({"n": 1})
    talk.receive()
    assert process.stdout
    process.stdout.close()
    assert process.wait(timeout=20) == 3


def test_a_dead_parent_ends_us(start: Start) -> None:
    script = "import subprocess, sys; subprocess.run(sys.argv[1:])"
    process = start(command=[sys.executable, "-c", script, *ECHO], env={"ECHO_WATCH_PARENT": "1"})
    talk = Talk(process)
    talk.send({"n": 1})
    talk.receive()
    process.send_signal(signal.SIGKILL)  # our pipes are held by the child: their end is its end
    assert process.stdout
    assert process.stderr
    assert process.stdout.read() == b""
    assert b"parent process" in process.stderr.read()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_stops_us_in_order(start: Start, number: signal.Signals) -> None:
    process = start()
    talk = Talk(process)
    talk.send({"n": 1})
    talk.receive()
    process.send_signal(number)
    assert process.wait(timeout=20) == 128 + number


def test_a_second_signal_ends_us_although_the_loop_hangs(start: Start) -> None:
    process = start()
    talk = Talk(process)
    talk.send({"do": "hang"})
    assert talk.receive() == "hanging"
    deadline = time.monotonic() + 20
    while process.poll() is None and time.monotonic() < deadline:
        process.send_signal(signal.SIGTERM)
        time.sleep(0.05)
    assert process.returncode == 128 + signal.SIGTERM


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--frobnicate"], "unknown argument '--frobnicate'"),
        (["--framing", "xml"], "--framing is one of auto, header, ndjson"),
        (["--eof-grace=soon"], "--eof-grace needs a number"),
        (["--config"], "--config needs a value"),
        (["extra"], "unknown argument 'extra'"),
    ],
)
def test_a_bad_flag_is_one_line_and_code_2(start: Start, arguments: list[str], complaint: str) -> None:
    process = start(*arguments)
    out, err = process.communicate(timeout=20)
    assert (process.returncode, out) == (2, b"")
    assert complaint in err.decode()
    assert err.count(b"\n") == 1


def test_what_language_clients_append_is_taken(start: Start) -> None:
    talk = Talk(start("--stdio", "--clientProcessId=1", "--framing", "header"), "header")
    talk.send({"n": 1})
    assert talk.receive() == {"n": 1}


def test_help_goes_to_stdout(start: Start) -> None:
    process = start("--help")
    assert process.communicate(timeout=20)[0].startswith(b"usage: agent-sidecar serve")
    assert process.returncode == 0


@pytest.mark.parametrize("how", [["-m", "sidecar"], ["-I", "-m", "sidecar"]])
def test_a_hostile_workspace_is_not_imported(tmp_path: Path, how: list[str]) -> None:
    for name in ("protocol", "providers", "typing", "json"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text("import os; os.write(2, b'pwned'); os._exit(66)")
    process = subprocess.run(
        [sys.executable, *how, "serve", "--store", "memory"],
        cwd=tmp_path,
        env={name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYTHONSAFEPATH")},
        input=json.dumps(request(1)).encode() + b"\n",
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert b"pwned" not in process.stderr
    assert json.loads(process.stdout)["id"] == 1
    assert process.returncode == 0


def test_the_handshake_imports_nothing_heavy() -> None:
    script = "import sidecar.handshake, sidecar.options, sys; print(*sorted(sys.modules))"
    loaded = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=CHECKOUT)
    heavy = {"asyncio", "pydantic", "pydantic_core", "argparse", "pygls", "inspect", "dataclasses", "logging", "socket"}
    assert not heavy & set(loaded.stdout.split())
