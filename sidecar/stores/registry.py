"""From a store's name in the configuration to the store. Another kind of store is one more line here."""

from collections.abc import Callable
from pathlib import Path
from typing import Final

import platformdirs

from .base import SessionStore
from .memory import MemoryStore
from .sqlite import SqliteStore
from .sqlite_file import Durability


def default_path() -> Path:
    """The database in the platform's folder for a user's data."""
    return Path(platformdirs.user_data_dir("agent-sidecar", appauthor=False)) / "sessions.db"


def _sqlite(place: str, durability: Durability) -> SessionStore:
    return SqliteStore(Path(place).expanduser() if place else default_path(), durability=durability)


def _memory(place: str, durability: Durability) -> SessionStore:
    if place:
        raise ValueError("the store 'memory' takes no place")
    return MemoryStore()


STORES: Final[dict[str, Callable[[str, Durability], SessionStore]]] = {
    "memory": _memory,
    "sqlite": _sqlite,
}
"""Kind of store → its constructor, which gets what follows the colon and how durable an answer has to be."""


def make_store(spec: str = "sqlite", *, durability: Durability = "full") -> SessionStore:
    """The store that a spec such as `memory` or `sqlite:PATH` names, not opened yet. Without a place: the default one.

    Raises:
        ValueError: no such kind of store.
    """
    kind, _, place = spec.partition(":")
    if kind not in STORES:
        raise ValueError(f"unknown store {spec!r}; known are {', '.join(f'{name}[:PLACE]' for name in STORES)}")
    return STORES[kind](place, durability)
