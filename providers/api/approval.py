"""Rules in Python that say whether a tool call may run without asking a person. They decide; they run nothing."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Literal

from protocol.base import JsonObject

from .run_context import RunContext
from .tool import FunctionTool

ApprovalDecision = Literal["allow", "deny", "ask"]
"""Deny beats ask, and ask beats allow."""


@dataclass(frozen=True, slots=True)
class ApprovalCall:
    """A call that is about to run."""

    call_id: str
    tool: FunctionTool
    arguments: JsonObject
    """A copy: what a rule writes into it changes nothing."""
    run: RunContext


ApprovalRule = Callable[[ApprovalCall], ApprovalDecision | Awaitable[ApprovalDecision | None] | None]
"""Says what to do with a call; `None`: nothing. A rule that fails denies the call."""
