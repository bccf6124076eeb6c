"""A history in files: JSON Lines, one message a line, one file a session. How a file is used is in `message_file`."""

import asyncio
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Final, Self, Unpack, cast

from pydantic import Field, model_validator

from protocol.base import Whole
from protocol.messages import Message
from providers.api.context import SessionContext
from providers.api.history import HistoryConfig, HistoryError, HistoryFlags, HistoryProvider
from providers.api.provider import ProviderConfig, Surroundings
from providers.api.session import State

from .file_names import file_name
from .message_file import MessageFile

MAX_FILE_BYTES: Final = 64 << 20
"""Of one session's file, unless the entry says otherwise."""


class FileHistoryConfig(HistoryConfig):
    """Where the files are, and what they hold."""

    path: Annotated[str, Field(min_length=1)]
    """The folder; relative to the session's working directory, and then inside it. Each history needs its own."""
    max_file_bytes: Annotated[Whole, Field(ge=1 << 10, le=1 << 30)] = MAX_FILE_BYTES
    """Of one session's file. A longer one is neither read nor added to."""

    @model_validator(mode="after")
    def _stays_inside(self) -> Self:
        path = Path(self.path)
        if "\0" in self.path or not path.name or ".." in path.parts:
            raise ValueError("path must name a folder, and no step of it may be '..'")
        return self


class FileHistoryProvider(HistoryProvider):
    """Keeps each session's messages in a file of its own, which other programs may read.

    Messages with ids are kept once, however often they are given; those without are all kept. The folder and the
    files are the user's alone; links are not followed.
    """

    config_type = FileHistoryConfig

    def __init__(
        self,
        source_id: str,
        config: ProviderConfig | None = None,
        surroundings: Surroundings | None = None,
        **flags: Unpack[HistoryFlags],
    ) -> None:
        super().__init__(source_id, config, surroundings, **flags)
        self._file: tuple[str, MessageFile] | None = None

    @property
    def warning(self) -> str | None:
        """What was wrong with the file's end when it was last used; no message is missing for it."""
        return self._file[1].torn if self._file is not None else None

    async def load(self, context: SessionContext, state: State) -> None:
        """Put the earlier turns before the model, and tell of a torn end."""
        await super().load(context, state)
        if self.warning is not None:
            context.warn(self, self.warning)

    async def get_messages(self, session_id: str | None, *, state: State) -> Sequence[Message]:
        """What the session's file holds; nothing in a run without a session.

        Raises:
            HistoryError: the file cannot be used; the text names it, and the line if one is damaged.
        """
        return () if session_id is None else await asyncio.to_thread(self._file_of(session_id).read)

    async def save_messages(self, session_id: str | None, messages: Sequence[Message], *, state: State) -> None:
        """Append to the session's file; nothing in a run without a session. Returns when it is durable.

        Raises:
            HistoryError: the file cannot be used, or is full; nothing of these messages was added.
        """
        if session_id is not None:
            await asyncio.to_thread(self._file_of(session_id).append, messages)

    def _file_of(self, session_id: str) -> MessageFile:
        if self._file is None or self._file[0] != session_id:
            self._file = session_id, self._opened(session_id)
        return self._file[1]

    def _opened(self, session_id: str) -> MessageFile:
        config = cast("FileHistoryConfig", self.config)
        if os.open not in os.supports_dir_fd:
            raise HistoryError("file_history needs a POSIX system")
        name = file_name(session_id) + ".jsonl"
        path = Path(config.path).expanduser()
        if path.is_absolute():
            return MessageFile(path, None, name, config.max_file_bytes)
        if self.surroundings.cwd is None:
            raise HistoryError("a relative path needs a session with a working directory")
        return MessageFile(Path(self.surroundings.cwd), path, name, config.max_file_bytes)
