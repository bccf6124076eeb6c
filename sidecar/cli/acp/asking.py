"""Asks the ACP client's user: for consent to a call, and questions. Decides nothing."""

from collections.abc import Awaitable, Callable
from typing import Any, Final, Literal, cast

from acp.schema import ClientCapabilities

from protocol.base import Json, JsonObject
from sidecar.telemetry import LOGGER
from sidecar_client import Host
from sidecar_client.types import ApprovalOutcome, ElicitParams, ElicitResult, RequestApprovalParams

from .checked import member
from .content import text_block, tool_content
from .view import tool_kind

Ask = Callable[[str, JsonObject], Awaitable[Json]]
"""Sends a request to the client: method and params; its result."""
CallId = Callable[[str, str, str], str]
"""Session, run and call: the id under which the client knows the call."""

OPTION_KINDS: Final = {
    "allowOnce": "allow_once",
    "allowSession": "allow_always",
    "allowAlways": "allow_always",
    "rejectOnce": "reject_once",
    "rejectAlways": "reject_always",
}
"""ACP knows no "for this session"; the option's name says it."""
_FLAT: Final = frozenset({"string", "number", "integer", "boolean", "array"})
"""Types that a field of an ACP form can have."""


class Asking:
    """What the sidecar's host answers, where the host is an ACP client.

    Args:
        ask: Asks the client.
        call_id: Finds the id of a call.
    """

    def __init__(self, ask: Ask, call_id: CallId) -> None:
        self._ask = ask
        self._call_id = call_id

    def host(self, capabilities: ClientCapabilities | None) -> Host:
        """For `SidecarClient.start`: consent can always be asked for, questions where the client says so."""
        modes = _modes(capabilities)
        return Host(approve=self.approve, elicit=self._elicit if modes else None, elicit_modes=modes)

    async def approve(self, params: RequestApprovalParams) -> ApprovalOutcome:
        """Ask for consent to a call. Whatever is no choice of an option counts as no decision.

        Raises:
            RpcError: The client cannot be asked.
        """
        call = params["toolCall"]
        shown: JsonObject = {
            "toolCallId": self._call_id(params["sessionId"], params["runId"], call["callId"]),
            "title": params["title"],
            "kind": tool_kind(call.get("kind")),
            "status": "pending",
            "rawInput": call["arguments"],
        }
        if "description" in params:
            shown["content"] = tool_content([text_block(params["description"])])
        options = [{**option, "kind": OPTION_KINDS.get(option["kind"], "reject_once")} for option in params["options"]]
        answer = await self._ask(
            "session/request_permission",
            {"sessionId": params["sessionId"], "toolCall": shown, "options": options},
        )
        outcome = member(answer, "outcome")
        chosen = member(outcome, "optionId")
        if member(outcome, "outcome") != "selected" or not isinstance(chosen, str):
            return {"outcome": "cancelled"}
        return {"outcome": "selected", "optionId": chosen}

    async def _elicit(self, params: ElicitParams) -> ElicitResult:
        asked: JsonObject = {"sessionId": params["sessionId"], "mode": params["mode"], "message": params["message"]}
        if params["mode"] == "url":
            asked.update(elicitationId=params["requestId"], url=params.get("url", ""))
        else:
            schema = params.get("requestedSchema") or {}
            if not _is_flat(schema):
                LOGGER.warning("a question was declined: an ACP form has no fields inside of fields")
                return {"action": "decline"}
            asked["requestedSchema"] = {"type": "object", "properties": {}, **schema}
        answer = await self._ask("elicitation/create", asked)
        action = member(answer, "action")
        if action == "accept":
            content = member(answer, "content")
            return {"action": "accept"} if content is None else {"action": "accept", "content": content}
        return {"action": "decline"} if action == "decline" else {"action": "cancel"}


def _modes(capabilities: ClientCapabilities | None) -> list[Literal["form", "url"]]:
    known = capabilities.elicitation if capabilities is not None else None
    if known is None:
        return []
    modes: list[Literal["form", "url"]] = []
    if known.form is not None:
        modes.append("form")
    if known.url is not None:
        modes.append("url")
    return modes


def _is_flat(schema: JsonObject) -> bool:
    """Whether an ACP form can be made of a schema."""
    properties: Any = schema.get("properties", {})
    return isinstance(properties, dict) and all(
        member(field, "type") in _FLAT for field in cast("JsonObject", properties).values()
    )
