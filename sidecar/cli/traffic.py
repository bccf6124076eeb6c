"""Says JSON-RPC messages in one line each, for people who watch. Sends and changes nothing."""

import json
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

from sidecar_client.connection import Direction
from sidecar_client.types import JsonObject

from .output import Output

_LONGEST_SENT: Final = 600
_LONGEST_RECEIVED: Final = 200
_SILENT: Final = frozenset({"provider.started", "message.started", "message.delta", "usage.updated"})
"""Event types that are not shown: the matching `…completed` says it all."""


class Traffic:
    """Shows each message as it passes: `→` to the server, `←` from it."""

    def __init__(self, out: Output) -> None:
        self._out = out
        self._asked: dict[Any, tuple[str, float]] = {}

    def __call__(self, direction: Direction, message: JsonObject) -> None:
        """Show one message; a tracer of the client."""
        with suppress(BrokenPipeError):  # nobody watches any more: whoever writes the next line notices
            if direction == "sent":
                self._sent(message)
            else:
                self._received(message)

    def _sent(self, message: JsonObject) -> None:
        method = message.get("method", "answer")
        if "id" in message:
            self._asked[message["id"]] = (method, time.monotonic())
        self._out.line(f"  → {method} {_short(message.get('params'), _LONGEST_SENT)}".rstrip(), "cyan")

    def _received(self, message: JsonObject) -> None:
        if message.get("method") == "run/event":
            text = describe_event(message["params"])
            if text:
                self._out.line(f"  ← {text}", "magenta" if "provider" in text else "green")
        elif "method" in message:
            self._out.line(f"  ← {message['method']} {_short(message.get('params'))}".rstrip(), "green")
        else:
            method, since = self._asked.pop(message.get("id"), ("?", time.monotonic()))
            took = f"in {round((time.monotonic() - since) * 1000)} ms"
            if "error" in message:
                self._out.line(f"  ← error to {method} {took}: {_short(message['error'])}", "red")
            else:
                self._out.line(f"  ← answer to {method} {took}: {describe_answer(method, message['result'])}", "green")


def describe_answer(method: str, result: Any) -> str:
    """A result in a few words: what a watcher wants to know of it."""
    describe = _ANSWERS.get(method)
    return describe(result) if describe else _short(result) or "done"


def describe_event(event: JsonObject) -> str:
    """An event in a few words; empty if it is not worth a line."""
    kind, data = event["type"], event["data"]
    if kind in _SILENT:
        return ""
    describe = _EVENTS.get(kind)
    return f"{event['seq']:>2} {kind} {describe(data) if describe else _short(data)}".rstrip()


def _provider(data: JsonObject) -> str:
    added: JsonObject = data.get("added") or {}
    parts = [f"{added[what]} {what}" for what in ("instructions", "messages", "tools", "middleware") if added.get(what)]
    put_in = f"put in {', '.join(parts)} (~{added.get('tokens', 0)} tokens)" if parts else "put in nothing"
    shown = put_in if data["phase"] == "beforeRun" else "done"
    return f"{data['sourceId']} {data['phase']}: {shown}, {data['durationMs']:.0f} ms"


def _provider_failed(data: JsonObject) -> str:
    return f"{data['sourceId']} {data['phase']}: {data['error']['message']}"


def _message(data: JsonObject) -> str:
    text = "".join(block.get("text", "") for block in data["content"] if block["type"] == "text")
    return f"{data['role']}: {_cut(' '.join(text.split()))}"


def _end(data: JsonObject) -> str:
    usage = data["usage"]
    return f"{data['status']} ({data['stopReason']}), {usage['inputTokens']} + {usage['outputTokens']} tokens"


def _initialized(result: JsonObject) -> str:
    server, ours = result["serverInfo"], result["capabilities"]["experimental"]["sidecar"]
    return f"{server['name']} {server['version']}, protocol version {ours['protocolVersion']}"


def _opened(result: JsonObject) -> str:
    session = result["session"]
    providers = ", ".join(provider["sourceId"] for provider in result["providers"])
    return f"session {session['sessionId']}, last event {result['lastSeq']}, providers {providers}"


def _ran(result: JsonObject) -> str:
    return f"{result['status']}, the text as above, last event {result['lastSeq']}"


def _looked(result: JsonObject) -> str:
    states: JsonObject = {provider["sourceId"]: provider.get("state") or {} for provider in result.get("providers", [])}
    return f"the providers' state is {_short(states)}"


def _told(result: JsonObject) -> str:
    return f"{len(result['messages'])} messages"


_ANSWERS: Final[dict[str, Callable[[JsonObject], str]]] = {
    "initialize": _initialized,
    "createSession": _opened,
    "resumeSession": _opened,
    "run": _ran,
    "getState": _looked,
    "getHistory": _told,
}

_EVENTS: Final[dict[str, Callable[[JsonObject], str]]] = {
    "provider.completed": _provider,
    "provider.failed": _provider_failed,
    "message.completed": _message,
    "run.completed": _end,
}


def _short(value: Any, longest: int = _LONGEST_RECEIVED) -> str:
    return _cut(json.dumps(value, ensure_ascii=False), longest) if value else ""


def _cut(text: str, longest: int = _LONGEST_RECEIVED) -> str:
    return text if len(text) <= longest else f"{text[:longest]}…"
