"""Says what the model saw in each call of a run, as tables for people. Asks nobody: the answer is given to it."""

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Final

from sidecar_client.types import ExplainedCall, ExplainRunResult, ProviderPhase, SeenMessage, Source, Usage

from .output import Output

COLUMNS: Final = ("what", "from", "tokens", "text")
_TEXT_WIDTH: Final = 72
"""Characters of a text that are shown."""

Row = tuple[str, str, str, str]


def write_explanation(explanation: ExplainRunResult, out: Output) -> None:
    """Write a heading and a table for each call, then one for the providers' hooks."""
    if not explanation["calls"]:
        out.line("the run made no model call", "bold")
    for call in explanation["calls"]:
        out.line()
        out.line(call_heading(call), "bold")
        out.table(COLUMNS, call_rows(call))
    if explanation["providers"]:
        out.line()
        out.line("providers", "bold")
        out.table(("provider", "phase", "ms", "error"), map(_phase_row, explanation["providers"]))


def call_heading(call: ExplainedCall) -> str:
    """A call in one line: its model, who made it, its time and its tokens."""
    parts = [f"call {call['index']}: {call['model']}"]
    if "by" in call:
        parts.append(f"by provider {call['by']}")
    time = f"{call['durationMs']} ms"
    if "firstTokenMs" in call:
        time += f", first word after {call['firstTokenMs']} ms"
    parts.append(time)
    if "usage" in call:
        parts.append(_usage(call["usage"]))
    return " · ".join(parts)


def call_rows(call: ExplainedCall) -> Iterator[Row]:
    """What a call saw, in the order in which it saw it; at last what was kept from it."""
    for one in call["instructions"]:
        yield "instruction", _source(one["source"]), str(one["tokens"]), _short(one["text"])
    for is_plain, group in groupby(call["messages"], key=_plain_key):
        if is_plain is None:
            yield from map(_message_row, group)
        else:
            yield _messages_row(list(group))
    for tool in call["tools"]:
        yield "tool", _source(tool["source"]), str(tool["tokens"]), tool["name"]
    for (what, by), gone in groupby(call.get("removed", ()), key=lambda one: (one["what"], _source(one["by"]))):
        refs = [one["ref"] for one in gone]
        yield f"removed {what}" + ("" if len(refs) == 1 else f"s ({len(refs)})"), by, "", _short(", ".join(refs))


def _plain_key(message: SeenMessage) -> str | None:
    """What messages of a history have in common that stand together in one row."""
    return _source(message["source"]) if message["source"]["type"] == "history" else None


def _messages_row(messages: Sequence[SeenMessage]) -> Row:
    if len(messages) == 1:
        return _message_row(messages[0])
    tokens = sum(message["tokens"] for message in messages)
    return f"{len(messages)} messages", _source(messages[0]["source"]), str(tokens), ""


def _message_row(message: SeenMessage) -> Row:
    text = _short(message.get("text", ""))
    return f"{message['role']} message", _source(message["source"]), str(message["tokens"]), text


def _phase_row(phase: ProviderPhase) -> Row:
    error = _short(phase["error"]["message"]) if "error" in phase else ""
    return phase["sourceId"], phase["phase"], f"{phase['durationMs']:.1f}", error


def _source(source: Source) -> str:
    part = source.get("sourceType") if source["type"] != "provider" else None  # a provider's is its class
    return " ".join(filter(None, (source["type"], source.get("sourceId"), part)))


def _usage(usage: Usage) -> str:
    about = "about " if usage.get("estimated") else ""
    return f"{about}{usage.get('inputTokens', 0)} tokens in, {usage.get('outputTokens', 0)} out"


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _TEXT_WIDTH else f"{line[: _TEXT_WIDTH - 1]}…"
