"""The sidecar's agents in process, with a client that answers at once: times its own runs when it is asked.

A framed request, for example `{"rounds": 20, "turns": 200}`, runs an agent so often in one session, and is answered
with `{"seconds": …, "cpu": …}`: wall clock, and CPU time of the process. No store and no wire are part of it. Fields
besides `rounds`: `turns` that the session has behind it, a `tool` call in each run, an answer of so many `chunks`, and
twenty `idle` providers (`plain`: without hooks; `hooks`: with hooks that do nothing).
"""

import asyncio
import json
import sys
import time
from collections.abc import AsyncGenerator, Sequence
from dataclasses import replace
from typing import Any, Final

from protocol.agents import AgentSpec, RunOptions
from protocol.messages import FunctionCallBlock, Message, Source, text_message
from providers.api.context import OfferedTool
from providers.api.ports import CallRequested, ChatClient, ChatRequest, ChatUpdate, Finished, ModelTraits, TextDelta
from providers.api.provider import ContextProvider, Surroundings
from providers.api.session import Session
from providers.api.tool import tool
from sidecar.agents.binding import BoundProvider
from sidecar.agents.catalog import ResolvedAgent
from sidecar.agents.parts import Parts
from sidecar.agents.pipeline import HookStats
from sidecar.agents.plan import AgentPlan, SessionSettings, make_plan
from sidecar.agents.run_request import RunRequest
from sidecar.agents.runner import Execution
from sidecar.agents.sink import Draft

IDLE: Final = 20
_USER: Final = Source(type="external")
_before: dict[int, tuple[Message, ...]] = {}


class AtOnce:
    """Answers with the last text that it is shown, or in `chunks` pieces. If there is a tool, it is called first."""

    name = "bench:at-once"
    traits = ModelTraits()

    def __init__(self, chunks: int) -> None:
        self._chunks = chunks

    async def stream(self, request: ChatRequest) -> AsyncGenerator[ChatUpdate, None]:
        last = request.messages[-1]
        if request.tools and last.role != "tool":
            yield CallRequested(FunctionCallBlock(call_id="call", name="add", arguments={"a": 1, "b": 2}))
            yield Finished("toolCalls")
            return
        for _ in range(self._chunks):
            yield TextDelta("word ")
        if not self._chunks:
            yield TextDelta(last.text or "3")
        yield Finished("stop")


class OneModel:
    """Where the runs find it."""

    def __init__(self, client: ChatClient) -> None:
        self._client = client

    def get(self, model: str) -> ChatClient:
        del model
        return self._client

    async def ready(self, model: str) -> ChatClient:
        return self.get(model)

    async def default(self) -> str:
        return self._client.name


class NoSink:
    """Drops what it gets."""

    congested = False

    def ephemeral(self, event: str, data: dict[str, Any]) -> None:
        del event, data

    def stage(self, draft: Draft) -> None:
        del draft

    async def commit(self, *drafts: Draft) -> bool:
        del drafts
        return True

    async def breathe(self) -> None:
        return None

    def warn(self, kind: str, message: str, *, source_id: str | None = None) -> None:
        del kind, message, source_id


class Transcript:
    """A session's messages, kept in memory as the sidecar keeps them between runs."""

    def __init__(self) -> None:
        self.messages: tuple[Message, ...] = ()

    async def load(self, session_id: str) -> Sequence[Message]:
        del session_id
        return self.messages


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


KINDS: Final[dict[str, type[ContextProvider]]] = {"plain": ContextProvider, "hooks": EmptyHooks}


class Conversation:
    """One session, and the agent that it talks to."""

    def __init__(self, *, has_tool: bool, chunks: int, idle: str) -> None:
        self.transcript = Transcript()
        self._session = Session("bench")
        self._plan = _plan(self.transcript, has_tool=has_tool, idle=idle)
        self._models = OneModel(AtOnce(chunks))
        self._stats: dict[str, HookStats] = {}

    async def say(self, number: int, text: str) -> None:
        """One run."""
        said = text_message("user", text, message_id=f"input-{number}", source=_USER)
        request = RunRequest(f"run-{number}", (said,), RunOptions())
        run = Execution(self._plan, request, self._session, "bench", self._models, NoSink(), self._stats)
        await run.run()
        self.transcript.messages = (*self.transcript.messages, said, *run.progress.messages)


def _plan(transcript: Transcript, *, has_tool: bool, idle: str) -> AgentPlan:
    tools = (OfferedTool(add, Source(type="agent", source_id="bench")),) if has_tool else ()
    plan = make_plan(
        ResolvedAgent("bench", AgentSpec()),
        SessionSettings(),
        Surroundings(history=transcript),
        parts=Parts(tools=tools),
    )
    added = [_bound(KINDS[idle](f"idle-{number}")) for number in range(IDLE if idle else 0)]
    return replace(plan, providers=(*plan.providers, *added))


def _bound(provider: ContextProvider) -> BoundProvider:
    return BoundProvider(
        type="idle",
        source_id=provider.source_id,
        state_key=provider.state_key,
        provider=provider,
        on_error=provider.on_error,
        timeout_ms=10_000,
        independent=False,
        position=provider.position,
    )


async def run(asked: dict[str, Any]) -> dict[str, float]:
    """Wall clock and CPU time of all of them, in seconds."""
    conversation = Conversation(
        has_tool=asked.get("tool", False), chunks=asked.get("chunks", 0), idle=asked.get("idle", "")
    )
    conversation.transcript.messages = await _told(asked.get("turns", 0))
    began, spent = time.perf_counter(), time.process_time()
    for number in range(asked["rounds"]):
        await conversation.say(number, f"hello {number}")
    return {"seconds": time.perf_counter() - began, "cpu": time.process_time() - spent}


async def _told(turns: int) -> tuple[Message, ...]:
    """What was said in some turns, which are run once."""
    if turns not in _before:
        teller = Conversation(has_tool=False, chunks=0, idle="")
        for number in range(turns):
            await teller.say(number, f"before {number}")
        _before[turns] = teller.transcript.messages
    return _before[turns]


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
