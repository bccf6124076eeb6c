"""One process that speaks ACP, from its first message to its exit code. Knows no method."""

import asyncio
from collections.abc import Sequence
from contextlib import AsyncExitStack
from typing import Final, NamedTuple

from sidecar.telemetry import LOGGER, configure_logging, log_strays
from sidecar.transport import signals
from sidecar.transport.connection import Connection
from sidecar.transport.parent import ParentWatch
from sidecar_client.types import CreateKeywords

from .front import PROMPT, Front
from .peer import Peer

ANSWER_S: Final = 5.0
"""At the end of the input, requests that are no prompts get this long to be answered."""
BOTH_ENDS_S: Final = 0.5
"""So long after the end of its reading the end of an editor's talking is waited for."""
FLUSH_S: Final = 2.0
"""What is written last gets this long to be read."""


class _End(NamedTuple):
    code: int
    why: str


async def serve(inbound: int, outbound: int, arguments: Sequence[str], new_session: CreateKeywords) -> int:
    """Serve one client on two descriptors. Its end of input is the end: runs that go on are interrupted and stored.

    Args:
        inbound: Where its messages come from.
        outbound: Where ours go to.
        arguments: What follows `agent-sidecar serve`.
        new_session: Params of `createSession` that every new session has.

    Returns:
        The exit code: 0 at the end of the input, 1 where nobody reads any more, 128 + n on a signal.
    """
    configure_logging("warning")
    ended: asyncio.Future[_End] = asyncio.get_running_loop().create_future()
    log_strays(asyncio.get_running_loop())

    def end(code: int, why: str) -> None:
        if not ended.done():
            ended.set_result(_End(code, why))

    def gone(why: str) -> None:
        """An editor that leaves closes both pipes, in whichever order; one that still talks does not read."""
        asyncio.get_running_loop().call_later(BOTH_ENDS_S, end, 1, why)

    connection = Connection(inbound, outbound, framing="ndjson")
    peer = Peer(connection, on_eof=lambda: end(0, "end of input"), on_gone=gone)
    parent = ParentWatch(lambda why: end(1, why))
    restore = signals.install(lambda number: end(128 + number, f"signal {number}"))
    parent.watch_parent()
    try:
        async with AsyncExitStack() as sidecar:
            await peer.start(Front(peer, sidecar, arguments, new_session))
            how = await ended
            LOGGER.info("ending: %s", how.why)
            await peer.answered(ANSWER_S, besides={PROMPT})
        await peer.answered(ANSWER_S)
        await connection.flush(FLUSH_S)
        await connection.aclose()
    finally:
        parent.close()
        restore()
    return how.code
