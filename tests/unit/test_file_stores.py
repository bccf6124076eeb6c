"""File stores, in memory and on the disk: what both keep, what they take, and where a configuration puts them."""

import asyncio
import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from providers import file_stores
from providers.file_stores import (
    FilesystemPlace,
    MemoryFiles,
    MemoryPlace,
    SharedStore,
    StoreError,
    StoreLimits,
    open_store,
)
from providers.filesystem_store import FilesystemStore

pytestmark = pytest.mark.skipif(os.name == "nt", reason="POSIX files")

LIMITS = StoreLimits(file_bytes=10, folder_bytes=25)
StoreOf = Callable[[StoreLimits], SharedStore]


@pytest.fixture(params=["filesystem", "memory"])
def store_of(request: pytest.FixtureRequest, tmp_path: Path) -> StoreOf:
    if request.param == "memory":
        return MemoryFiles
    return lambda limits: FilesystemStore(tmp_path / "files", None, limits)


@pytest.fixture
def store(store_of: StoreOf) -> SharedStore:
    return store_of(StoreLimits())


async def names(store: SharedStore, folder: str = "a") -> list[str]:
    return [entry.name for entry in await store.entries(folder)]


async def test_a_file_is_written_read_listed_replaced_and_deleted(store: SharedStore) -> None:
    assert await store.read("a/x.md") is None
    assert await names(store) == []
    assert not await store.delete("a/x.md")

    assert await store.write("a/x.md", "one\r\n\N{SNOWMAN}\0")
    assert await store.write("a/b.md", "")
    assert await store.read("a/x.md") == "one\r\n\N{SNOWMAN}\0"
    assert await store.write("a/x.md", "two")
    assert await store.read("a/x.md") == "two"
    assert await names(store) == ["b.md", "x.md"]
    assert [(entry.name, entry.is_folder) for entry in await store.entries()] == [("a", True)]

    assert await store.delete("a/x.md")
    assert await names(store) == ["b.md"]


async def test_a_file_that_must_not_be_overwritten_stays(store: SharedStore) -> None:
    assert await store.write("a/x.md", "one", overwrite=False)
    assert not await store.write("a/x.md", "two", overwrite=False)

    assert await store.read("a/x.md") == "one"
    assert await names(store) == ["x.md"]


@pytest.mark.parametrize(
    "path", ["", "/x", "../x", "a/../x", "a/./x", "a//x", "a/", "a\\x", "a/\0", "a/.tmp-1", "x" * 256]
)
async def test_a_path_with_a_step_that_is_no_name_is_refused_by_every_method(store: SharedStore, path: str) -> None:
    for call in (store.read(path), store.write(path, "x"), store.delete(path)):
        with pytest.raises(StoreError):
            await call
    if path:
        with pytest.raises(StoreError):
            await store.entries(path)


async def test_half_of_a_surrogate_pair_is_refused(store: SharedStore) -> None:
    for path, text in (("a/x.md", "\ud800"), ("a/\ud800", "x")):
        with pytest.raises(StoreError, match="no UTF-8"):
            await store.write(path, text)

    assert await names(store) == []


async def test_the_longest_name_is_taken(store: SharedStore) -> None:
    assert await store.write("a/" + "x" * 255, "x")


async def test_a_file_may_be_as_long_as_the_limit_and_no_longer(store_of: StoreOf) -> None:
    store = store_of(LIMITS)
    await store.write("a/x.md", "é" * 5)

    with pytest.raises(StoreError, match="11 bytes, and may have 10"):
        await store.write("a/x.md", "é" * 5 + "x")

    assert await store.read("a/x.md") == "é" * 5


async def test_a_folder_may_hold_as_much_as_the_limit_and_no_more(store_of: StoreOf) -> None:
    store = store_of(LIMITS)
    for name, size in (("x", 10), ("y", 10), ("z", 5)):
        await store.write(f"a/{name}", "x" * size)

    with pytest.raises(StoreError, match="more than 25 bytes"):
        await store.write("a/z", "x" * 6)
    await store.write("a/z", "x" * 4)
    await store.write("b/x", "x" * 10)

    assert await store.read("a/z") == "xxxx"


