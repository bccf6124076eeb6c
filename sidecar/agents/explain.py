"""The model calls of a run, noted as they are made: what was sent, who made the call, how long it took.

Noting is a few references: messages are frozen and shared, so that a long history costs no more than its tuple. What
a note means, and how it is stored, is `sidecar.sessions.explanations`.
"""

import time
from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Final

from protocol.base import JsonObject
from protocol.messages import Message, Source, Usage
from providers.api.context import Instruction, OfferedTool, Removal, SessionContext
from providers.api.ports import ChatRequest, ToolSpec

BY_THE_RUN: Final = Source(type="run")
"""Who makes the calls that tools and middleware ask for."""

_provider: ContextVar[str | None] = ContextVar("agent_sidecar_calling_provider", default=None)


class CallsMadeBy:
    """Clients that are given out inside make their calls for this provider. No generator: it is around every hook."""

    def __init__(self, source_id: str) -> None:
        self._source_id = source_id

    def __enter__(self) -> None:
        self._token = _provider.set(self._source_id)

    def __exit__(self, *raised: object) -> None:
        _provider.reset(self._token)


def maker_now() -> Source:
    """For whom a client that is given out now makes its calls."""
    source_id = _provider.get()
    return BY_THE_RUN if source_id is None else Source(type="provider", source_id=source_id)


@dataclass(frozen=True, slots=True)
class CallPlan:
    """What the run would have the model see, before its middleware: a moment's view of who added what."""

    request: ChatRequest
    instructions: Sequence[Instruction]
    context_messages: Mapping[str, Sequence[Message]]
    run_messages: Sequence[Message]
    input_messages: Sequence[Message]
    tools: Sequence[OfferedTool]
    removed: Sequence[Removal]
    middleware: str
    """The names of what stands around the call."""


@dataclass(slots=True, eq=False)
class CallNote:
    """One model call."""

    model: str
    maker: Source
    """The agent for the loop's own calls, else who asked for it."""
    request: ChatRequest
    messages: Sequence[Message]
    """As they were sent: whoever holds the request may change its lists later."""
    tools: Sequence[ToolSpec]
    plan: CallPlan | None
    """Of the loop's own calls."""
    started_at: float
    """Seconds since 1970."""
    began: float = field(default_factory=time.perf_counter)
    first_token_s: float | None = None
    spent_s: float | None = None
    """`None` while it is under way."""
    usage: Usage | None = None
    context_size: int | None = None
    """Tokens that the model takes, where that is known."""

    def token(self) -> None:
        """Something of the answer came."""
        if self.first_token_s is None:
            self.first_token_s = time.perf_counter() - self.began

    def end(self) -> None:
        """The call is over, in whatever way."""
        self.spent_s = self.seconds

    @property
    def seconds(self) -> float:
        """How long it took; so far, while it is under way."""
        return time.perf_counter() - self.began if self.spent_s is None else self.spent_s


@dataclass(frozen=True, slots=True)
class Sight:
    """Where to look up who added what, as long as the run works."""

    run_id: str
    context: SessionContext
    before: Sequence[Instruction]
    """Instructions in front of the providers' ones."""
    behind: Sequence[Instruction]
    histories: Sequence[str]
    """Source ids of the histories, one that loads first."""

    @property
    def instructions(self) -> Sequence[Instruction]:
        """Every piece, as it is now."""
        return [one for one in (*self.before, *self.context.instructions, *self.behind) if one.text]


class CallLog:
    """The notes of one run."""

    def __init__(self) -> None:
        self.notes: list[CallNote] = []
        self.phases: list[JsonObject] = []
        """How each hook of a provider ended, in the form of its event's data."""
        self.sight: Sight | None = None
        """`None` where the log is of no run."""
        self.transcript: Sequence[Message] = ()
        """What the session's transcript held when the run began."""
        self._plan: CallPlan | None = None

    def planned(self, request: ChatRequest, middleware: str) -> None:
        """The loop's next call, as it is before its middleware."""
        sight = self.sight
        if sight is None:
            return
        context = sight.context
        self._plan = CallPlan(
            request,
            sight.instructions,
            dict(context.context_messages),
            context.run_messages,
            context.input_messages,
            tuple(context.tools),
            tuple(context.removed),
            middleware,
        )

    def begin(self, model: str, request: ChatRequest, maker: Source) -> CallNote:
        """A call that is made now, as it is sent."""
        plan = self._plan if maker.type == "agent" else None
        note = CallNote(model, maker, request, tuple(request.messages), tuple(request.tools), plan, time.time())
        self.notes.append(note)
        return note
