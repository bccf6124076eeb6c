"""The hosts in shell, Go, Java and C do the same: built and run as their page says, asked, stopped, let down."""

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

from tests.bench.doc_pages import broken_links, sections
from tests.e2e.terminal import CTRL_C, Terminal

FOLDER: Final = Path(__file__).parents[2] / "examples" / "hosts"
PAGE: Final = {section.name.removeprefix("README.md: "): section for section in sections(FOLDER / "README.md")}
GSON: Final = "/usr/share/java/gson.jar"


@dataclass(frozen=True, slots=True)
class Language:
    """One of the hosts: what its page calls it, how it is started, what it needs, and how its own people check it."""

    heading: str
    command: tuple[str, ...]
    check: str
    programs: tuple[str, ...]
    files: tuple[str, ...] = ()


LANGUAGES: Final = {
    "sh": Language("In shell", ("sh/host.sh",), "shellcheck --severity=warning sh/host.sh", ("jq",)),
    "go": Language("In Go", ("build/go-host",), 'test -z "$(gofmt -l .)" && cd go && go vet', ("go",)),
    "java": Language(
        "In Java",
        ("java", "-cp", f"build/java:{GSON}", "Host"),
        f"javac -Xlint:all -Werror -cp {GSON} -d build/checked java/*.java",
        ("javac", "java"),
        (GSON,),
    ),
    "c": Language(
        "In C",
        ("build/c-host",),
        "cc -std=c11 -Wall -Wextra -Wpedantic -Wconversion -Werror -O2 -fsyntax-only c/*.c",
        ("cc",),
        ("/usr/include/cjson/cJSON.h",),
    ),
}

# Answers `initialize` with its file. Asked to run, it does one of: "die"; "fail" with that file's text; "say" it in
# every place; "ask" for consent to it, and offer no choice; tell the "ids" that it was given. Or, so many times:
# speak as a later version might, and not read what it is answered before it has sent everything.
ODD_SIDECAR: Final = """
import json, sys
from pathlib import Path
source, sink, asked = sys.stdin.buffer, sys.stdout.buffer, sys.argv[1]
server, said = json.loads(Path(__file__).with_suffix(".json").read_text())

def receive():
    line = source.readline()
    if not line:
        sys.exit(4)
    if line[:1] == b"{":
        return json.loads(line), True
    while source.readline().strip():
        pass
    return json.loads(source.read(int(line.split(b":")[1]))), False

def send(**message):
    body = json.dumps({"jsonrpc": "2.0", "later": {"id": 7}, **message}).encode()
    head = b"Content-Type: application/vscode-jsonrpc; charset=utf-8\\r\\ncontent-length:%d\\r\\n\\r\\n" % len(body)
    frame = body + b"\\n" if lines else head + body
    for start in range(0, len(frame), 7 if len(frame) < 200 else len(frame)):
        sink.write(frame[start:start + 7 if len(frame) < 200 else None])
        sink.flush()

def event(type, **data):
    send(method="run/event", params={"sessionId": "s", "seq": 1, "type": type, "data": data})

methods, ids = [], []
while "exit" not in methods:
    message, lines = receive()
    methods.append(message["method"])
    if message["method"] == "initialize":
        send(id=message["id"], result=server)
    if message["method"] == "createSession":
        ids.append(message["params"].get("sessionId"))
        send(id=message["id"], result={"session": {"sessionId": "s"}})
    if message["method"] == "shutdown":
        send(id=message["id"], result=None)
    if message["method"] != "run":
        continue
    ids += message["params"].get("sessionId"), message["params"].get("runId")
    story = said
    if asked == "die":
        sys.exit(3)
    elif asked == "fail":
        send(id=message["id"], error={"code": 1, "message": said, "data": {"kind": "odd"}})
        continue
    elif asked == "ids":
        story = json.dumps(ids)
    elif asked == "say":
        event("message.delta", text=said)
        event("tool.completed", name=said, status="completed")
    elif asked == "ask":
        call = {"name": "save_note", "arguments": {"text": said}}
        send(id="q", method="host/requestApproval", params={"title": said, "toolCall": call, "options": []})
        story = json.dumps(receive()[0]["result"])
    else:
        send(method="session/painted", params={"colour": "red"})
        send(method="run/event", params={"type": "later.than.all", "data": "text"})
        event("later.with.names", text=7, name=[], status={})
        event("message.delta", text="first line\\nsecond line", later=True)
        event("message.completed", role="assistant", content=[{"type": "hologram"}])
        names = ["%d%s" % (number, "x" * 3000) for number in range(int(asked))]
        for name in names:
            send(id=name, method="host/dance", params={"steps": 3})
        answers = {}
        while len(answers) < len(names):
            answer = receive()[0]
            answers[answer["id"]] = answer["error"]["code"]
        story = "refused" if answers == dict.fromkeys(names, -32601) else repr(answers)
    event("run.completed", status="completed")
    send(id=message["id"], result={"status": "completed", "text": story, "later": 1})
"""


