"""Lock files: who is alive, and what is swept away."""

import os
import threading
from pathlib import Path

import pytest

from sidecar.stores.base import Foreign, Unavailable
from sidecar.stores.ownership import OwnerLock, is_alive, sweep


def test_an_owner_lives_from_taking_its_lock_to_releasing_it(tmp_path: Path) -> None:
    folder = tmp_path / "owners"
    lock = OwnerLock(folder, "me")
    assert is_alive(folder, "me")
    lock.release()
    lock.release()
    assert not is_alive(folder, "me")
    assert not list(folder.iterdir())


def test_an_owner_is_there_once(tmp_path: Path) -> None:
    lock = OwnerLock(tmp_path, "me")
    with pytest.raises(Unavailable):
        OwnerLock(tmp_path, "me")
    assert is_alive(tmp_path, "me"), "the second one took the lock along"
    lock.release()


def test_an_owner_id_cannot_lead_out_of_the_folder(tmp_path: Path) -> None:
    lock = OwnerLock(tmp_path / "owners", "../outside")
    assert [entry.name for entry in tmp_path.iterdir()] == ["owners"]
    assert is_alive(tmp_path / "owners", "../outside")
    lock.release()


def test_what_dead_owners_left_is_swept_and_the_living_are_not(tmp_path: Path) -> None:
    for name in ("dead.lock", "dead.new", "notes.txt"):
        (tmp_path / name).touch()
    lock = OwnerLock(tmp_path, "alive")
    assert sweep(tmp_path) == 2
    assert {entry.name for entry in tmp_path.iterdir()} == {"alive.lock", "notes.txt"}
    lock.release()


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can give folders away")
def test_a_folder_of_somebody_else_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "owners"
    folder.mkdir()
    os.chown(folder, 12345, 12345)
    with pytest.raises(Foreign):
        OwnerLock(folder, "me")


def test_a_sweep_at_any_moment_takes_no_living_owner(tmp_path: Path) -> None:
    done = threading.Event()

    def sweeping() -> None:
        while not done.is_set():
            sweep(tmp_path)

    thread = threading.Thread(target=sweeping)
    thread.start()
    try:
        for n in range(200):
            lock = OwnerLock(tmp_path, f"owner{n}")
            assert is_alive(tmp_path, f"owner{n}")
            assert (tmp_path / f"owner{n}.lock").exists()
            lock.release()
    finally:
        done.set()
        thread.join()
