"""Several processes at one history file: each append is whole, and one that is killed harms nobody."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from providers.message_file import MessageFile

pytestmark = pytest.mark.skipif(os.name == "nt", reason="POSIX locks and signals")

ROOT = Path(__file__).parents[2]
LIMIT = 64 << 20
WRITER = """
import os, signal, sys
from pathlib import Path
from protocol.messages import text_message
from providers.message_file import MessageFile

folder, name, turns, dies_after = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
write = os.write

def a_little(file, data):
    write(file, data[:dies_after])
    os.kill(os.getpid(), signal.SIGKILL)

file = MessageFile(folder, None, "s.jsonl", 64 << 20)
write(1, b"ready\\n")
sys.stdin.readline()
if dies_after:
    os.write = a_little
for turn in range(turns):
    file.append([text_message("user", "hello", message_id=f"{name}-{turn}-{part}") for part in range(3)])
"""

Writer = subprocess.Popen[bytes]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Writer]]:
    writers: list[Writer] = []

    def writer(name: str, *, turns: int = 1, dies_after: int = 0) -> Writer:
        command = [sys.executable, "-c", WRITER, str(tmp_path / "history"), name, str(turns), str(dies_after)]
        child = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        writers.append(child)
        assert child.stdout is not None
        assert child.stdout.readline() == b"ready\n"
        return child

    yield writer
    for child in writers:
        child.kill()
        child.communicate()


def go(child: Writer) -> None:
    assert child.stdin is not None
    child.stdin.write(b"\n")
    child.stdin.flush()


def ids(folder: Path) -> list[str | None]:
    return [message.message_id for message in MessageFile(folder / "history", None, "s.jsonl", LIMIT).read()]


def test_two_processes_that_append_at_once_keep_each_other_s_turns_whole(
    tmp_path: Path, start: Callable[..., Writer]
) -> None:
    children = {name: start(name, turns=30) for name in ("a", "b")}
    for child in children.values():
        go(child)
    for child in children.values():
        child.communicate(timeout=60)
        assert child.returncode == 0

    kept = ids(tmp_path)
    turns = [kept[start : start + 3] for start in range(0, len(kept), 3)]
    for name in children:
        assert [turn for turn in turns if str(turn[0]).startswith(name)] == [
            [f"{name}-{number}-{part}" for part in range(3)] for number in range(30)
        ]
    assert len(turns) == 60


@pytest.mark.parametrize("written", [1, 60, 100, 200])
def test_a_process_that_is_killed_while_it_appends_leaves_a_file_that_loads(
    tmp_path: Path, start: Callable[..., Writer], written: int
) -> None:
    """Case 24."""
    before, after = ([f"{name}-0-{part}" for part in range(3)] for name in ("a", "b"))
    first, killed, again = start("a"), start("b", dies_after=written), start("b")
    go(first)
    assert first.wait(60) == 0
    size = (tmp_path / "history" / "s.jsonl").stat().st_size
    go(killed)
    assert killed.wait(60) == -signal.SIGKILL
    assert (tmp_path / "history" / "s.jsonl").stat().st_size == size + written

    there = ids(tmp_path)
    assert there == [*before, *after][: len(there)]
    assert 3 <= len(there) < 6

    go(again)
    assert again.wait(60) == 0
    assert ids(tmp_path) == [*before, *after]
