"""What code inside a run may know of it: the run that is current, for code that was handed none. Makes no calls."""

from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

from protocol.agents import RunOptions
from protocol.base import JsonObject
from protocol.messages import Message

from .delegation import Delegate
from .host import Elicited, Host, HostUnavailable
from .ports import AgentView
from .session import Session

Emit = Callable[[str, JsonObject], None]
"""Sends an event that is not stored: its type, and its data."""


@dataclass(frozen=True, slots=True)
class RunContext:
    """One run, as tools, middleware and providers may know it."""

    run_id: str
    agent: AgentView
    session: Session | None
    """`None` in a run without a session."""
    input_messages: Sequence[Message]
    options: RunOptions
    kwargs: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """The run's `functionInvocationKwargs`. Each tool call gets a copy of its own."""
    client_kwargs: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """For the chat client and chat middleware only; never for tools."""
    properties: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """What the host says of this run."""
    parent_run_id: str | None = None
    """The run whose tool this run is."""
    depth: int = 0
    """How many runs this one is delegated through; 0 for a run that a host asked for."""
    delegate: Delegate | None = None
    """Has a task done by another agent, as a run within this one; tools for that are made by `as_tool`."""
    host: Host | None = None
    """Whom the run can ask; `None` where there is nobody."""

    async def elicit(self, message: str, *, schema: JsonObject | None = None, url: str | None = None) -> Elicited:
        """Ask a person a question: by a form, or by an address to visit.

        Args:
            message: The question.
            schema: JSON Schema of the form: an object of strings, numbers, booleans and choices.
            url: The address, for what must not pass through here: a login, for example.

        Returns:
            The answer. Where nobody can be asked, `decline`.

        Raises:
            ValueError: neither a schema nor an address is given, or both.
        """
        if (schema is None) == (url is None):
            raise ValueError("elicit() needs either a schema or a url")
        if self.host is None:
            return Elicited("decline")
        return await self.host.elicit(message, schema=schema, url=url)

    def ask_host(self) -> Host:
        """The host.

        Raises:
            HostUnavailable: there is none.
        """
        if self.host is None:
            raise HostUnavailable("there is no host here")
        return self.host


_current: ContextVar[RunContext | None] = ContextVar("agent_sidecar_run", default=None)


def current_run() -> RunContext | None:
    """The run that this code is part of; `None` outside of any. Threads of sync tools see it too."""
    return _current.get()


def enter_run(run: RunContext) -> None:
    """Make `run` the current one for this task and whatever it starts."""
    _current.set(run)
