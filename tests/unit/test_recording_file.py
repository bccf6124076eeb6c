"""How a recording gets into its file: whole lines, in order, by a thread that the loop never waits for."""

import errno
import json
import logging
import os
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from protocol.base import Json
from sidecar.config.endpoints import EndpointConfig
from sidecar.config.known_secrets import Secrets
from sidecar.models.openai_key import KeySource
from sidecar.server.recording import file as recording_file
from sidecar.server.recording.file import Recording
from sidecar.server.recording.opening import NotRecorded
from sidecar.transport.framing import Fault


class HeldSecrets(Secrets):
    """Lets nothing through until it is told to."""

    def __init__(self) -> None:
        super().__init__()
        self.go = threading.Event()

    def clean_json(self, value: Json) -> Json:
        self.go.wait(10)
        return super().clean_json(value)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "recorded.jsonl"


@pytest.fixture
def held() -> Iterator[HeldSecrets]:
    secrets = HeldSecrets()
    yield secrets
    secrets.go.set()


def answer(number: int, text: str = "") -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": number, "result": text}).encode()


def lines_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_messages_stand_in_the_order_in_which_they_went(path: Path) -> None:
    recording = Recording(path, Secrets())
    for number in range(500):
        recording.received(b'{"jsonrpc":"2.0","id":%d,"method":"m"}' % number)
        recording.sent(answer(number))
    recording.eof()
    recording.close(0)

    _, *lines, eof, end = lines_of(path)
    assert [line.get("→", line.get("←"))["id"] for line in lines] == [number for number in range(500) for _ in "ab"]
    assert (eof, end) == ({"eof": True}, {"exit": 0})


def test_what_the_thread_cannot_keep_up_with_is_left_out_and_counted(
    path: Path, held: HeldSecrets, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recording_file, "MOST_WAITING", 10_000)
    recording = Recording(path, held)
    began = time.monotonic()

    for number in range(100):
        recording.sent(answer(number, "x" * 1000))

    assert time.monotonic() - began < 5
    held.go.set()
    recording.note("later")
    recording.close(0)
    _, *lines = lines_of(path)
    kept = [line["←"]["id"] for line in lines if "←" in line]
    assert kept == list(range(len(kept)))
    assert 0 < len(kept) < 15
    assert lines[len(kept)]["#"].startswith(f"{100 - len(kept)} messages are missing here")
    assert lines[len(kept) + 1 :] == [{"#": "later"}, {"exit": 0}]


def test_one_message_over_the_bound_is_recorded_all_the_same(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recording_file, "MOST_WAITING", 100)
    recording = Recording(path, Secrets())
    recording.sent(answer(1, "x" * 1000))
    recording.close(0)
    assert lines_of(path)[1] == {"←": {"id": 1, "result": "x" * 1000}}


def test_the_end_of_a_process_waits_for_no_recording_and_says_what_is_missing(
    path: Path, held: HeldSecrets, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(recording_file, "CLOSE_S", 0.01)
    recording = Recording(path, held)
    recording.sent(answer(1))
    began = time.monotonic()
    recording.close(7)
    assert time.monotonic() - began < 2
    held.go.set()
    for thread in threading.enumerate():
        if thread.name == "sidecar-recorder":
            thread.join(10)
    _, missing, end = lines_of(path)
    assert "missing" in missing["#"]
    assert end == {"exit": 7}
    assert "the end of the recording" in caplog.text


def test_after_a_failure_nothing_is_kept(
    path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def full(descriptor: int, data: bytes) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(recording_file.os, "write", full)
    recording = Recording(path, Secrets())
    recording.close(0)

    body = answer(1, "x" * 1000)
    before = sys.getrefcount(body)
    recording.sent(body)

    assert sys.getrefcount(body) == before
    assert caplog.text.count(f"nothing more is recorded in {path}") == 1
    assert path.read_bytes() == b""


def test_a_message_that_cannot_be_handled_is_left_out(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    class Broken(Secrets):
        def clean_json(self, value: Json) -> Json:
            if value == "canary":
                raise ValueError(value)
            return super().clean_json(value)

    recording = Recording(path, Broken())
    with caplog.at_level(logging.WARNING, "agent-sidecar"):
        recording.sent(answer(1, "canary"))
        recording.sent(answer(2))
        recording.close(0)

    _, missing, other, _ = lines_of(path)
    assert "missing" in missing["#"]
    assert other == {"←": {"id": 2, "result": ""}}
    assert "canary" not in path.read_text() + caplog.text
    assert "ValueError" in caplog.text


def test_what_nobody_reads_any_more_is_not_recorded(path: Path) -> None:
    recording = Recording(path, Secrets())
    recording.gone("the client closed its end")
    recording.sent(answer(1))
    recording.close(1)
    assert [next(iter(line)) for line in lines_of(path)] == ["#", "#", "exit"]


def test_a_frame_that_is_broken_is_a_comment(path: Path) -> None:
    recording = Recording(path, Secrets())
    recording.received(Fault("badHeader", "no length"))
    recording.close(0)
    assert lines_of(path)[1] == {"#": "the next message could not be read: no length"}


def test_a_file_of_wider_permissions_is_narrowed(path: Path) -> None:
    Recording(path, Secrets()).close(0)
    path.chmod(0o644)
    Recording(path, Secrets()).close(0)
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_file_that_is_refused_keeps_its_mode(path: Path) -> None:
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    with pytest.raises(NotRecorded, match="something else"):
        Recording(path, Secrets())
    assert path.stat().st_mode & 0o777 == 0o755


def test_a_recording_that_stopped_early_is_not_said_to_have_been_killed(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write, most = os.write, 3000

    def full(descriptor: int, data: bytes) -> int:
        room = most - os.fstat(descriptor).st_size
        if room <= 0:
            raise OSError(errno.ENOSPC, "No space left on device")
        return write(descriptor, data[:room])

    monkeypatch.setattr(recording_file.os, "write", full)
    recording = Recording(path, Secrets())
    for number in range(100):
        recording.sent(answer(number, "x" * 100))
    recording.close(0)
    assert path.stat().st_size <= most
    monkeypatch.undo()
    Recording(path, Secrets()).close(0)

    kinds = [next(iter(line)) for line in lines_of(path)]
    assert "kill" not in kinds
    assert {"#": "stopped: No space left on device"} in lines_of(path)
    assert kinds[-2:] == ["#", "exit"]


async def test_a_key_that_a_command_prints_is_known_before_it_is_used(path: Path) -> None:
    recording = Recording(path, Secrets())
    endpoint = EndpointConfig(api_key_command=(sys.executable, "-c", "print('canary-value-1')"))
    key = await KeySource("e", endpoint, is_required=True, environ={}, secrets={}).key()
    recording.sent(answer(1, f"it is {key}"))
    recording.close(0)
    assert lines_of(path)[1] == {"←": {"id": 1, "result": "it is <secret>"}}


def test_a_long_line_that_was_cut_is_removed(path: Path) -> None:
    Recording(path, Secrets()).close(0)
    before = lines_of(path)
    with path.open("a") as stream:
        stream.write('{"→":"' + "x" * 200_000)
    Recording(path, Secrets()).close(0)
    assert lines_of(path)[:2] == before
    assert [next(iter(line)) for line in lines_of(path)] == ["#", "exit", "#", "exit"]


def test_a_folder_that_is_missing_is_named(tmp_path: Path) -> None:
    with pytest.raises(NotRecorded, match=r"there is no folder .*nowhere; create it first"):
        Recording(tmp_path / "nowhere" / "file", Secrets())
