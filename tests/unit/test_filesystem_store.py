"""The file store on the disk: it is led nowhere else, by no name, link, race, crash or other process."""

import asyncio
import contextlib
import os
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from providers.file_stores import StoreError, StoreLimits
from providers.filesystem_store import FilesystemStore
from tests.bench.trees import picture
from tests.conftest import scaled

pytestmark = pytest.mark.skipif(os.name == "nt", reason="POSIX files")

ROOT = Path(__file__).parents[2]
LIMITS = StoreLimits(file_bytes=10)
COUNTING = """
import asyncio, sys
from pathlib import Path
from providers.filesystem_store import FilesystemStore

async def main():
    store = FilesystemStore(Path(sys.argv[1]))
    print("ready", flush=True)
    sys.stdin.readline()
    for _ in range(25):
        async with store.turn("a"):
            await store.write("a/n", str(int(await store.read("a/n") or "0") + 1))

asyncio.run(main())
"""


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """Where the files of the folder `a` are, beside something that is none of the store's business."""
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret.md").write_text("secret")
    (tmp_path / "files" / "a").mkdir(mode=0o700, parents=True)
    (tmp_path / "files").chmod(0o700)
    return tmp_path / "files" / "a"


@pytest.fixture
def disk(tmp_path: Path) -> FilesystemStore:
    return FilesystemStore(tmp_path / "files")


async def names(store: FilesystemStore, folder: str = "a") -> list[str]:
    return [entry.name for entry in await store.entries(folder)]


@pytest.mark.parametrize("mask", [0o000, 0o002, 0o022])
async def test_files_are_the_user_s_alone_whatever_the_umask_says(tmp_path: Path, mask: int) -> None:
    """S7."""
    modes: list[int] = []

    def look() -> None:
        is_last = False
        while not is_last:
            is_last = done.is_set()
            for path in tmp_path.rglob("*"):
                with contextlib.suppress(FileNotFoundError):
                    modes.append(stat.S_IMODE(path.lstat().st_mode) & 0o077)

    done = threading.Event()
    watcher = threading.Thread(target=look)
    before = os.umask(mask)
    try:
        watcher.start()
        store = FilesystemStore(tmp_path / "files")
        for number in range(10):
            async with store.turn("a"):
                await store.write(f"a/{number}", "x")
    finally:
        os.umask(before)
        done.set()
        watcher.join()

    assert set(modes) == {0}
    assert stat.S_IMODE((tmp_path / "files" / "a").stat().st_mode) == 0o700
    assert stat.S_IMODE((tmp_path / "files" / "a" / "1").stat().st_mode) == 0o600


async def refuses(store: FilesystemStore, path: str) -> None:
    """A file that is planted there is neither read, written nor deleted, and is not listed."""
    for call in (store.read(path), store.write(path, "mine"), store.delete(path)):
        async with asyncio.timeout(5):
            with pytest.raises(StoreError) as caught:
                await call
        assert str(store.path.parent) not in str(caught.value)
    assert path.rpartition("/")[2] not in await names(store)


@pytest.mark.parametrize("kind", ["link", "dangling", "hard", "fifo", "folder", "device"])
async def test_what_is_no_plain_file_of_ours_is_refused(disk: FilesystemStore, place: Path, kind: str) -> None:
    """BR-22."""
    outside, planted = place.parents[1] / "outside", place / "x.md"
    match kind:
        case "link":
            planted.symlink_to(outside / "secret.md")
        case "dangling":
            planted.symlink_to(outside / "new.md")
        case "hard":
            planted.hardlink_to(outside / "secret.md")
        case "fifo":
            os.mkfifo(planted)
        case "folder":
            planted.mkdir()
        case _:
            try:
                os.mknod(planted, stat.S_IFCHR | 0o600, os.makedev(1, 3))
            except PermissionError:
                pytest.skip("devices are made by root only")
    before = picture(outside)

    if kind == "folder":
        with pytest.raises(StoreError):
            await disk.write("a/x.md", "mine")
    else:
        await refuses(disk, "a/x.md")

    assert picture(outside) == before
    assert await disk.write("a/y.md", "mine")


async def test_what_others_own_or_may_write_to_is_refused(disk: FilesystemStore, place: Path) -> None:
    await disk.write("a/x.md", "mine")
    (place / "x.md").chmod(0o620)
    await refuses(disk, "a/x.md")
    (place / "x.md").chmod(0o600)
    if os.geteuid() == 0:
        os.chown(place / "x.md", 12345, -1)
        await refuses(disk, "a/x.md")
        os.chown(place / "x.md", 0, -1)
    assert await disk.read("a/x.md") == "mine"

    for folder in (place, place.parent):
        folder.chmod(0o770)
        for call in (disk.read("a/x.md"), disk.write("a/x.md", "more"), disk.entries("a")):
            with pytest.raises(StoreError):
                await call
        folder.chmod(0o700)
    assert await disk.read("a/x.md") == "mine"


@pytest.mark.parametrize("step", ["files", "files/a"])
async def test_a_folder_that_is_a_link_is_refused(
    tmp_path: Path, place: Path, disk: FilesystemStore, step: str
) -> None:
    """BR-22."""
    (tmp_path / "outside" / "a").mkdir()
    before = picture(tmp_path / "outside")
    moved = tmp_path / step
    moved.rename(tmp_path / "moved")
    moved.symlink_to(tmp_path / "outside")

    for call in (disk.read("a/secret.md"), disk.write("a/new.md", "x"), disk.delete("a/secret.md"), disk.entries("a")):
        with pytest.raises(StoreError) as caught:
            await call
        assert str(tmp_path) not in str(caught.value)
    with pytest.raises(StoreError):
        async with disk.turn("a"):
            pass

    assert picture(tmp_path / "outside") == before


