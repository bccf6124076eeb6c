"""`demo`: a dialogue with the real server over pipes, a kill -9 in the middle, and a check of what is learnt.

It promises what is learnt, never the model's prose.
"""

import argparse
import asyncio
import tempfile
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Final, NamedTuple

from sidecar_client import RpcError, Session, SidecarClient
from sidecar_client.types import AgentSpec, JsonObject

from .command import Arguments, Command, CommandError, serve_arguments
from .output import Output, stdout
from .traffic import Traffic

EMBEDDED_MODEL: Final = "embedded:smollm2-135m"
_SOURCE: Final = "user_info"
_FIELDS: Final = {"name": {"type": "string"}, "age": {"type": "integer"}}


class _Turn(NamedTuple):
    text: str
    learnt: JsonObject
    """Everything that must be known after it."""


DIALOGUE: Final = (
    _Turn("Hello, what is the square root of 9?", {}),
    _Turn("My name is Ruaidhrí", {"name": "Ruaidhrí"}),
    _Turn("I am 20 years old", {"name": "Ruaidhrí", "age": 20}),
)

_SMALL_MODEL: Final = """\
The embedded model has 135 million parameters: enough to pull a name and an age out of a sentence, not enough to
converse, so its replies are of no use. For those point the demo at a better one:
  OPENAI_API_KEY=… agent-sidecar demo --model openai:gpt-4.1-mini
or, for any OpenAI-compatible server, set OPENAI_BASE_URL as well."""


def agent(model: str) -> AgentSpec:
    """The demo's agent: friendly, and with a structured memory for name and age."""
    return {
        "instructions": "You are a friendly assistant. Always address the user by their name.",
        "model": model,
        "contextProviders": [
            {
                "type": "structured_memory",
                "sourceId": _SOURCE,
                "config": {"schema": {"type": "object", "properties": _FIELDS}},
            }
        ],
        "options": {"maxOutputTokens": 60},
    }


def _configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--model", metavar="MODEL", default=EMBEDDED_MODEL, help=f"endpoint:model; default: {EMBEDDED_MODEL}"
    )


def _execute(arguments: Arguments) -> int:
    out = stdout()
    with tempfile.TemporaryDirectory(prefix="agent-sidecar-demo-") as folder:
        if arguments.store is None:
            arguments.store = f"sqlite:{Path(folder) / 'sessions.db'}"
        try:
            asyncio.run(_demo(arguments, out))
        except RpcError as error:
            raise CommandError(f"{error.message}{_hint(arguments.model, error)}") from error
    return 0


def _hint(model: str, error: RpcError) -> str:
    missing = error.kind in ("modelNotFound", "modelUnavailable") and model.startswith("embedded:")
    return "\nto install the embedded model: agent-sidecar setup embedded" if missing else ""


async def _demo(arguments: Arguments, out: Output) -> None:
    """Talk, kill, resume, compare.

    Raises:
        CommandError: Something else than the expected was learnt, or something was lost.
    """
    out.line("1 · A sidecar is started as a child process and spoken to by JSON-RPC over its pipes", "bold")
    async with _server(arguments, out) as client:
        session = await client.create_session(agent=agent(arguments.model))
        for turn in DIALOGUE:
            out.line(f"\nYou: {turn.text}", "bold")
            await session.run(turn.text)
            _expect(turn.learnt, await _learnt(session), f"after {turn.text!r}", out)
        before = await _texts(session)
        out.line(f"\n2 · kill -9 {client.pid}", "bold")
        client.kill()
        await client.wait_ended()
        out.line(f"  the process ended with {client.returncode}")

    out.line("\n3 · A new process resumes the session", "bold")
    async with _server(arguments, out) as client:
        session = await client.resume_session(session.session_id)
        _expect(DIALOGUE[-1].learnt, await _learnt(session), "after the kill", out)
        after = await _texts(session)
    if after != before:
        raise CommandError(f"the kill changed the history: {len(before)} messages before it, {len(after)} after it")
    out.line(f"\nNothing was lost: {len(after)} messages, and name and age as they were.", "bold green")
    if arguments.model == EMBEDDED_MODEL:
        out.line(_SMALL_MODEL, "dim")


def _server(arguments: Arguments, out: Output) -> AbstractAsyncContextManager[SidecarClient]:
    return SidecarClient.start(serve_arguments(arguments), trace=Traffic(out))


async def _learnt(session: Session) -> JsonObject:
    """What the structured memory holds, as `getState` tells."""
    state = await session.get_state(include=["providers"])
    for provider in state.get("providers", []):
        if provider["sourceId"] == _SOURCE:
            return provider.get("state") or {}
    raise CommandError(f"getState names no provider {_SOURCE!r}")


async def _texts(session: Session) -> list[tuple[str, str]]:
    """Role and text of every message of the transcript."""
    history = await session.get_history(limit=1000)
    return [
        (message["role"], "".join(block.get("text", "") for block in message["content"]))
        for message in history["messages"]
    ]


def _expect(expected: JsonObject, learnt: JsonObject, when: str, out: Output) -> None:
    if learnt != expected:
        raise CommandError(f"{when} the memory should hold {_said(expected)}, but it holds {_said(learnt)}")
    out.line(f"  learnt: {_said(learnt)}", "bold yellow")


def _said(learnt: JsonObject) -> str:
    return ", ".join(f"{field} = {value!r}" for field, value in learnt.items()) or "nothing"


COMMAND = Command(
    "demo", "watch the embedded model learn a name and an age, and survive a kill -9", _configure, _execute
)
