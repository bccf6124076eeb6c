"""One session's messages in a file: what is read again, what damage does, and whose files are used."""

import os
import shutil
import stat
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from protocol.messages import FunctionCallBlock, Message, text_message
from providers import message_file
from providers.api.history import HistoryError
from providers.message_file import MessageFile

LIMIT = 1 << 20


def said(text: str, message_id: str | None = None) -> Message:
    return text_message("user", text, message_id=message_id)


def texts(messages: Sequence[Message]) -> list[str]:
    return [message.text for message in messages]


@pytest.fixture
def file(tmp_path: Path) -> MessageFile:
    return another(tmp_path)


def another(folder: Path, *, max_bytes: int = LIMIT) -> MessageFile:
    return MessageFile(folder / "history", None, "s.jsonl", max_bytes)


def test_where_there_is_no_file_there_are_no_messages_and_none_is_made(file: MessageFile) -> None:
    assert file.read() == ()
    assert not file.path.parent.exists()


def test_what_was_appended_is_read_whole(file: MessageFile, tmp_path: Path) -> None:
    call = FunctionCallBlock(call_id="c", name="f", arguments={"kept": None, "line": "a\nb\u2028c\r"})
    messages = [said("É\n🙂", "m1"), Message(role="assistant", content=(call,), metadata={"a": None})]
    file.append(messages)

    assert list(file.read()) == messages
    assert list(another(tmp_path).read()) == messages
    assert file.path.read_bytes().count(b"\n") == 2


def test_an_append_leaves_what_is_there_untouched(file: MessageFile) -> None:
    file.append([said("one")])
    before = file.path.read_bytes()

    file.append([said("two")])

    assert file.path.read_bytes().startswith(before)


def test_an_id_is_kept_once_and_the_same_words_as_often_as_they_are_said(file: MessageFile, tmp_path: Path) -> None:
    """Cases 19 and 20."""
    turns = [said("yes", "m1"), said("yes", "m2"), said("yes"), said("yes")]
    file.append([*turns, turns[0]])

    file.append(turns[:2])
    another(tmp_path).append([*turns[:2], said("no", "m3")])

    assert texts(file.read()) == ["yes"] * 4 + ["no"]