async def test_a_link_is_not_written_to_where_a_temporary_name_is_planted(
    disk: FilesystemStore, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """BR-22: even a name that was guessed."""
    outside = place.parents[1] / "outside"
    monkeypatch.setattr("secrets.token_hex", lambda _: "guessed")
    (place / ".tmp-guessed").symlink_to(outside / "secret.md")
    before = picture(outside)

    with pytest.raises(StoreError):
        await disk.write("a/x.md", "mine")

    assert picture(outside) == before


async def test_what_is_no_utf_8_or_too_long_is_not_read(place: Path) -> None:
    store = FilesystemStore(place.parent, None, LIMITS)
    (place / "x").write_bytes(b"\xff")
    (place / "y").write_bytes(b"x" * 11)
    (place / "z").write_bytes(b"x" * 10)
    for name in "xyz":
        (place / name).chmod(0o600)

    with pytest.raises(StoreError, match="no UTF-8"):
        await store.read("a/x")
    with pytest.raises(StoreError, match="more than 10 bytes"):
        await store.read("a/y")
    assert await store.read("a/z") == "x" * 10


async def test_a_folder_swapped_for_a_link_while_it_is_written_to_leads_nowhere(
    disk: FilesystemStore, place: Path
) -> None:
    """S2."""
    outside = place.parents[1] / "outside"
    (outside / "x.md").write_text("theirs")
    before = picture(outside)
    done = threading.Event()
    swaps = 0

    def swap() -> None:
        nonlocal swaps
        away = place.with_name("away")
        while not done.is_set():
            with contextlib.suppress(OSError):
                place.rename(away)
                place.symlink_to(outside)
                swaps += 1
                place.unlink()
            with contextlib.suppress(OSError):
                away.rename(place)

    swapper = threading.Thread(target=swap)
    swapper.start()
    read: set[str | None] = set()
    try:
        for _ in range(scaled(300)):
            with contextlib.suppress(StoreError):
                await disk.write("a/x.md", "mine")
            with contextlib.suppress(StoreError):
                read.add(await disk.read("a/x.md"))
            with contextlib.suppress(StoreError):
                await disk.delete("a/x.md")
    finally:
        done.set()
        swapper.join()

    assert swaps > 0
    assert picture(outside) == before
    assert read <= {"mine", None}


async def test_a_file_swapped_for_a_link_while_it_is_used_leads_nowhere(disk: FilesystemStore, place: Path) -> None:
    """S2."""
    secret = place.parents[1] / "outside" / "secret.md"
    before = picture(secret.parent)
    done = threading.Event()

    def swap() -> None:
        link = place / "link"
        while not done.is_set():
            with contextlib.suppress(OSError):
                link.symlink_to(secret)
            with contextlib.suppress(OSError):
                link.rename(place / "x.md")

    swapper = threading.Thread(target=swap)
    swapper.start()
    read: set[str | None] = set()
    refused = 0
    try:
        for _ in range(scaled(300)):
            try:
                await disk.write("a/x.md", "mine")
                read.add(await disk.read("a/x.md"))
            except StoreError:
                refused += 1
                with contextlib.suppress(OSError):
                    (place / "x.md").unlink()
    finally:
        done.set()
        swapper.join()

    assert refused > 0
    assert picture(secret.parent) == before
    assert read <= {"mine", None}


async def test_what_a_dead_process_left_unfinished_is_no_file_and_goes(disk: FilesystemStore, place: Path) -> None:
    await disk.write("a/x.md", "whole")
    (place / ".tmp-dead").write_text("half")
    (place / ".tmp-twin").hardlink_to(place / "x.md")
    assert await names(disk) == []

    await disk.write("a/y.md", "1")
    assert await disk.read("a/x.md") == "whole"

    async with disk.turn("a"):
        assert sorted(os.listdir(place)) == ["x.md", "y.md"]


async def test_a_write_is_durable_before_it_is_told(disk: FilesystemStore, monkeypatch: pytest.MonkeyPatch) -> None:
    await disk.write("a/x.md", "old")
    steps: list[str] = []
    sync, rename = os.fsync, os.rename

    def synced(descriptor: int) -> None:
        sync(descriptor)
        steps.append("folder" if stat.S_ISDIR(os.fstat(descriptor).st_mode) else "file")

    def renamed(*names: str, **folders: int) -> None:
        rename(*names, **folders)
        steps.append("rename")

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(os, "rename", renamed)
    await disk.write("a/x.md", "new")
    await disk.delete("a/x.md")

    assert steps == ["file", "rename", "folder", "folder"]


async def test_a_full_disk_leaves_the_old_text(
    disk: FilesystemStore, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await disk.write("a/x.md", "old")

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(StoreError, match="No space left"):
            await disk.write("a/x.md", "new")

    assert await disk.read("a/x.md") == "old"
    assert os.listdir(place) == ["x.md"]


def test_two_processes_take_turns(tmp_path: Path) -> None:
    command = [sys.executable, "-c", COUNTING, str(tmp_path / "files")]
    children = [
        subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(2)
    ]
    for child in children:
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"
    for child in children:
        assert child.stdin is not None
        child.stdin.write("\n")
        child.stdin.flush()
    for child in children:
        child.communicate(timeout=60)
        assert child.returncode == 0

    assert (tmp_path / "files" / "a" / "n").read_text() == "50"
