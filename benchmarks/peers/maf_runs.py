"""Microsoft's agent-framework in process, with a client that answers at once: times its own runs when it is asked.

A framed request `{"sessions": S, "rounds": R, "history": true}` runs R rounds of one `Agent.run` in each of S sessions
at once, and is answered with `{"seconds": …}`. Nothing is streamed and nothing is stored: less than a sidecar does.
"""

import asyncio
import json
import sys
import time
from collections.abc import Awaitable
from typing import Any

from agent_framework import (
    Agent,
    BaseChatClient,
    ChatMiddlewareLayer,
    ChatResponse,
    FunctionInvocationLayer,
    InMemoryHistoryProvider,
    Message,
)


class AtOnce(FunctionInvocationLayer[Any], ChatMiddlewareLayer[Any], BaseChatClient[Any]):
    """Answers with the last text that it is shown; composed as a client for agents is."""

    def _inner_get_response(
        self, *, messages: Any, stream: bool, options: Any, **ignored: Any
    ) -> Awaitable[ChatResponse[Any]]:
        async def answer() -> ChatResponse[Any]:
            return ChatResponse(messages=[Message(role="assistant", contents=[messages[-1].text])])

        return answer()


async def run(sessions: int, rounds: int, *, history: bool) -> float:
    """Seconds for all of them."""
    providers = [InMemoryHistoryProvider()] if history else []
    agent = Agent(AtOnce(), name="peer", context_providers=providers)
    opened = [agent.create_session() if history else None for _ in range(sessions)]
    began = time.perf_counter()
    for _ in range(rounds):
        await asyncio.gather(*(agent.run("hello", session=session) for session in opened))
    return time.perf_counter() - began


def serve(runner: asyncio.Runner) -> None:
    """Until stdin ends."""
    while header := sys.stdin.buffer.readline():
        sys.stdin.buffer.readline()
        asked = json.loads(sys.stdin.buffer.read(int(header.split(b":")[1])))
        seconds = runner.run(run(asked["sessions"], asked["rounds"], history=asked["history"]))
        body = json.dumps({"seconds": seconds}).encode()
        sys.stdout.buffer.write(b"Content-Length: %d\r\n\r\n%b" % (len(body), body))
        sys.stdout.buffer.flush()


if __name__ == "__main__":
    with asyncio.Runner() as kept:
        serve(kept)
