"""`agent-sidecar conformance`: right drivers pass, in rough weather too; each wrong one is found out, by its fault."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from protocol.version import VERSION
from sidecar.cli.conformance.conversations import Conversation, conversations
from sidecar.cli.conformance.examination import Outcome, examine
from sidecar.cli.conformance.place import Weather, place
from tests.bench.handles import PATIENCE_S

DRIVERS = Path(__file__).parents[1] / "conformance"
NODE_CLIENT = Path(__file__).parents[2] / "clients" / "node"
MODULES = Path(sys.prefix) / "editors"
"""Where `.ci/run` installs packages of Node."""

ALL = {conversation.name: conversation for conversation in conversations()}
PLAYED = sorted(name for name, conversation in ALL.items() if conversation.obstacle is None)
PYTHON = (sys.executable, str(DRIVERS / "python_driver.py"))
PLAIN = (sys.executable, str(DRIVERS / "plain_driver.py"))


def wrong(fault: str) -> tuple[str, ...]:
    return sys.executable, str(DRIVERS / "wrong_driver.py"), fault


async def played(name: str, weather: Weather, *command: str) -> Outcome:
    return await examine(ALL[name], command, weather, PATIENCE_S)


def found(outcome: Outcome) -> str:
    return "\n".join(map(str, outcome.findings))


@pytest.mark.parametrize("weather", ["calm", "rough"])
@pytest.mark.parametrize("name", PLAYED)
async def test_a_plain_client_plays_every_conversation(name: str, weather: Weather) -> None:
    assert found(await played(name, weather, *PLAIN)) == ""


@pytest.mark.parametrize("name", PLAYED)
async def test_the_python_client_bears_rough_weather(name: str) -> None:
    assert found(await played(name, "rough", *PYTHON)) == ""


@pytest.fixture(scope="module")
def node_driver(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    """The driver of the Node client, in a folder where that is installed."""
    node = shutil.which("node")
    if node is None or not (MODULES / "client" / "node_modules" / "typescript").is_dir():
        pytest.skip(f"no node here, or no typescript in {MODULES}; .ci/run installs it")
    folder = tmp_path_factory.mktemp("node")
    client = folder / "node_modules" / "agent-sidecar-client"
    shutil.copytree(NODE_CLIENT, client, ignore=shutil.ignore_patterns("node_modules", "dist", "build"))
    (client / "node_modules").symlink_to(MODULES / "client" / "node_modules")
    subprocess.run([client / "node_modules" / ".bin" / "tsc"], cwd=client, check=True, timeout=100)
    return node, shutil.copy(DRIVERS / "node_driver.mjs", folder)


@pytest.mark.parametrize("name", PLAYED)
async def test_the_node_client_bears_rough_weather(name: str, node_driver: tuple[str, str]) -> None:
    assert found(await played(name, "rough", *node_driver)) == ""


@pytest.mark.parametrize("name", ["approval", "cancelled_run", "crash"])
async def test_vscode_jsonrpc_as_it_is_bears_rough_weather(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    node = shutil.which("node")
    if node is None or not (MODULES / "node_modules" / "vscode-jsonrpc").is_dir():
        pytest.skip(f"no node here, or no vscode-jsonrpc in {MODULES}; .ci/run installs it")
    monkeypatch.setenv("NODE_PATH", str(MODULES / "node_modules"))
    assert found(await played(name, "rough", node, str(DRIVERS / "vscode_jsonrpc_driver.cjs"))) == ""


@pytest.mark.parametrize(
    ("fault", "name", "complaint"),
    [
        ("AnswersTwice", "approval", r"client: line \d+: 'host/requestApproval' of line \d+ is answered a second time"),
        ("ReusesIds", "script", r"client: line \d+: the id 5 is in use: 'createSession' has not been answered"),
        ("AsksOnAfterShutdown", "script", r"client: line \d+: 'getState' comes after 'shutdown'; only 'exit' may"),
        ("Swallows", "script", r"client: line \d+: \.seq: expected \d+, but came \d+"),
        ("Reorders", "script", r"client: line 8: \.seq: expected 1, but came 2"),
        ("AnswersEarly", "script", r"the answer to the run 'r' is handed on before its 'run\.completed'"),
        ("Repeats", "script", r"client: an event is handed on that was not sent, or not then: .*run\.completed"),
        ("SaysAnAnswerTwice", "script", r"client: call 1 has 2 answers"),
        ("ChangesReplays", "failed_run", r"event 1 of \d+ in the replay of 's' is not what it was live"),
        ("Chats", "script", r"it says what is none of a driver's lines: here we go"),
        ("DoesNotInitialize", "script", r"'initialize' has to be the first message; this is 'createSession'"),
        ("SendsArrays", "script", r"client: line \d+: the params of 'createSession' are no object"),
        ("ForgetsTheVersion", "script", r'client: line 1: this is no JSON-RPC 2\.0 message'),
        ("Kills", "script", r"line \d+ of the conversation: the sidecar ended with 143, not 0"),
        ("SaysDeepThings", "script", r"it says what is none of a driver's lines: \[{200}$"),
        ("Floods", "script", r"it is not there, and the driver says more than 20000 lines"),
        ("SaysNonsenseOfASession", "script", r"the answer to 'listSessions' is handed on otherwise than it came"),
        ("Vanishes", "script", r"the report that the sidecar has ended: it is not there, and the driver has ended"),
    ],
)  # fmt: skip
async def test_a_wrong_client_is_found_out(fault: str, name: str, complaint: str) -> None:
    assert re.search(complaint, found(await examine(ALL[name], wrong(fault), "calm", 5.0)))


async def test_a_sidecar_that_the_conversation_ended_is_not_ended_again() -> None:
    (finding,) = (await examine(ALL["script"], wrong("Chats"), "calm", 5.0)).findings

    assert str(finding) == "client: it says what is none of a driver's lines: here we go"


@pytest.mark.parametrize(
    ("fault", "complaint"),
    [
        ("Silent", r"client: line \d+: 'x-weather/ask' is never answered"),
        ("Agreeable", r"the unknown method 'x-weather/ask' has to be answered with -32601"),
        ("TurnsIdsIntoNumbers", r'answers nothing that was asked: .*the id was "7001", and has to come back as it is'),
        ("DiesOfAnUnknownEvent", r"the driver has ended \(exit code 3\)"),
        ("RefusesUnknownFields", r"it has not come within 1 s"),
        ("TrustsInReads", r"the driver has ended \(exit code 4\)"),
    ],
)
async def test_what_a_client_cannot_bear_shows_in_rough_weather_only(fault: str, complaint: str) -> None:
    patience = 1.0 if "within 1 s" in complaint else 20.0
    assert re.search(complaint, found(await examine(ALL["script"], wrong(fault), "rough", patience)))
    if fault == "TrustsInReads":  # a pipe may always cut
        return
    assert found(await played("script", "calm", *wrong(fault))) == ""


# ---- the command ----------------------------------------------------------------------------------------------------


def conformance(*arguments: str | Path, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    program = Path(sys.executable).with_name("agent-sidecar")
    return subprocess.run(
        [program, "conformance", *arguments], cwd=cwd, capture_output=True, text=True, timeout=100, check=False
    )


def test_the_command_says_a_line_a_conversation_and_a_count(tmp_path: Path) -> None:
    script = os.path.relpath(PLAIN[1], tmp_path)
    options = ("--only", "script", "--only", "bad_messages", "--logs", tmp_path / "logs")

    ran = conformance(*options, "--", sys.executable, script, cwd=tmp_path)

    assert ran.stdout.splitlines() == [
        f"\N{EN DASH} bad_messages: {ALL['bad_messages'].obstacle}",
        "✓ script",
        "1 kept, 0 broken, 1 not played",
    ]
    assert (ran.returncode, ran.stderr) == (0, "")
    assert sorted(log.name for log in (tmp_path / "logs").iterdir()) == ["script.calm.jsonl", "script.rough.jsonl"]
    kept = conformance("--log", tmp_path / "logs" / "script.rough.jsonl")
    assert (kept.returncode, kept.stdout) == (0, "all rules are kept\n")


def test_what_stands_in_for_the_sidecar_is_one_for_other_commands_too() -> None:
    with place("calm") as where:
        told = subprocess.run([where.executable, "--version"], capture_output=True, text=True, timeout=60, check=True)

    assert told.stdout == f"agent-sidecar {VERSION}\n"


def test_what_is_broken_is_told_to_programs_too() -> None:
    ran = conformance("--json", "--only", "script", "--", *wrong("Reorders"))

    told: dict[str, Any] = json.loads(ran.stdout)
    assert ran.returncode == 1
    assert (told["kept"], told["broken"], told["notPlayed"]) == (0, 1, 0)
    (conversation,) = told["conversations"]
    assert (conversation["name"], conversation["status"]) == ("script", "broken")
    (finding,) = conversation["findings"]
    assert (finding["weather"], finding["side"]) == ("calm", "client")


def test_a_record_with_faults_is_told_with_its_lines(tmp_path: Path) -> None:
    log = tmp_path / "record.jsonl"
    log.write_text('{"→": {"id": 1, "method": "getState"}}\n{"eof": true}\n', encoding="utf-8")

    plain, told = conformance("--log", log), conformance("--json", "--log", log)

    complaint = "'initialize' has to be the first message; this is 'getState'"
    assert plain.stdout.splitlines() == [f"client: line 1: {complaint}", "1 against the rules"]
    assert json.loads(told.stdout) == {"findings": [{"side": "client", "text": complaint, "line": 1}], "ended": True}
    assert (plain.returncode, told.returncode) == (1, 1)


def test_a_record_that_stops_is_no_fault_and_is_told(tmp_path: Path) -> None:
    log = tmp_path / "record.jsonl"
    log.write_text('{"→": {"id": 1, "method": "initialize"}}\n{"#": "stopped"}\n', encoding="utf-8")

    plain, told = conformance("--log", log), conformance("--json", "--log", log)

    assert plain.stdout.splitlines() == [
        "the record ends in the middle of a conversation: nobody is blamed for what is not there",
        "all rules are kept",
    ]
    assert json.loads(told.stdout) == {"findings": [], "ended": False}
    assert (plain.returncode, told.returncode) == (0, 0)


def test_a_record_that_cannot_be_read_is_wrong_usage_and_told_with_the_line(tmp_path: Path) -> None:
    log = tmp_path / "record.jsonl"
    log.write_text('{"#": 1}\n' + "[" * 100_000, encoding="utf-8")

    ran = conformance("--log", log)

    assert (ran.returncode, ran.stdout) == (2, "")
    assert "record.jsonl:2: a line is a JSON object: it is nested deeper than 256 levels" in ran.stderr
    assert "Traceback" not in ran.stderr


HEED_SIGNALS = """
import os, signal, sys
for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
    signal.signal(number, signal.SIG_DFL)
