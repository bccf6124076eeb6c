"""Says what is known of a session as text: its list row, its state, its messages. Asks for pages, changes nothing."""

import json
from collections.abc import AsyncIterator
from typing import Any, Final

from sidecar_client import SidecarClient
from sidecar_client.types import GetHistoryParams, GetStateResult, JsonObject, Message, SessionInfo

COLUMNS: Final = ("session", "title", "agent", "model", "updated", "status")
_PAGE: Final = 1_000


def row(session: SessionInfo) -> tuple[str, ...]:
    """A session in the columns of the list; each cell is one line."""
    cells = (
        session["sessionId"],
        session.get("title", ""),
        session["agent"],
        session.get("model", ""),
        session["updatedAt"],
        session["status"],
    )
    return tuple(" ".join(cell.split()) for cell in cells)


def describe_state(state: GetStateResult) -> str:
    """What `getState` told, a line for each thing that is there."""
    session: JsonObject = {**state.get("session", {})}
    usage = state.get("usage")
    shown = ("sessionId", "title", "agent", "model", "cwd", "createdAt", "updatedAt", "status")
    lines = [f"{key}: {session[key]}" for key in shown if key in session]
    if usage is not None:
        lines.append(f"tokens: {usage.get('inputTokens', 0)} in, {usage.get('outputTokens', 0)} out")
    own = {provider["sourceId"] for provider in state.get("providers", [])}
    lines += [
        f"provider {provider['sourceId']} ({provider['type']}): {_json(provider.get('state') or {})}"
        for provider in state.get("providers", [])
    ]
    lines += [f"state {key}: {_json(value)}" for key, value in state.get("state", {}).items() if key not in own]
    return "".join(f"{line}\n" for line in lines)


def describe_message(message: Message) -> str:
    """A message of a transcript: who, and what."""
    blocks: list[Any] = list(message["content"])
    return f"{message.get('authorName', message['role'])}: {' '.join(filter(None, map(_block, blocks)))}"


async def transcript(session_id: str, client: SidecarClient) -> AsyncIterator[Message]:
    """Every message of a session, open here or not, oldest first."""
    params = GetHistoryParams(sessionId=session_id, limit=_PAGE)
    while True:
        page = await client.request("getHistory", {**params})
        for message in page["messages"]:
            yield message
        if "nextCursor" not in page:
            return
        params["cursor"] = page["nextCursor"]


def _block(block: JsonObject) -> str:
    match block["type"]:
        case "text":
            return block["text"]
        case "functionCall":
            return f"[call {block['name']} {_json(block['arguments'])}]"
        case "functionResult":
            return f"[result {' '.join(map(_block, block['content']))}]"
        case "approvalRequest":
            return f"[asks for consent to {block['name']} {_json(block['arguments'])}]"
        case "approvalResponse":
            return "[consent]" if block["approved"] else f"[no consent {block.get('message', '')}".rstrip() + "]"
        case kind:
            return f"[{kind}]"


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