async def test_a_folder_may_have_as_many_files_as_the_limit_and_no_more(
    store: SharedStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("providers.file_stores", "providers.filesystem_store"):
        monkeypatch.setattr(f"{module}.MAX_ENTRIES", 2)
    await store.write("a/x", "1")
    await store.write("a/y", "1")

    with pytest.raises(StoreError, match="holds 2 files"):
        await store.write("a/z", "1")
    await store.write("a/y", "2")

    assert await names(store) == ["x", "y"]


async def test_a_folder_s_turn_is_one_s_alone_and_ends_with_an_error_too(
    store: SharedStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("providers.file_stores", "providers.filesystem_store"):
        monkeypatch.setattr(f"{module}.LOCK_SECONDS", 0.05)
    async with store.turn("a"), store.turn("b"):
        with pytest.raises(StoreError, match="in use"):
            await take(store)

    with pytest.raises(ZeroDivisionError):
        await take(store, fails=True)
    await take(store)


async def take(store: SharedStore, *, fails: bool = False) -> None:
    async with store.turn("a"):
        if fails:
            raise ZeroDivisionError


async def test_turns_make_a_read_and_a_write_one_step(store: SharedStore) -> None:
    await store.write("a/n", "0")

    async def add() -> None:
        async with store.turn("a"):
            await store.write("a/n", str(int(await store.read("a/n") or "") + 1))

    await asyncio.gather(*(add() for _ in range(20)))

    assert await store.read("a/n") == "20"


async def test_a_cancelled_turn_is_free_again(store: SharedStore) -> None:
    async def hold() -> None:
        async with store.turn("a"):
            held.set()
            await asyncio.Event().wait()

    held = asyncio.Event()
    task = asyncio.create_task(hold())
    await held.wait()
    task.cancel()
    await asyncio.wait([task])

    async with store.turn("a"):
        assert await names(store) == []


async def test_letter_case_does_not_count_in_memory_and_the_first_writer_s_is_shown() -> None:
    store = MemoryFiles()
    await store.write("a/Notes.md", "one")
    await store.write("A/notes.MD", "two")

    assert await names(store) == ["Notes.md"]
    assert await store.read("a/NOTES.md") == "two"


async def test_stores_in_memory_are_one_in_a_process() -> None:
    first, second = (open_store(MemoryPlace(type="memory"), None, StoreLimits()) for _ in range(2))
    await first.write("test-stores-in-memory/x", "1")

    assert await second.read("test-stores-in-memory/x") == "1"
    await second.delete("test-stores-in-memory/x")


async def test_a_relative_path_stands_in_the_working_directory(tmp_path: Path) -> None:
    place = FilesystemPlace(type="filesystem", path="notes/of/mine")
    await open_store(place, str(tmp_path), StoreLimits()).write("a/x", "1")

    assert (tmp_path / "notes" / "of" / "mine" / "a" / "x").read_text() == "1"
    with pytest.raises(StoreError, match="working directory"):
        open_store(place, None, StoreLimits())


async def test_by_default_files_are_in_the_user_s_own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setattr(sys, "platform", "linux")
    await open_store(FilesystemPlace(type="filesystem"), str(tmp_path / "work"), StoreLimits()).write("a/x", "1")

    assert file_stores.default_folder() == tmp_path / "data" / "agent-sidecar" / "file-memory"
    assert (file_stores.default_folder() / "a" / "x").read_text() == "1"


@pytest.mark.parametrize("path", ["..", "a/../b", "/", ".", "a\0b", ""])
def test_a_place_is_a_folder_and_steps_nowhere_back(path: str) -> None:
    with pytest.raises(ValueError):
        FilesystemPlace(type="filesystem", path=path)
