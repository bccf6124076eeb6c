"""Microsoft's agent-framework in process, with a client that answers at once: times its own runs when it is asked.

A framed request `{"sessions": S, "rounds": R, "history": true}` runs R rounds of one `Agent.run` in each of S sessions
at once, and is answered with `{"seconds": …, "cpu": …}`: wall clock, and CPU time of the process. Nothing is stored:
less than a sidecar does. Further fields say what the runs are like, as in `benchmarks/agent_child.py`: `turns` that the
sessions have behind them, a `tool` call in each run, a streamed answer of `chunks`, and `idle` providers.
"""

import asyncio
import json
import sys
import time
from collections.abc import AsyncIterator
from typing import Any

from agent_framework import (
    Agent,
    AgentSession,
    BaseChatClient,
    ChatMiddlewareLayer,
    ChatResponse,
    ChatResponseUpdate,
    Content,
    ContextProvider,
    FunctionInvocationLayer,
    InMemoryHistoryProvider,
    Message,
    tool,
)

IDLE = 20
_before: dict[int, list[Message]] = {}


class AtOnce(FunctionInvocationLayer[Any], ChatMiddlewareLayer[Any], BaseChatClient[Any]):
    """Answers with the last text that it is shown; composed as a client for agents is."""

    def _inner_get_response(self, *, messages: Any, stream: bool, options: Any, **ignored: Any) -> Any:
        if stream:
            return self._build_response_stream(self._pieces(int(messages[-1].text)))
        return self._answer(messages[-1], options)

    async def _answer(self, last: Message, options: Any) -> ChatResponse[Any]:
        if options.get("tools") and last.role != "tool":
            call = Content.from_function_call("call", "add", arguments={"a": 1, "b": 2})
            return ChatResponse(messages=[Message(role="assistant", contents=[call])])
        return ChatResponse(messages=[Message(role="assistant", contents=[last.text or "3"])])

    async def _pieces(self, count: int) -> AsyncIterator[ChatResponseUpdate]:
        for _ in range(count):
            yield ChatResponseUpdate(role="assistant", contents=[Content.from_text("word ")], message_id="answer")


class EmptyHooks(ContextProvider):
    """Has hooks, which do nothing."""

    async def before_run(self, **ignored: Any) -> None:
        return None

    async def after_run(self, **ignored: Any) -> None:
        return None


@tool
async def add(a: int, b: int) -> str:
    """Add two numbers."""
    return str(a + b)


KINDS = {"plain": ContextProvider, "hooks": EmptyHooks}


async def run(asked: dict[str, Any]) -> dict[str, float]:
    """Wall clock and CPU time of all of them, in seconds."""
    sessions, rounds, history = asked["sessions"], asked["rounds"], asked["history"]
    idle, chunks = asked.get("idle", ""), asked.get("chunks", 0)
    providers: list[Any] = [InMemoryHistoryProvider()] if history else []
    providers += [KINDS[idle](f"idle-{number}") for number in range(IDLE if idle else 0)]
    agent = Agent(AtOnce(), name="peer", context_providers=providers, tools=[add] if asked.get("tool") else None)
    opened = [await _session(agent, asked.get("turns", 0)) if history else None for _ in range(sessions)]
    began, spent = time.perf_counter(), time.process_time()
    for number in range(rounds):
        if chunks:
            await asyncio.gather(*(_streamed(agent, session, chunks) for session in opened))
        else:
            await asyncio.gather(*(agent.run(f"hello {number}", session=session) for session in opened))
    return {"seconds": time.perf_counter() - began, "cpu": time.process_time() - spent}


async def _streamed(agent: Agent[Any], session: AgentSession | None, chunks: int) -> None:
    stream = agent.run(str(chunks), session=session, stream=True)
    async for _ in stream:
        pass
    await stream.get_final_response()


async def _session(agent: Agent[Any], turns: int) -> AgentSession:
    """A session with some turns behind it, which were run once and are the same in each."""
    session = agent.create_session()
    if turns and turns not in _before:
        teller = agent.create_session()
        for number in range(turns):
            await agent.run(f"before {number}", session=teller)
        _before[turns] = teller.state[InMemoryHistoryProvider.DEFAULT_SOURCE_ID]["messages"]
    if turns:
        session.state[InMemoryHistoryProvider.DEFAULT_SOURCE_ID] = {"messages": list(_before[turns])}
    return session


def serve(runner: asyncio.Runner) -> None:
    """Until stdin ends."""
    while header := sys.stdin.buffer.readline():
        sys.stdin.buffer.readline()
        asked = json.loads(sys.stdin.buffer.read(int(header.split(b":")[1])))
        body = json.dumps(runner.run(run(asked))).encode()
        sys.stdout.buffer.write(b"Content-Length: %d\r\n\r\n%b" % (len(body), body))
        sys.stdout.buffer.flush()


if __name__ == "__main__":
    with asyncio.Runner() as kept:
        serve(kept)
