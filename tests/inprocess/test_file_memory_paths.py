"""What a model may call a file, and what may lie in its place: nothing leads out of the memory's folder."""

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from providers.file_memory_folder import MemoryFolder, Note
from providers.file_memory_scope import folder_of_name, folder_of_scope, folder_of_session
from providers.file_memory_tools import FileMemoryTools
from providers.file_stores import StoreError, StoreLimits
from providers.filesystem_store import FilesystemStore
from providers.text_edits import LineEdit
from tests.bench.path_names import path_names
from tests.bench.trees import picture

pytestmark = pytest.mark.skipif(os.name == "nt", reason="POSIX files")

ROOT = Path(__file__).parents[2]
DIES = """
import asyncio, os, signal, sys
from pathlib import Path
from providers.file_memory_folder import MemoryFolder
from providers.filesystem_store import FilesystemStore

class Dies(FilesystemStore):
    async def write(self, path, text, *, overwrite=True):
        if path.endswith(sys.argv[2]):
            os.kill(os.getpid(), signal.SIGKILL)
        return await super().write(path, text, overwrite=overwrite)

asyncio.run(MemoryFolder(Dies(Path(sys.argv[1])), "names/s").write("new.md", "new", "What is new."))
"""


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the memory is, beside what is none of its business; what is written need not last."""
    monkeypatch.setattr(os, "fsync", lambda _: None)
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret.md").write_text("SECRET")
    (tmp_path / "secret.md").write_text("SECRET")
    (tmp_path / "files" / "names").mkdir(mode=0o700, parents=True)
    for folder in (tmp_path / "files", tmp_path / "files" / "names"):
        folder.chmod(0o700)
    (tmp_path / "files" / "names" / "secret.md").write_text("SECRET")
    monkeypatch.chdir(tmp_path)
    return tmp_path / "files"


def tools_in(files: Path) -> FileMemoryTools:
    return FileMemoryTools(MemoryFolder(FilesystemStore(files), "names/mine"))


async def answers(tools: FileMemoryTools, name: str) -> dict[str, Any]:
    """What each tool says when it is given a name, and a glob."""
    edits = [LineEdit(line_number=1, new_line="mine")]
    return {
        "read": await tools.file_memory_read(name),
        "write": await tools.file_memory_write(name, "mine", "mine"),
        "read again": await tools.file_memory_read(name),
        "replace": await tools.file_memory_replace(name, "mine", "mine too"),
        "lines": await tools.file_memory_replace_lines(name, edits),
        "ls": await tools.file_memory_ls(name[:256]),
        "delete": await tools.file_memory_delete(name),
    }


async def test_no_name_of_five_hundred_reads_or_changes_anything_outside(tmp_path: Path, files: Path) -> None:
    """S1 and BR-22."""
    tools, names = tools_in(files), path_names(tmp_path / "outside" / "secret.md")
    assert len(names) >= 500
    assert await tools.file_memory_write("notes.md", "mine") == "File 'notes.md' written."
    inside = files / "names" / "mine"
    before = picture(tmp_path, without=inside)
    taken = 0

    for name in names:
        told = await answers(tools, name)
        texts = [text for text in told.values() if isinstance(text, str)]
        assert not any("SECRET" in text or "Traceback" in text or len(text) > 300 for text in texts), name
        if str(tmp_path) not in name:
            assert not any(str(tmp_path) in text for text in texts), name
        taken += told["read again"] == "mine"
        assert ("written" in told["write"]) == (told["read again"] == "mine") == ("deleted" in told["delete"]), name

    assert 100 < taken < 200
    assert picture(tmp_path, without=inside) == before
    assert all(path.is_file() and path.parent == inside for path in inside.rglob("*"))


async def test_a_search_takes_a_glob_of_any_kind_and_reads_nothing_outside(tmp_path: Path, files: Path) -> None:
    """S1."""
    tools = tools_in(files)
    await tools.file_memory_write("notes.md", "mine")
    for glob in ("../*", "../../secret.md", str(tmp_path / "**"), "/**", "[", "**/*", "*\0*"):
        assert "SECRET" not in str(await tools.file_memory_grep("secret|mine", glob))

    assert [found["file_name"] for found in await tools.file_memory_grep("secret|mine")] == ["notes.md"]


@pytest.mark.parametrize("planted", ["notes.md", "notes_description.md", "memories.md", "notes.md.tmp"])
async def test_a_link_that_is_planted_is_refused_and_leads_nowhere(tmp_path: Path, files: Path, planted: str) -> None:
    """BR-22."""
    tools = tools_in(files)
    await tools.file_memory_write("other.md", "mine")
    folder = files / "names" / "mine"
    (folder / planted).unlink(missing_ok=True)
    (folder / planted).symlink_to(tmp_path / "outside" / "secret.md")
    before = picture(tmp_path, without=folder)

    told = await answers(tools, "notes.md")
    told["name"] = await tools.file_memory_read(planted)
    told["grep"] = await tools.file_memory_grep("secret|mine")

    assert "SECRET" not in str(told)
    assert picture(tmp_path, without=folder) == before
    assert (folder / planted).is_symlink()
    if planted != "notes.md.tmp":
        assert told["write"].startswith("Could not write file 'notes.md': ")
        assert "is a link" in told["write"]
        assert str(tmp_path) not in told["write"]


async def test_a_folder_that_is_a_link_is_refused(tmp_path: Path, files: Path) -> None:
    """BR-22."""
    (files / "names" / "mine").symlink_to(tmp_path / "outside")
    before = picture(tmp_path)

    told = await answers(tools_in(files), "secret.md")

    assert told["write"] == "Could not write file 'secret.md': its folder is a link; it is not followed."
    assert told["read"] == "Could not read file 'secret.md': its folder is a link; it is not followed."
    assert told["ls"] == "Could not list the files: its folder is a link; it is not followed."
    assert picture(tmp_path) == before


def test_no_two_scopes_or_sessions_share_a_folder_not_even_where_letter_case_is_ignored(tmp_path: Path) -> None:
    """S1 and BR-22."""
    values = [*path_names(tmp_path), "alice", "Alice", "a/../bob", "bob", "users/u1", "users_u1", "../../alice/s1"]
    values = list(dict.fromkeys(value for value in values if value))
    folders = [
        folder
        for value in values
        for folder in (folder_of_name(value), folder_of_session(value), folder_of_scope({"userId": value}))
    ]
    folders += [folder_of_scope({"agentId": "alice"}), folder_of_scope({"agentId": "alice", "userId": "alice"})]

    assert len({folder.lower() for folder in folders}) == 3 * len(values) + 2
    assert all(len(folder.split("/")) == 2 and folder.isascii() and len(folder) < 240 for folder in folders)
    assert not any(step.startswith(".") for folder in folders for step in folder.split("/"))


@pytest.mark.parametrize("last", ["new_description.md", "new.md", "memories.md"])
async def test_a_crash_before_the_index_leaves_a_memory_that_reads_and_a_true_index(tmp_path: Path, last: str) -> None:
    memory = MemoryFolder(FilesystemStore(tmp_path / "files"), "names/s")
    await memory.write("old.md", "old", "What is old.")
    dead = await asyncio.to_thread(
        subprocess.run, [sys.executable, "-c", DIES, str(tmp_path / "files"), last], cwd=ROOT, check=False
    )
    assert dead.returncode == -signal.SIGKILL

    is_whole = last == "memories.md"
    assert await memory.read("new.md") == ("new" if is_whole else None)
    assert await memory.read("old.md") == "old"
    listed = [line for line in (await memory.index() or "").splitlines() if line.startswith("- ")]
    assert listed == [*(["- new.md: What is new."] if is_whole else []), "- old.md: What is old."]
    assert (tmp_path / "files" / "names" / "s" / "memories.md").read_text() == await memory.index()

    await memory.write("new.md", "newer", "What is newer.")
    assert "- new.md: What is newer." in (await memory.index() or "")


async def test_a_file_that_cannot_be_written_keeps_its_text_and_its_description(tmp_path: Path) -> None:
    memory = MemoryFolder(FilesystemStore(tmp_path / "files", None, StoreLimits(file_bytes=100)), "names/s")
    await memory.write("n.md", "old", "What is old.")

    for text, description in (("x" * 101, "What is new."), ("x" * 101, ""), ("new", "x" * 101)):
        with pytest.raises(StoreError, match="may have 100"):
            await memory.write("n.md", text, description)

    assert await memory.read("n.md") == "old"
    assert await memory.notes() == [Note("n.md", "What is old.")]
    assert "- n.md: What is old." in (await memory.index() or "")


async def test_an_index_that_nobody_of_us_wrote_is_made_anew(tmp_path: Path) -> None:
    memory = MemoryFolder(FilesystemStore(tmp_path / "files"), "names/s")
    await memory.write("old.md", "old")
    (tmp_path / "files" / "names" / "s" / "memories.md").write_text("x" * 40_000)

    assert "- old.md" in (await memory.index() or "")
    assert "xxx" not in (await memory.index() or "")


async def test_a_memory_that_is_cleared_leaves_no_word_on_the_disk(tmp_path: Path) -> None:
    memory = MemoryFolder(FilesystemStore(tmp_path / "files"), "names/s")
    await memory.write("a.md", "CANARY", "CANARY")
    await memory.write("b.txt", "CANARY", "CANARY")
    (tmp_path / "files" / "names" / "s" / ".tmp-dead").write_text("CANARY")

    assert await memory.clear() == 2

    assert not any(isinstance(content, bytes) for *_, content in picture(tmp_path).values())
    assert await memory.index() is None
