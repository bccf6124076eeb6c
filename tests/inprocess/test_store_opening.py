"""A store whose opening is given up: what it had taken is given back."""

import asyncio
import threading
from pathlib import Path

import pytest

from sidecar.stores import ownership
from sidecar.stores.base import Owner
from sidecar.stores.sqlite import SqliteStore
from tests.bench.waiting import eventually

OWNER = Owner(id="own", pid=1, since="2026-01-01T00:00:00Z")


async def test_an_opening_that_is_cancelled_leaves_no_lock_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, go_on, join = threading.Event(), threading.Event(), ownership.join

    def slowly(folder: Path, owner: str) -> ownership.OwnerLock:
        begun.set()
        go_on.wait(10)
        return join(folder, owner)

    monkeypatch.setattr(ownership, "join", slowly)
    path = tmp_path / "s.db"
    opening = asyncio.create_task(SqliteStore(path).open(OWNER))
    await asyncio.to_thread(begun.wait, 10)
    opening.cancel()
    with pytest.raises(asyncio.CancelledError):
        await opening
    go_on.set()
    folder = tmp_path / "s.db.owners"
    await eventually(lambda: folder.is_dir() and not any(folder.iterdir()))

    again = SqliteStore(path)
    await again.open(OWNER)
    await again.close()


async def test_a_lock_whose_file_cannot_be_removed_is_given_up_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(self: Path, missing_ok: bool = False) -> None:
        raise OSError(30, "read-only")

    lock = ownership.OwnerLock(tmp_path / "owners", "me")
    with monkeypatch.context() as patch:
        patch.setattr(Path, "unlink", refuse)
        lock.release()

    assert not ownership.is_alive(tmp_path / "owners", "me")
