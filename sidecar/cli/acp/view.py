"""What an ACP client is shown of a session: run events become `session/update`s, live and replayed. Sends nothing."""

import asyncio
from collections.abc import Callable
from typing import Final

from protocol.base import Json, JsonObject
from sidecar_client.types import RunEvent

from .content import shown, text_block, tool_content

OUTPUT_KEPT: Final = 10_000
"""Characters of what a tool tells while it works that are shown, from the end."""

TOOL_KINDS: Final = frozenset(
    {"read", "edit", "delete", "move", "search", "execute", "think", "fetch", "switch_mode", "other"}
)
_PLAN_STATUS: Final = {"inProgress": "in_progress"}
_PARKED: Final = ""
"""Stands for the run of a call that waits for consent after its run has ended: another run will go on with it."""


class SessionView:
    """One session, as far as its client has been shown it.

    A call's id is unique in ACP's session, but a model's id is not: the run's stands before it.

    Attributes:
        seq: That of the last durable event.
        active_run: The run that goes on; None where none does.

    Args:
        notices: Whether the client shows notices.
        replaying: Whether the events to come are a replay: then what the user said is shown, too.
    """

    def __init__(self, *, notices: bool = False, replaying: bool = False) -> None:
        self.seq = 0
        self.active_run: str | None = None
        self._notices = notices
        self._replaying = replaying
        self._streamed: set[str] = set()
        self._reasoned: set[str] = set()
        self._calls: dict[tuple[str, str], str] = {}
        self._output: dict[str, str] = {}
        self._news = asyncio.Event()
        self._shows: dict[str, Callable[[RunEvent], list[JsonObject]]] = {
            "run.started": self._run_started,
            "message.delta": self._message_delta,
            "message.completed": self._message,
            "reasoning.delta": self._reasoning_delta,
            "reasoning.completed": self._reasoning,
            "tool.started": self._tool_started,
            "tool.delta": self._tool_delta,
            "tool.completed": self._tool_completed,
            "plan.updated": self._plan,
            "mode.changed": self._mode,
            "usage.updated": self._usage,
            "warning": self._warning,
            "run.completed": self._run_completed,
        }

    def updates(self, event: RunEvent) -> list[JsonObject]:
        """What the client is shown of an event, in order. What a delegated agent says is not: its caller's call is."""
        if "ephemeral" not in event:
            self.seq = event["seq"]
            self._news.set()
        if "parentRunId" in event and not event["type"].startswith(("tool.", "run.")):
            return []
        show = self._shows.get(event["type"])
        return [] if show is None else show(event)

    async def replayed(self, through: int) -> None:
        """Wait until the events up to this one have come; what comes then is live."""
        while self.seq < through:
            self._news.clear()
            await self._news.wait()
        self._replaying = False

    def call_id(self, run_id: str, call_id: str) -> str:
        """The id under which the client knows a call."""
        return self._known(run_id, call_id) or f"{run_id}:{call_id}"

    def _known(self, run_id: str, call_id: str) -> str | None:
        return self._calls.get((run_id, call_id)) or self._calls.get((_PARKED, call_id))

    # ---- what is said ---------------------------------------------------------------------------------------------

    def _message_delta(self, event: RunEvent) -> list[JsonObject]:
        message_id = event["data"]["messageId"]
        self._streamed.add(message_id)
        return [_chunk("agent_message_chunk", message_id, text_block(event["data"]["text"]))]

    def _message(self, event: RunEvent) -> list[JsonObject]:
        """The whole message: what was streamed is not said twice, and a live prompt not given back."""
        data = event["data"]
        message_id, role = data["messageId"], data["role"]
        if role == "user":
            kind = "user_message_chunk" if self._replaying else None
        else:
            kind = "agent_message_chunk" if role == "assistant" else None
        blocks = shown(data["content"]) if kind is not None else []
        if message_id in self._streamed:
            self._streamed.discard(message_id)
            blocks = [block for block in blocks if block["type"] != "text"]
        return [_chunk(kind or "", message_id, block) for block in blocks if block.get("text") != ""]

    def _reasoning_delta(self, event: RunEvent) -> list[JsonObject]:
        message_id = event["data"]["messageId"]
        self._reasoned.add(message_id)
        return [_chunk("agent_thought_chunk", message_id, text_block(event["data"]["text"]))]

    def _reasoning(self, event: RunEvent) -> list[JsonObject]:
        message_id = event["data"]["messageId"]
        if message_id in self._reasoned:
            self._reasoned.discard(message_id)
            return []
        return [_chunk("agent_thought_chunk", message_id, text_block(event["data"]["text"]))]

    # ---- what is done ---------------------------------------------------------------------------------------------

    def _tool_started(self, event: RunEvent) -> list[JsonObject]:
        data = event["data"]
        key = (event.get("runId", ""), data["callId"])
        status = "pending" if data["status"] == "pending" else "in_progress"
        known = self._calls.get(key) if "parentRunId" in event else self._known(*key)
        if known is not None:
            return [{"sessionUpdate": "tool_call_update", "toolCallId": known, "status": status}]
        shown_as = self._calls[key] = f"{key[0]}:{key[1]}"
        begun = {"sessionUpdate": "tool_call", "toolCallId": shown_as, "status": status, "rawInput": data["arguments"]}
        return [{**begun, **described(data)}]

    def _tool_delta(self, event: RunEvent) -> list[JsonObject]:
        """ACP replaces a call's content, so everything that was told so far is sent again."""
        shown_as = self.call_id(event.get("runId", ""), event["data"]["callId"])
        told = (self._output.get(shown_as, "") + event["data"]["text"])[-OUTPUT_KEPT:]
        self._output[shown_as] = told
        content = tool_content([text_block(told)])
        return [{"sessionUpdate": "tool_call_update", "toolCallId": shown_as, "content": content}]

    def _tool_completed(self, event: RunEvent) -> list[JsonObject]:
        data = event["data"]
        shown_as = self.call_id(event.get("runId", ""), data["callId"])
        is_known = shown_as in self._calls.values()
        self._calls = {key: other for key, other in self._calls.items() if other != shown_as}
        self._output.pop(shown_as, None)
        ended: JsonObject = {
            "sessionUpdate": "tool_call_update" if is_known else "tool_call",
            "toolCallId": shown_as,
            "status": "completed" if data["status"] == "completed" else "failed",
            "content": tool_content(data["content"]),
            "_meta": {"sidecar": {"status": data["status"], "durationMs": data["durationMs"]}},
        }
        if not is_known:
            ended.update(described(data))
        if data.get("structuredContent") is not None:
            ended["rawOutput"] = data["structuredContent"]
        return [ended]

    def _run_started(self, event: RunEvent) -> list[JsonObject]:
        if "parentRunId" not in event:
            self.active_run = event.get("runId")
        return []

    def _run_completed(self, event: RunEvent) -> list[JsonObject]:
        ended = event.get("runId", "")
        if ended == self.active_run:
            self.active_run = None
        parked = event["data"]["stopReason"] == "inputRequired"
        for run_id, call_id in [key for key in self._calls if key[0] == ended]:
            shown_as = self._calls.pop((run_id, call_id))
            if parked:
                self._calls[_PARKED, call_id] = shown_as
        return []

    # ---- what else there is to know -------------------------------------------------------------------------------

    def _plan(self, event: RunEvent) -> list[JsonObject]:
        entries = [
            {
                "content": entry["title"],
                "priority": "medium",
                "status": _PLAN_STATUS.get(entry["status"], entry["status"]),
            }
            for entry in event["data"]["entries"]
        ]
        return [{"sessionUpdate": "plan", "entries": entries}]

    def _mode(self, event: RunEvent) -> list[JsonObject]:
        return [{"sessionUpdate": "current_mode_update", "currentModeId": event["data"]["mode"]}]

    def _usage(self, event: RunEvent) -> list[JsonObject]:
        """ACP counts what stands in the model's context, and has no word for "not known"."""
        used, size = event["data"].get("contextUsed"), event["data"].get("contextSize")
        if used is None or size is None:
            return []
        return [{"sessionUpdate": "usage_update", "used": used, "size": size}]

    def _warning(self, event: RunEvent) -> list[JsonObject]:
        return [notice(event["data"]["message"])] if self._notices else []


def described(data: JsonObject) -> JsonObject:
    """Title and kind of a call, for people."""
    return {"title": data.get("title") or data["name"], "kind": tool_kind(data.get("kind"))}


def tool_kind(kind: Json) -> str:
    """A tool's kind in ACP's words."""
    return kind if isinstance(kind, str) and kind in TOOL_KINDS else "other"


def notice(text: str) -> JsonObject:
    """A warning for the user."""
    return {"sessionUpdate": "notice", "severity": "warning", "title": text or "warning"}


def _chunk(kind: str, message_id: str, block: JsonObject) -> JsonObject:
    return {"sessionUpdate": kind, "messageId": message_id, "content": block}
