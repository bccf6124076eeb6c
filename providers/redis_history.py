"""A history in Redis or Valkey: one list a session, which other programs may read. It sends no commands itself."""

from collections.abc import Sequence
from types import TracebackType
from typing import Annotated, Final, Self, Unpack, cast

from pydantic import Field

from protocol.base import Whole
from protocol.messages import Message
from providers.api.context import SessionContext
from providers.api.history import HistoryConfig, HistoryFlags, HistoryProvider
from providers.api.provider import ProviderConfig, Surroundings
from providers.api.session import State

from .redis_history_list import RedisLists
from .redis_history_server import RedisServerConfig

KEY_PREFIX: Final = "agent_sidecar:history"
"""Before a session's id, unless the entry says otherwise."""

_LENGTH: Final = "length"
"""In the provider's state: how many messages the server held after the last save."""


class RedisHistoryConfig(RedisServerConfig, HistoryConfig):
    """Where the server is, under which keys the messages are, and which are kept."""

    key_prefix: Annotated[str, Field(min_length=1, max_length=256, pattern=r"^[!-~]+$")] = KEY_PREFIX
    """A session's list is `PREFIX:SESSION_ID`, and the ids that it holds are `PREFIX.ids:SESSION_ID`."""
    max_messages: Annotated[Whole, Field(ge=1, le=1_000_000)] | None = None
    """Messages of a session; the oldest go first. Default: all are kept."""


class RedisHistoryProvider(HistoryProvider):
    """Keeps each session's messages in a list of a Redis or Valkey server.

    Messages with ids are kept once, however often they are given. What is saved is there as a whole or not at all.
    How safe it is from then on is the server's affair: one that forgets is noticed, and the run is warned.
    """

    config_type = RedisHistoryConfig

    def __init__(
        self,
        source_id: str,
        config: ProviderConfig,
        surroundings: Surroundings | None = None,
        **flags: Unpack[HistoryFlags],
    ) -> None:
        super().__init__(source_id, config, surroundings, **flags)
        settings = cast("RedisHistoryConfig", self.config)
        self._lists = RedisLists(settings, settings.key_prefix, settings.max_messages)
        self._warning: str | None = None

    async def __aenter__(self) -> Self:
        """Nothing is opened before it is needed: a server that is down is told by the hook that needs it."""
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the connection."""
        await self._lists.aclose()

    async def load(self, context: SessionContext, state: State) -> None:
        """Put the earlier turns before the model, and tell of those that the server has lost."""
        await super().load(context, state)
        if self._warning is not None:
            context.warn(self, self._warning)

    async def get_messages(self, session_id: str | None, *, state: State) -> Sequence[Message]:
        """What the session's list holds; nothing in a run without a session.

        Raises:
            HistoryError: the server cannot be used, or what it holds is no history; the text names the place.
        """
        self._warning = None
        if session_id is None:
            return ()
        messages = await self._lists.read(session_id)
        expected = self._expected(state)
        if len(messages) < expected:
            self._warning = (
                f"the server has lost messages of this session: {expected} were kept, {len(messages)} are there"
            )
        return messages

    async def save_messages(self, session_id: str | None, messages: Sequence[Message], *, state: State) -> None:
        """Add to the session's list, all at once; nothing in a run without a session.

        Raises:
            HistoryError: the server cannot be used, or refuses. If no answer came, they may be there all the same;
                given again with their ids, they are not doubled.
        """
        if session_id is not None:
            state[_LENGTH] = await self._lists.append(session_id, messages)

    def _expected(self, state: State) -> int:
        length: object = state.get(_LENGTH)
        return length if isinstance(length, int) else 0
