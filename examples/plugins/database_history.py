"""A history of one's own: the turns of a conversation are kept in a table of a database."""

import asyncio
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import cast

from protocol.messages import Message
from providers.api.errors import ProviderError
from providers.api.history import HistoryConfig, HistoryProvider
from providers.api.session import State


class DatabaseConfig(HistoryConfig):
    """Where the database is."""

    path: str
    """Relative to the folder that the session works in."""


class DatabaseHistoryProvider(HistoryProvider):
    """Keeps each conversation under a key: the state's `history_key`, or else the session's id."""

    config_type = DatabaseConfig

    async def get_messages(self, session_id: str | None, *, state: State) -> Sequence[Message]:
        """The earlier turns."""
        return await asyncio.to_thread(self._load, self._key(session_id, state))

    async def save_messages(self, session_id: str | None, messages: Sequence[Message], *, state: State) -> None:
        """Keep some more."""
        await asyncio.to_thread(self._save, self._key(session_id, state), messages)

    @staticmethod
    def _key(session_id: str | None, state: State) -> str:
        return str(state.get("history_key", session_id or "default"))

    def _load(self, key: str) -> list[Message]:
        with closing(self._open()) as database:
            rows = database.execute("SELECT message FROM turns WHERE key = ? ORDER BY position", (key,))
            return [Message.model_validate_json(row) for (row,) in rows]

    def _save(self, key: str, messages: Sequence[Message]) -> None:
        rows = [(key, message.message_id, message.model_dump_json(exclude_none=True)) for message in messages]
        with closing(self._open()) as database, database:
            database.executemany("INSERT OR IGNORE INTO turns (key, id, message) VALUES (?, ?, ?)", rows)

    def _open(self) -> sqlite3.Connection:
        cwd = self.surroundings.cwd
        if cwd is None:
            raise ProviderError("the session works in no folder; give it a cwd")
        database = sqlite3.connect(Path(cwd, cast("DatabaseConfig", self.config).path))
        database.execute(
            "CREATE TABLE IF NOT EXISTS turns (position INTEGER PRIMARY KEY, key, id, message, UNIQUE (key, id))"
        )
        return database