def server(name: str = "agent-sidecar", version: int = 1, block: str = "sidecar") -> dict[str, object]:
    """What such a sidecar answers to `initialize`."""
    return {"serverInfo": {"name": name}, "capabilities": {"experimental": {block: {"protocolVersion": version}}}}


# What a terminal obeys or does not show, each in brackets: ESC, CR, BEL, DEL, CSI, soft hyphen, a zero-width space,
# an override of the direction, a separator of lines, an isolate, a byte order mark, a tag.
HIDDEN: Final = "".join(f"<{hidden}>" for hidden in "\x1b\r\a\x7f\x9b\xad\u200b\u202e\u2028\u2066\ufeff\U000e0041")
SHOWN: Final = r"(<[\\%][\\%\w]+>)" f"{{{len(HIDDEN) // 3}}}"


@dataclass(frozen=True, slots=True)
class Host:
    """A built host, in a folder and an environment of its own."""

    language: Language
    folder: Path
    env: dict[str, str]

    def run(self, *arguments: str, said: str = "", **env: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*self.language.command, *arguments],
            cwd=self.folder,
            env={**self.env, **env},
            input=said,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )


def environment(folder: Path) -> dict[str, str]:
    """The user's, without what would change a run; the installed command comes first."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("OPENAI_", "SIDECAR_"))}
    own = {name: str(folder) for name in ("XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME")}
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return {**kept, **own, "PATH": path, "LC_ALL": "C.UTF-8", "GOPROXY": "off", "GOFLAGS": "-mod=mod"}


def typed(command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """What a reader of the page types."""
    return subprocess.run(
        ["sh", "-eu", "-c", command],
        cwd=folder,
        env=environment(folder),
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )


@pytest.fixture(scope="session", params=LANGUAGES)
def host(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Host:
    """Each of them, built once, as the page says, in a copy of the folder."""
    language = LANGUAGES[request.param]
    missing = [program for program in language.programs if shutil.which(program) is None]
    missing += [file for file in language.files if not Path(file).exists()]
    if missing:
        pytest.skip(f"the host in {request.param} needs {', '.join(missing)}, which is not here")
    folder = tmp_path_factory.mktemp(request.param) / "hosts"
    shutil.copytree(FOLDER, folder, ignore=shutil.ignore_patterns("build"))
    for step in PAGE[language.heading].steps:
        if step.printed is None:
            done = typed(step.command, folder)
            assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    return Host(language, folder, environment(folder))


def shown_block(start: str) -> str:
    """The block of the page that begins so, of those that are no command's whole output."""
    page = (FOLDER / "README.md").read_text(encoding="utf-8")
    (found,) = re.findall(rf"^```text not-run\n({re.escape(start)}.*?)^```$", page, re.MULTILINE | re.DOTALL)
    return found


ALLOWED: Final = PAGE["In shell"].steps[0].printed
REJECTED: Final = PAGE["Try in each of them"].steps[0].printed


def test_the_page_s_commands_print_what_it_shows(host: Host) -> None:
    command = " ".join(host.language.command)
    steps = [step for section in PAGE.values() for step in section.steps if step.printed and command in step.command]
    assert steps[0].printed == ALLOWED

    for step in steps:
        done = typed(step.command, host.folder)
        assert (done.returncode, done.stdout) == (0, step.printed), done.stderr


