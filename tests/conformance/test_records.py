"""What `serve --record` writes is held against the rules as it is: what was too long or lost is nobody's fault."""

import json
from pathlib import Path
from typing import Any

import pytest

from protocol.base import Json
from sidecar.cli.conformance.conversations import is_ended, read
from sidecar.cli.conformance.parsing import parse
from sidecar.cli.conformance.rules import check
from sidecar.config.known_secrets import Secrets
from sidecar.server.recording.file import Recording

LONG = "x" * (1 << 20)


class Trips(Secrets):
    """Cannot handle a message with this in it."""

    def clean_json(self, value: Json) -> Json:
        if value == "canary":
            raise ValueError(value)
        return super().clean_json(value)


class Recorded:
    """A recording that is written by hand."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.recording = Recording(path, Trips())
        self.sent(id=1, method="initialize", params={})
        self.came(id=1, result={})

    def sent(self, **message: Any) -> None:
        self.recording.received(json.dumps({"jsonrpc": "2.0", **message}).encode())

    def came(self, **message: Any) -> None:
        self.recording.sent(json.dumps({"jsonrpc": "2.0", **message}).encode())

    def findings(self) -> list[str]:
        self.sent(id="end", method="shutdown")
        self.came(id="end", result=None)
        self.sent(method="exit")
        self.recording.close(0)
        return [str(finding) for finding in check(read(self.path))]


@pytest.fixture
def recorded(tmp_path: Path) -> Recorded:
    return Recorded(tmp_path / "r.jsonl")


def event(seq: int) -> dict[str, Any]:
    return {"sessionId": "s", "seq": seq, "prevSeq": seq - 1, "type": "x", "data": {"long": LONG}}


@pytest.mark.parametrize("named", [{"sessionId": "s"}, {}])
def test_a_session_that_was_too_long_to_be_recorded_is_open_all_the_same(
    recorded: Recorded, named: dict[str, Any]
) -> None:
    recorded.sent(id=2, method="createSession", params={**named, "metadata": {"long": LONG}})
    recorded.came(id=2, result={"session": {"sessionId": "s", "lastSeq": 0, "metadata": {"long": LONG}}})
    recorded.came(method="run/event", params=event(1))
    recorded.came(method="run/event", params=event(2))

    assert recorded.findings() == []
    assert '"session":"<any>"' in recorded.path.read_text()


@pytest.mark.parametrize("answer", [{"result": [LONG]}, {"result": {str(n): n for n in range(100_000)}}])
def test_an_answer_that_was_too_long_is_an_answer(recorded: Recorded, answer: dict[str, Any]) -> None:
    recorded.sent(id=2, method="run", params={"sessionId": "s", "runId": "r"})
    recorded.came(id=2, **answer)

    assert recorded.findings() == []
    assert '"result":"<any>"' in recorded.path.read_text()


def test_a_message_that_could_not_be_recorded_is_not_missed(recorded: Recorded) -> None:
    recorded.sent(id=2, method="getState", params={"a": "canary"})
    recorded.came(id=2, result={})

    assert recorded.findings() == []


def test_a_record_says_whether_its_end_is_there(recorded: Recorded) -> None:
    recorded.findings()
    lines = read(recorded.path)

    assert is_ended(lines)
    assert is_ended([])
    assert not is_ended(lines[:-1])


# ---- what cannot be read --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        (b"\xff", "a line is a JSON object: 'utf-8' codec"),
        (b"[" * 100_000, "a line is a JSON object: it is nested deeper than 256 levels"),
        (b'{"#": ' + b"[" * 300 + b"]" * 300 + b"}", "a line is a JSON object: it is nested deeper than 256 levels"),
        (b'{"\xe2\x86\x90": {"method": "run/ev', "a line is a JSON object: Unterminated string"),
        (b"[]", "a line has one key, of #"),
        (b'{"exit": "x"}', "the value of 'exit' is a number"),
        (b'{"kill": true}', "the value of 'kill' is a number"),
    ],
)
def test_a_line_that_cannot_be_read_is_named(tmp_path: Path, line: bytes, complaint: str) -> None:
    path = tmp_path / "log"
    path.write_bytes(b'{"#": 1}\n\n' + line)

    with pytest.raises(ValueError, match="log:3: ") as raised:
        read(path)

    assert complaint in str(raised.value)


def test_what_a_sidecar_takes_is_not_too_deep() -> None:
    text = "[" * 201 + "]" * 201

    assert json.dumps(parse(text)) == text
