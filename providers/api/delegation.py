"""A task for another agent, and the way to have it done from within a run. Runs nothing."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Errand:
    """What another agent is to do for one tool call."""

    agent: str
    """Its name in the configuration."""
    task: str
    """All that it is told."""
    call_id: str
    """The tool call of the run that asks for it."""
    kwargs: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """For its tools and function middleware."""
    propagate_session: bool = False
    """Whether it works on the state of the session of the run that asks for it."""


Delegate = Callable[[Errand], Awaitable[str]]
"""Has an errand done, as a run of its own within this one, and gives the other agent's text.

It raises `ToolError` where the agent is not known, agents would call agents too deep, or the other run did not
complete.
"""
