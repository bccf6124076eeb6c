"""Standing approval rules: what a person has decided for more than one call. Each is bound to one exact tool."""

import json
from collections.abc import Iterable

from protocol.base import Json, JsonObject, WireModel
from protocol.messages import FunctionCallBlock, Source
from providers.api.approval import ApprovalDecision
from providers.api.tool import FunctionTool


class StandingRule(WireModel):
    """One rule, as it is stored."""

    rule_id: str
    decision: ApprovalDecision
    tool: str
    schema_hash: str
    """Of the tool's name and arguments, as they were when it was decided."""
    source: str
    """Who offered the tool."""
    arguments: JsonObject | None = None
    """The exact arguments that it counts for; absent: any."""
    agent: str | None = None
    """Absent: any, as the session has one."""
    cwd: str | None = None
    created_at: str

    def fits(self, call: FunctionCallBlock, tool: FunctionTool, source: Source) -> bool:
        """Whether it is about this call."""
        is_same_tool = self.tool == tool.name and self.schema_hash == tool.schema_hash and self.source == named(source)
        return is_same_tool and (self.arguments is None or same_json(self.arguments, call.arguments))


def decisions(
    rules: Iterable[StandingRule], call: FunctionCallBlock, tool: FunctionTool, source: Source
) -> list[ApprovalDecision]:
    """What standing rules say of a call."""
    return [rule.decision for rule in rules if rule.fits(call, tool, source)]


def named(source: Source) -> str:
    """Who offers a tool, in one word that nobody else can bear."""
    return f"{source.type}:{source.source_id or ''}"


def same_json(one: Json, other: Json) -> bool:
    """Whether two values are the same JSON; in Python `1` is `True` and `1.0`."""
    return canonical(one) == canonical(other)


def canonical(value: Json) -> str:
    """One text for each JSON value."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