os.execv(sys.argv[1], sys.argv[1:])
"""
"""Starts a command that does not inherit what a test runner in the background was told to ignore."""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_it_and_leaves_neither_drivers_nor_folders(number: signal.Signals, tmp_path: Path) -> None:
    folders, pids = tmp_path / "folders", tmp_path / "pids"
    folders.mkdir()
    os.mkfifo(pids)
    driver = ("sh", "-c", f"trap '' TERM HUP INT; echo $$ > {pids}; exec sleep 100")
    program = Path(sys.executable).with_name("agent-sidecar")
    command = [program, "conformance", "--only", "script", "--timeout", "90", "--", *driver]
    started = subprocess.Popen(
        [sys.executable, "-c", HEED_SIGNALS, *command],
        env={**os.environ, "TMPDIR": str(folders)},
        stderr=subprocess.PIPE,
        text=True,
    )
    pid = int(pids.read_text())  # which waits for the driver

    started.send_signal(number)
    told = started.communicate(timeout=30)[1]

    assert (started.returncode, told) == (128 + number, "agent-sidecar: stopped\n")
    assert list(folders.iterdir()) == []
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ((), "say what to examine"),
        (("--list", "--", "true"), "say what to examine"),
        (("--only", "nothing", "--", "true"), "there is no conversation 'nothing'"),
        (("--", "no-such-program"), "there is no program 'no-such-program'"),
        (("--log", "no-such-file"), "cannot be read"),
        (("--store", "memory", "--list"), "unrecognized arguments: --store"),
        (("--jobs", "0", "--list"), "--jobs is 1 or more"),
    ],
)
def test_wrong_usage_is_exit_code_2(arguments: tuple[str, ...], complaint: str) -> None:
    ran = conformance(*arguments)

    assert ran.returncode == 2
    assert complaint in ran.stderr


def test_a_reader_that_goes_away_ends_it_without_a_word() -> None:
    command = f"set -o pipefail; {sys.executable} -m sidecar conformance --only script --only crash -- "
    ran = subprocess.run(
        ["bash", "-c", f"{command} {sys.executable} {DRIVERS / 'plain_driver.py'} | true"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (ran.returncode, ran.stderr) == (1, "")


def test_the_list_says_what_is_played_and_why_the_rest_is_not() -> None:
    told = json.loads(conformance("--list", "--json").stdout)["conversations"]

    assert [each["name"] for each in told] == sorted(ALL)
    assert {each["name"] for each in told if "reason" not in each} == set(PLAYED)
    assert {name for name in ALL if name not in PLAYED} == {"bad_messages", "editor"}
    assert all(isinstance(each, Conversation) and each.summary for each in ALL.values())
