"""Decides whether a call needs consent: rules of the configuration, of providers and of people. Asks nobody."""

import copy
import inspect
import re
from collections.abc import Iterable, Sequence
from fnmatch import translate
from functools import lru_cache
from typing import Final

from protocol.agents import ApprovalRule as ConfiguredRule
from protocol.base import Json
from protocol.messages import FunctionCallBlock
from providers.api.approval import ApprovalCall, ApprovalDecision, ApprovalRule
from providers.api.run_context import RunContext
from providers.api.tool import FunctionTool
from sidecar.errors import new_error_id
from sidecar.telemetry import log_failure

from .standing_rules import canonical
from .time_limit import LimitPassed, within

_DECISIONS: Final = ("deny", "ask", "allow")
"""The strongest first."""


def strongest(found: Iterable[ApprovalDecision]) -> ApprovalDecision | None:
    """Deny beats ask, ask beats allow; `None` where nobody says anything."""
    said = set(found)
    return next((decision for decision in _DECISIONS if decision in said), None)


def configured(rules: Sequence[ConfiguredRule], call: FunctionCallBlock) -> list[ApprovalDecision]:
    """What the rules of a configuration say of a call."""
    return [rule.decision for rule in rules if _fits(rule, call)]


async def called_back(
    rules: Sequence[ApprovalRule], call: FunctionCallBlock, tool: FunctionTool, run: RunContext, limit_s: float
) -> list[ApprovalDecision]:
    """What rules in Python say of a call. One that fails, or takes too long, denies it: a guard opens nothing."""
    found: list[ApprovalDecision] = []
    for rule in rules:
        asked = ApprovalCall(call.call_id, tool, copy.deepcopy(call.arguments), run)
        try:
            await within(limit_s, _say(rule, asked, found))
        except (Exception, LimitPassed) as error:
            log_failure(f"approval rule for {tool.name!r}", error, new_error_id())
            found.append("deny")
    return found


async def _say(rule: ApprovalRule, asked: ApprovalCall, found: list[ApprovalDecision]) -> None:
    said = rule(asked)
    decision = await said if inspect.isawaitable(said) else said
    if decision is None:
        return
    if decision not in _DECISIONS:
        raise TypeError(f"an approval rule says allow, deny, ask or None, not {type(decision).__name__}")
    found.append(decision)


def _fits(rule: ConfiguredRule, call: FunctionCallBlock) -> bool:
    if not _pattern(rule.tool).match(call.name):
        return False
    wanted = rule.arguments or {}
    return all(name in call.arguments and _is_like(call.arguments[name], like) for name, like in wanted.items())


def _is_like(value: Json, like: Json) -> bool:
    """Whether a value is the one of a rule, or fits its pattern; what is no text is held against it as JSON."""
    if isinstance(like, str):
        return _pattern(like).match(value if isinstance(value, str) else canonical(value)) is not None
    return canonical(value) == canonical(like)


@lru_cache(maxsize=1024)
def _pattern(text: str) -> re.Pattern[str]:
    """`*` and `?` stand for any characters, line ends among them; nothing else is special."""
    return re.compile(translate(text.replace("[", "[[]")))