def test_every_command_of_the_page_belongs_to_a_language() -> None:
    commands = [" ".join(language.command) for language in LANGUAGES.values()]
    steps = [step for section in PAGE.values() for step in section.steps if step.printed]

    assert all(any(command in step.command for command in commands) for step in steps)


def test_every_link_of_the_page_leads_somewhere() -> None:
    assert broken_links(FOLDER / "README.md") == []


def test_the_person_who_says_y_allows_the_tool_and_text_of_any_script_comes_through(host: Host) -> None:
    done = host.run('crème 100% \\n "😀"', said="y\n")

    assert done.stdout.splitlines()[:2] == ["[save_note completed]", 'Saved: crème 100% \\n "😀". Anything else?']
    assert done.returncode == 0


def test_silence_is_no_consent(host: Host) -> None:
    done = host.run("buy milk", said="")

    assert (done.returncode, done.stdout) == (0, REJECTED)
    assert done.stderr.strip() == 'Run save_note? {"text":"buy milk"} [y/N]'


def test_nothing_in_the_call_can_hide_from_the_person_and_only_y_is_consent(host: Host) -> None:
    done = host.run("harm\u202eless \x1b[2J", said="yes please\n")

    question = done.stderr.strip()
    assert question.isascii()
    assert question.isprintable()
    assert re.fullmatch(r'Run save_note\? \{"text":"harm\\\S+less \\u001b\[2J"\} \[y/N\]', question)
    assert (done.returncode, done.stdout) == (0, REJECTED)


def hears_ctrl_c(terminal: Terminal) -> set[int]:
    """The processes on the terminal that its Ctrl-C would reach, and end."""
    hearing: set[int] = set()
    for process in Path("/proc").glob("[0-9]*"):
        try:
            group, session = (process / "stat").read_text().rpartition(")")[2].split()[2:4]
            (ignored,) = re.findall(r"SigIgn:\s*(\w+)", (process / "status").read_text())
        except OSError:  # it has ended
            continue
        if int(session) == int(group) == terminal.pid and not int(ignored, 16) & 1 << signal.SIGINT - 1:
            hearing.add(int(process.name))
    return hearing


def test_ctrl_c_cancels_the_run_and_the_program_ends_in_good_order(host: Host) -> None:
    page = shown_block("Once upon a time")
    story, cancelled = page.splitlines()

    with Terminal([*host.language.command, "tell me a story"], host.folder, host.env) as terminal:
        terminal.expect(story)
        assert hears_ctrl_c(terminal) == {terminal.pid}
        terminal.type(CTRL_C)
        terminal.expect(cancelled)
        assert terminal.end() == 128 + signal.SIGINT

    assert terminal.shown.replace("^C", "") == page


def test_ctrl_c_while_a_person_is_asked_cancels_the_run(host: Host) -> None:
    with Terminal([*host.language.command, "buy milk"], host.folder, host.env) as terminal:
        terminal.expect("[y/N]")
        terminal.resting()
        terminal.type(CTRL_C)
        terminal.expect("= cancelled: ")
        assert terminal.end() == 128 + signal.SIGINT

    assert "Saved" not in terminal.shown


def test_a_failed_run_is_told_by_kind_and_message(host: Host) -> None:
    done = host.run("fail")

    assert (done.returncode, done.stdout, done.stderr) == (1, "", shown_block("modelQuota"))


def test_without_a_sidecar_it_says_so_and_fails(host: Host) -> None:
    done = host.run("buy milk", SIDECAR_COMMAND="no-such-sidecar serve")

    assert (done.returncode, done.stdout) == (1, "")
    assert "no-such-sidecar" in done.stderr


def test_a_command_that_names_nothing_is_as_none(host: Host) -> None:
    for command in ("", " \t "):
        done = host.run("--yes", "buy milk", SIDECAR_COMMAND=command)

        assert (done.returncode, done.stdout) == (0, ALLOWED), done.stderr