def test_what_another_writes_is_seen_without_reading_all_again(
    file: MessageFile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file.append([said(f"{number:0100}") for number in range(100)])
    file.read()
    another(tmp_path).append([said("new")])
    read: list[int] = []
    pread = os.pread

    def counting(descriptor: int, size: int, offset: int) -> bytes:
        read.append(size)
        return pread(descriptor, size, offset)

    monkeypatch.setattr(os, "pread", counting)

    assert texts(file.read())[-1] == "new"
    assert sum(read) < 300


def test_a_file_too_big_to_be_kept_in_memory_is_read_anew(file: MessageFile, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(message_file, "CACHE_BYTES", 100)
    file.append([said("x" * 200, "m1")])
    file.read()

    file.append([said("x" * 200, "m1"), said("y", "m2")])

    assert texts(file.read()) == ["x" * 200, "y"]


@pytest.mark.parametrize("change", ["replaced", "shortened", "rewritten", "removed"])
def test_a_file_that_somebody_changed_is_read_anew(file: MessageFile, tmp_path: Path, change: str) -> None:
    file.append([said("one", "m1"), said("two", "m2")])
    file.read()
    first, second = file.path.read_bytes().splitlines(keepends=True)
    expected = ["one"]
    if change == "replaced":
        fresh = tmp_path / "fresh"
        fresh.write_bytes(first + b"\n" * len(second))
        fresh.chmod(0o600)
        fresh.replace(file.path)
    elif change == "shortened":
        os.truncate(file.path, len(first))
    elif change == "rewritten":
        file.path.write_bytes(second.replace(b"two", b"one") + first.replace(b"one", b"six"))
        expected = ["one", "six"]
    else:
        file.path.unlink()
        expected = []

    assert texts(file.read()) == expected


def test_blank_lines_are_passed_over(file: MessageFile) -> None:
    file.append([said("one")])
    with file.path.open("ab") as raw:
        raw.write(b"\n  \n")
    file.append([said("two")])

    assert texts(file.read()) == ["one", "two"]


@pytest.mark.parametrize("line", [b"{", b"[]", b'{"role":"user"}', b'"text"', b"\xff", b"\0\0", b"{" * 100_000])
def test_a_damaged_line_is_told_by_file_and_number_and_nothing_is_added(file: MessageFile, line: bytes) -> None:
    """Case 24."""
    file.append([said("one", "m1")])
    good = file.path.read_bytes()
    file.path.write_bytes(good + line + b"\n" + good)
    damaged = file.path.read_bytes()

    with pytest.raises(HistoryError, match="line 2") as failure:
        file.read()
    with pytest.raises(HistoryError, match="line 2"):
        file.append([said("two")])

    assert str(file.path) in str(failure.value)
    assert file.path.read_bytes() == damaged


def test_a_damaged_line_that_was_mended_is_forgotten(file: MessageFile) -> None:
    """Case 24."""
    file.append([said("one")])
    good = file.path.read_bytes()
    file.path.write_bytes(good + b"{\n")
    with pytest.raises(HistoryError):
        file.read()

    file.path.write_bytes(good + good)

    assert texts(file.read()) == ["one", "one"]


def test_a_write_cut_short_at_any_byte_costs_no_other_message(file: MessageFile, tmp_path: Path) -> None:
    """Case 24."""
    file.append([said("one", "m1"), said("two É", "m2")])
    whole = file.path.read_bytes()
    start = whole.index(b"\n") + 1
    for cut in range(start, len(whole)):
        file.path.write_bytes(whole[:cut])
        torn = another(tmp_path)

        there = texts(torn.read())
        assert there == (["one", "two É"] if cut == len(whole) - 1 else ["one"])
        assert (torn.torn is not None) == (start < cut < len(whole) - 1)

        torn.append([said("two É", "m2"), said("three")])
        assert torn.torn is None
        assert texts(another(tmp_path).read()) == ["one", "two É", "three"]


def test_the_warning_of_a_torn_end_names_file_and_line(file: MessageFile) -> None:
    """Case 24."""
    file.append([said("one")])
    with file.path.open("ab") as raw:
        raw.write(b'{"role"')

    file.read()

    assert file.torn is not None
    assert str(file.path) in file.torn
    assert "line 2" in file.torn


def test_a_failing_write_adds_nothing(file: MessageFile, monkeypatch: pytest.MonkeyPatch) -> None:
    file.append([said("one")])
    before = file.path.read_bytes()
    write = os.write
    calls: list[int] = []

    def half(descriptor: int, data: bytes) -> int:
        calls.append(len(data))
        if len(calls) > 1:
            raise OSError(28, "No space left on device")
        return write(descriptor, data[:10])

    monkeypatch.setattr(os, "write", half)
    with pytest.raises(HistoryError, match="No space left"):
        file.append([said("two")])
    monkeypatch.undo()

    assert file.path.read_bytes() == before
    file.append([said("two")])
    assert texts(file.read()) == ["one", "two"]


def test_a_file_may_be_filled_to_its_limit_and_no_further(tmp_path: Path) -> None:
    file = another(tmp_path)
    file.append([said("one")])
    size = file.path.stat().st_size

    with pytest.raises(HistoryError, match=f"{2 * size - 1} bytes"):
        another(tmp_path, max_bytes=2 * size - 1).append([said("two")])
    assert texts(file.read()) == ["one"]
    another(tmp_path, max_bytes=2 * size).append([said("two")])

    assert texts(another(tmp_path, max_bytes=2 * size).read()) == ["one", "two"]
    with pytest.raises(HistoryError, match="longer than"):
        another(tmp_path, max_bytes=2 * size - 1).read()


def test_a_line_has_a_limit_when_written_and_when_read(file: MessageFile, monkeypatch: pytest.MonkeyPatch) -> None:
    file.append([said("x" * 100)])
    size = file.path.stat().st_size
    monkeypatch.setattr(message_file, "MAX_LINE_BYTES", size)
    file.append([said("y" * 100)])

    with pytest.raises(HistoryError, match=f"{size} bytes"):
        file.append([said("z" * 101)])
    assert len(file.read()) == 2
    monkeypatch.setattr(message_file, "MAX_LINE_BYTES", size - 2)
    with pytest.raises(HistoryError, match="line 1"):
        MessageFile(file.path.parent, None, file.path.name, LIMIT).read()


def test_folder_and_file_are_the_user_s_alone(tmp_path: Path) -> None:
    old = os.umask(0)
    try:
        file = MessageFile(tmp_path, Path("a/b"), "s.jsonl", LIMIT)
        file.append([said("one")])
    finally:
        os.umask(old)

    assert stat.S_IMODE(file.path.stat().st_mode) == 0o600
    assert [stat.S_IMODE(folder.stat().st_mode) for folder in (file.path.parent, tmp_path / "a")] == [0o700, 0o700]


@pytest.mark.parametrize("mode", [0o620, 0o602])
@pytest.mark.parametrize("what", ["file", "folder"])
def test_what_others_may_write_to_is_refused(file: MessageFile, what: str, mode: int) -> None:
    file.append([said("one")])
    place = file.path if what == "file" else file.path.parent
    place.chmod(mode if what == "file" else mode | 0o100)

    with pytest.raises(HistoryError, match="other users may write"):
        file.read()
    with pytest.raises(HistoryError, match="other users may write"):
        file.append([said("two")])


def test_what_belongs_to_somebody_else_is_refused(file: MessageFile, monkeypatch: pytest.MonkeyPatch) -> None:
    file.append([said("one")])
    own = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: own + 1)

    with pytest.raises(HistoryError, match="another user"):
        file.read()


@pytest.mark.parametrize("what", ["file", "dangling", "folder", "step"])
def test_a_link_is_followed_at_no_use(tmp_path: Path, what: str) -> None:
    file = MessageFile(tmp_path, Path("a/b"), "s.jsonl", LIMIT)
    file.append([said("one")])
    elsewhere = tmp_path / "elsewhere"
    place = {"file": file.path, "dangling": file.path, "folder": file.path.parent, "step": tmp_path / "a"}[what]
    place.rename(elsewhere)
    place.symlink_to(elsewhere if what != "dangling" else tmp_path / "nowhere")
    before = sorted((path, path.is_file() and path.read_bytes()) for path in tmp_path.rglob("*"))

    for use in (file.read, lambda: file.append([said("two")])):
        with pytest.raises(HistoryError, match="is a link"):
            use()

    assert sorted((path, path.is_file() and path.read_bytes()) for path in tmp_path.rglob("*")) == before


def test_what_is_no_regular_file_is_refused_at_once(file: MessageFile) -> None:
    file.path.parent.mkdir(mode=0o700)
    os.mkfifo(file.path, 0o600)
    with pytest.raises(HistoryError, match="no regular file"):
        file.read()

    file.path.unlink()
    shutil.rmtree(file.path.parent)
    file.path.parent.touch()
    with pytest.raises(HistoryError, match="no folder"):
        file.append([said("one")])


def test_a_file_that_another_holds_too_long_is_told_as_locked(
    file: MessageFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    import fcntl

    file.append([said("one")])
    monkeypatch.setattr(message_file, "LOCK_SECONDS", 0.03)
    with file.path.open("rb") as other:
        fcntl.flock(other, fcntl.LOCK_SH)
        assert texts(file.read()) == ["one"]
        with pytest.raises(HistoryError, match="locked"):
            file.append([said("two")])

    file.append([said("two")])
    assert texts(file.read()) == ["one", "two"]


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="counts descriptors in /proc")
def test_no_descriptor_stays_open(file: MessageFile) -> None:
    def count() -> int:
        return len(os.listdir("/proc/self/fd"))

    before = count()
    file.append([said("one")])
    file.read()
    file.path.write_bytes(b"{\n")
    with pytest.raises(HistoryError):
        file.read()

    assert count() == before


def test_a_message_that_is_no_json_is_refused_alone(file: MessageFile) -> None:
    broken: Any = {"n": object()}
    with pytest.raises(HistoryError, match="JSON"):
        file.append([said("one"), Message(role="user", content=(), metadata=broken)])

    file.append([said("two")])
    assert texts(file.read()) == ["two"]
