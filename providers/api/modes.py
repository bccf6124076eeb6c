"""Modes and plans: what a provider may say of how its session works. `Protocol`s and values; keeps nothing.

A provider that implements `HasModes` gives its session modes: a host sees them as the config option `mode`, names one
at `createSession` and switches by `updateSession`. Which one counts stands in the provider's own state, so that a tool
of the provider's may switch, too.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal, Protocol, runtime_checkable

from .session import State

MAX_PLAN_ENTRIES: Final = 1_000
"""Entries of a plan that are told; what is beyond is left out."""


@dataclass(frozen=True, slots=True)
class Mode:
    """One way of working."""

    name: str
    description: str | None = None


@dataclass(frozen=True, slots=True)
class Modes:
    """The modes of a session, and the one that counts."""

    current: str
    available: Sequence[Mode]


@runtime_checkable
class HasModes(Protocol):
    """A provider whose session has modes; the first one in a session counts."""

    def modes(self, state: State) -> Modes:
        """The modes. `state` is the provider's own, perhaps still empty; nothing may be written to it."""
        ...

    def switch_mode(self, mode: str, state: State) -> None:
        """Let this mode count from now on, by writing it to `state`. It is the name of an available one."""
        ...


@dataclass(frozen=True, slots=True)
class PlanEntry:
    """A step of what the agent means to do."""

    id: str
    title: str
    description: str | None = None
    status: Literal["pending", "inProgress", "completed"] = "pending"
