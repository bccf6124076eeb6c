"""A history of one's own: earlier turns come from a database, and new ones go there."""

import asyncio
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Final

from protocol.messages import Message
from providers.api.history import HistoryProvider
from providers.api.session import State

_TABLE: Final = "CREATE TABLE IF NOT EXISTS messages (id TEXT PRIMARY KEY, history_key TEXT, body TEXT)"


class DatabaseHistoryProvider(HistoryProvider):
    """Keeps messages in `history.db` in the session's working directory."""

    async def get_messages(self, session_id: str | None, *, state: State) -> Sequence[Message]:
        """The earlier turns, oldest first."""
        return await asyncio.to_thread(self._load, state.get("history_key", session_id or "default"))

    async def save_messages(self, session_id: str | None, messages: Sequence[Message], *, state: State) -> None:
        """Keep these. A host may open another session with the same key, and go on with the conversation."""
        key = state.setdefault("history_key", session_id or "default")
        await asyncio.to_thread(self._save, key, messages)  # a database blocks: never on the event loop

    def _load(self, key: str) -> Sequence[Message]:
        with closing(self._connect()) as database:
            rows = database.execute("SELECT body FROM messages WHERE history_key = ? ORDER BY rowid", [key])
            return [Message.model_validate_json(body) for (body,) in rows]

    def _save(self, key: str, messages: Sequence[Message]) -> None:
        rows = [(message.message_id, key, message.model_dump_json(by_alias=True)) for message in messages]
        with closing(self._connect()) as database, database:
            # By id, never by text: people say the same thing twice.
            database.executemany("INSERT OR IGNORE INTO messages VALUES (?, ?, ?)", rows)

    def _connect(self) -> sqlite3.Connection:
        database = sqlite3.connect(Path(self.surroundings.cwd or ".") / "history.db")
        database.execute(_TABLE)
        return database
