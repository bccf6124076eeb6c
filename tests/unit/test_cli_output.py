"""What the command line writes for people, on a terminal and elsewhere."""

import argparse
import io
import sys
from collections.abc import Callable

import pytest

from sidecar.cli import output, setup
from sidecar.cli.traffic import Traffic, describe_event
from sidecar.models import setup as models_setup
from sidecar.models.setup import Progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    for variable in ("NO_COLOR", "FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    return Terminal()


def test_a_model_cannot_drive_the_terminal(terminal: Terminal) -> None:
    output.Output(terminal).write("one\x1b[2Jtwo\x07\tthree [bold]\n")
    assert terminal.getvalue() == "one[2Jtwo       three [bold]\n"


def test_text_is_coloured_on_a_terminal_only(terminal: Terminal) -> None:
    output.Output(terminal).line("ready", "green")
    assert terminal.getvalue() == "\x1b[32mready\x1b[0m\n"
    pipe = io.StringIO()
    output.Output(pipe).line("ready", "green")
    assert pipe.getvalue() == "ready\n"


def test_a_long_line_is_not_wrapped_by_us(terminal: Terminal) -> None:
    output.Output(terminal).write("word " * 100)
    assert terminal.getvalue() == "word " * 100


def test_traffic_names_the_request_that_an_answer_belongs_to() -> None:
    seen = io.StringIO()
    traffic = Traffic(output.Output(seen))
    traffic("sent", {"id": 1, "method": "getHistory", "params": {"sessionId": "s"}})
    traffic("sent", {"method": "initialized", "params": {}})
    traffic("received", {"id": 1, "result": {"messages": [{}, {}]}})
    traffic("sent", {"id": 2, "method": "run", "params": {"input": "x" * 5000}})
    traffic("received", {"id": 2, "error": {"code": 4011, "message": "no such model"}})
    asked, notified, answered, long, refused = seen.getvalue().splitlines()
    assert asked == '  → getHistory {"sessionId": "s"}'
    assert notified == "  → initialized"
    assert answered.startswith("  ← answer to getHistory in ")
    assert answered.endswith(": 2 messages")
    assert long.endswith("x…")
    assert "error to run" in refused
    assert "no such model" in refused


def test_an_event_is_told_in_a_few_words() -> None:
    added = {"instructions": 2, "messages": 0, "tools": 1, "middleware": 0, "tokens": 49}
    data = {"sourceId": "user_info", "type": "structured_memory", "phase": "beforeRun", "durationMs": 0.4}
    event = {"seq": 4, "type": "provider.completed", "data": {**data, "added": added}}
    assert describe_event(event) == (
        " 4 provider.completed user_info beforeRun: put in 2 instructions, 1 tools (~49 tokens), 0 ms"
    )
    assert describe_event({"seq": 4, "sub": 1, "type": "message.delta", "data": {"text": "x"}}) == ""
    assert describe_event({"seq": 5, "type": "of.tomorrow", "data": {"a": 1}}) == ' 5 of.tomorrow {"a": 1}'


async def _install(report: Callable[[Progress], None]) -> None:
    report(Progress("looking", "looking for it"))
    report(Progress("installing", "installing [two] packages"))
    report(Progress("installing", "12.3/98.4 MB", 0.125))
    report(Progress("done", "it is ready"))


def test_setup_writes_one_line_a_step_where_no_terminal_is(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(models_setup, "install_embedded", _install)
    assert setup.COMMAND.execute(argparse.Namespace(what="embedded")) == 0
    assert capsys.readouterr().out == "looking for it\ninstalling [two] packages\nit is ready\n"


def test_setup_ends_with_its_last_word_on_a_terminal(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(models_setup, "install_embedded", _install)
    monkeypatch.setattr(sys, "stdout", terminal)
    assert setup.COMMAND.execute(argparse.Namespace(what="embedded")) == 0
    assert "it is ready" in terminal.getvalue().splitlines()[-2]