def odd_sidecar(host: Host, asked: str, said: str = "", answered: dict[str, object] | None = None) -> dict[str, str]:
    program = host.folder / "odd_sidecar.py"
    program.write_text(ODD_SIDECAR, encoding="utf-8")
    program.with_suffix(".json").write_text(json.dumps([answered or server(), said]), encoding="utf-8")
    return {"SIDECAR_COMMAND": f" python  {program}\t{asked} "}


@pytest.mark.parametrize("answered", [server(name="other"), server(version=2), server(block="other")])
def test_what_is_no_sidecar_of_this_version_is_refused(host: Host, answered: dict[str, object]) -> None:
    done = host.run("buy milk", **odd_sidecar(host, "say", "hello", answered))

    told = "this is no agent-sidecar that speaks protocol version 1\n"
    assert (done.returncode, done.stdout, done.stderr) == (1, "", told)


def test_text_of_any_script_comes_through_in_any_locale_and_no_terminal_obeys_it(host: Host) -> None:
    done = host.run("buy milk", LC_ALL="C", **odd_sidecar(host, "say", f"\tGrüße{HIDDEN}\n世界😀"))
    failed = host.run("buy milk", **odd_sidecar(host, "fail", HIDDEN))

    text = rf"\tGrüße{SHOWN}\n世界😀"
    tool = rf"\tGrüße{SHOWN}(\n|%0A)世界😀"
    assert re.fullmatch(rf"{text}\n\[{tool} completed\]\n= completed: {text}\n", done.stdout), done.stdout
    assert re.fullmatch(rf"odd: {SHOWN}\n", failed.stderr), failed.stderr


def test_a_question_that_offers_nothing_is_answered_all_the_same(host: Host) -> None:
    for arguments in ((), ("--yes",)):
        done = host.run(*arguments, "buy milk", said="y\n", **odd_sidecar(host, "ask", HIDDEN))

        assert done.stdout == '= completed: {"outcome": "cancelled"}\n'
        assert done.stderr.isascii()
        assert re.fullmatch(rf'({SHOWN} {{"text": ?"{SHOWN}"}} \[y/N\] )?', done.stderr), done.stderr


def test_it_mints_the_ids_of_session_and_run(host: Host) -> None:
    told = [host.run("buy milk", **odd_sidecar(host, "ids")).stdout for _ in range(2)]

    created, session, run = zip(*(json.loads(line.removeprefix("= completed: ")) for line in told), strict=True)
    assert created == session
    assert len({*session, *run}) == 4


def test_a_sidecar_that_dies_in_the_run_is_told_and_not_waited_for(host: Host) -> None:
    done = host.run("buy milk", **odd_sidecar(host, "die"))

    assert (done.returncode, done.stdout, done.stderr) == (1, "", "the sidecar has ended\n")


def test_what_it_does_not_know_does_no_harm_and_is_refused_while_the_sidecar_does_not_read(host: Host) -> None:
    done = host.run("buy milk", **odd_sidecar(host, "60"))

    assert (done.returncode, done.stdout) == (0, "first line\nsecond line\n= completed: refused\n"), done.stderr


def test_a_call_without_a_text_is_not_carried_out(host: Host) -> None:
    for arguments in ((), ("one", "two")):
        done = host.run(*arguments)

        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr.startswith("usage: ")


def test_the_checks_of_its_language_find_nothing(host: Host) -> None:
    program = host.language.check.split()[0]
    if program != "test" and shutil.which(program) is None:
        pytest.skip(f"{program} is not here")

    done = typed(host.language.check, host.folder)

    assert (done.returncode, done.stdout + done.stderr) == (0, "")


@pytest.mark.parametrize("host", ["c"], indirect=True)
@pytest.mark.skipif(shutil.which("valgrind") is None, reason="valgrind is not here")
def test_the_host_in_c_loses_no_memory(host: Host) -> None:
    checked = ["valgrind", "-q", "--leak-check=full", "--error-exitcode=9", *host.language.command, "buy milk"]

    done = typed(f"echo y | {shlex.join(checked)}", host.folder)

    assert (done.returncode, done.stdout) == (0, ALLOWED), done.stderr
