"""The messages of sessions on a Redis server, one list each: read and added to. Which messages is decided elsewhere."""

import asyncio
import re
import uuid
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from importlib import import_module
from typing import TYPE_CHECKING, Final

from pydantic import ValidationError

from protocol.messages import Message
from providers.api.history import HistoryError

from .redis_history_server import RedisServerConfig

if TYPE_CHECKING:
    from redis.asyncio import Redis

ANSWER_S: Final = 5.0
"""So long a server may take to be connected to, and for each answer."""
MAX_MESSAGE_BYTES: Final = 16 << 20
"""Of one message as it is stored."""

_RETRIES: Final = 2
"""After a connection that broke. All that is sent may be sent twice."""

_CODES: Final = re.compile(r"\b(?:WRONGTYPE|NOPERM|NOSCRIPT|OOM|READONLY|MISCONF|MOVED|CROSSSLOT|CLUSTERDOWN|BUSY)\b")

_APPEND: Final = """
local list, ids, most = KEYS[1], KEYS[2], tonumber(ARGV[1])
if redis.call('LLEN', list) == 0 then redis.call('DEL', ids) end
local newest = redis.call('ZRANGE', ids, -1, -1, 'WITHSCORES')
local place = tonumber(newest[2] or 0)
for at = 2, #ARGV, 2 do
  place = place + 1
  if redis.call('ZADD', ids, 'NX', place, ARGV[at]) == 1 then
    redis.call('RPUSH', list, ARGV[at + 1])
  end
end
local surplus = redis.call('LLEN', list) - most
if most > 0 and surplus > 0 then
  redis.call('LTRIM', list, surplus, -1)
  redis.call('ZREMRANGEBYRANK', ids, 0, surplus - 1)
end
return redis.call('LLEN', list)
"""
"""In one step: add each message whose id is new, then drop the oldest. The first command refuses what is no list,
before anything was written."""


class RedisLists:
    """Lists of messages behind one connection, which is made when it is first needed, and again after it broke.

    Args:
        server: Where.
        prefix: Of the keys.
        most: Messages in a list; `None`: any number.
    """

    def __init__(self, server: RedisServerConfig, prefix: str, most: int | None) -> None:
        self._server = server
        self._prefix = prefix
        self._most = most or 0
        self._client: Redis | None = None
        self._known: dict[bytes, Message] = {}

    async def read(self, session_id: str) -> Sequence[Message]:
        """All messages, oldest first; none where there is no list.

        Raises:
            HistoryError: the server cannot be used, or holds there what is no list of messages.
        """
        key = f"{self._prefix}:{session_id}"
        async with self._connected(key) as client:
            rows = await client.lrange(key, 0, -1)
        known: dict[bytes, Message] = {}
        found: list[Message] = []
        for number, row in enumerate(rows, 1):
            data = row if isinstance(row, bytes) else row.encode()
            message = self._known.get(data) or _message(data)
            if message is None:
                raise HistoryError(f"{self._server.named}: element {number} of the list {key!r} is no message")
            known[data] = message
            found.append(message)
        self._known = known
        return found

    async def append(self, session_id: str, messages: Sequence[Message]) -> int:
        """Put messages at the end, those left out whose ids are there already.

        Returns:
            How many messages the list then holds.

        Raises:
            HistoryError: the server cannot be used, or refuses.
        """
        key = f"{self._prefix}:{session_id}"
        rows: list[str | bytes] = []
        for message in messages:
            rows += (message.message_id or uuid.uuid4().hex, _row(message))
        async with self._connected(key) as client:
            return int(await client.eval(_APPEND, 2, key, f"{self._prefix}.ids:{session_id}", self._most, *rows))

    async def aclose(self) -> None:
        """Close the connection. The next use makes one."""
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()

    @asynccontextmanager
    async def _connected(self, key: str) -> "AsyncGenerator[Redis]":
        """The client; what goes wrong inside is told as a `HistoryError`."""
        if self._client is None:
            url, password = self._server.address()
            self._client = await asyncio.to_thread(_client, url, password)  # the import takes its time
        from redis import exceptions

        try:
            yield self._client
        except exceptions.AuthenticationError:
            why = "refuses the user or password, or asks for one"
        except (exceptions.TimeoutError, TimeoutError):
            why = f"gave no answer within {ANSWER_S:g} seconds"
        except exceptions.BusyLoadingError:
            why = "is starting, and still loads its data"
        except (exceptions.ConnectionError, OSError):
            why = "cannot be reached"
        except exceptions.RedisError as error:
            why = f"refuses to use the list {key!r} ({_code(error)})"
        else:
            return
        raise HistoryError(f"{self._server.named} {why}") from None  # the client's text may repeat what was sent


def _client(url: str, password: str | None) -> "Redis":
    make: Callable[..., Redis] = import_module("redis.asyncio").Redis.from_url
    from redis.asyncio.retry import Retry
    from redis.backoff import ExponentialBackoff
    from redis.exceptions import ConnectionError as Broken

    retry = Retry(ExponentialBackoff(cap=0.2, base=0.05), _RETRIES, supported_errors=(Broken,))
    return make(url, password=password, socket_timeout=ANSWER_S, socket_connect_timeout=ANSWER_S, retry=retry)


def _code(error: Exception) -> str:
    """What a server calls its refusal; of its text no more, which may repeat arguments."""
    found = _CODES.search(str(error))
    return found[0] if found else type(error).__name__


def _message(data: bytes) -> Message | None:
    try:
        return Message.model_validate_json(data)
    except ValidationError:
        return None


def _row(message: Message) -> bytes:
    try:
        row = message.model_dump_json(exclude_none=True).encode()
    except (ValueError, RecursionError) as error:
        raise HistoryError(f"a message cannot be written as JSON: {type(error).__name__}") from None
    if len(row) > MAX_MESSAGE_BYTES:
        raise HistoryError(f"a message is longer than {MAX_MESSAGE_BYTES} bytes")
    return row
