"""Standing approval rules, and the tools that they are about, as lists show them. Types only."""

from typing import Literal

from .base import JsonObject, Params, WireModel
from .sessions import SessionId


class SessionOrNone(Params):
    """Of one session, or of none."""

    session_id: SessionId | None = None


class ToolInfo(WireModel):
    """A row of `listTools`."""

    name: str
    description: str
    input_schema: JsonObject
    source: str
    """Who offers it: an agent, a provider, the host."""
    approval_mode: Literal["never_require", "always_require"]


class ListToolsResult(WireModel):
    """The tools of a session; without one, those that are registered."""

    items: tuple[ToolInfo, ...]


class ApprovalRuleInfo(WireModel):
    """A row of `listApprovalRules`."""

    rule_id: str
    decision: Literal["allow", "deny"]
    tool: str
    arguments: JsonObject | None = None
    """The exact arguments that it counts for; absent: any."""
    scope: Literal["session", "always"]
    created_at: str


class ListApprovalRulesResult(WireModel):
    """Standing rules: those of the session, and those that count always."""

    items: tuple[ApprovalRuleInfo, ...]


class RevokeApprovalRuleParams(Params):
    """Forget a standing rule. One that is not there is forgotten already."""

    rule_id: str
    session_id: SessionId | None = None
    """Where a rule of a session is to be found; its open sessions are looked through without it."""
