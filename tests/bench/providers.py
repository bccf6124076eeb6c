"""Providers for tests: one that records its hooks, in a log that several share. Tests only."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from protocol.messages import Message
from providers.api.context import SessionContext
from providers.api.provider import ContextProvider
from providers.api.session import Session


@dataclass
class Hook:
    """What a hook was called with."""

    session: Session
    context: SessionContext
    state: dict[str, Any]


Action = Callable[[Hook], Awaitable[None] | None]


@dataclass
class Log:
    """What happened, in order: `before:a`, `after:a`, `failed:a`."""

    lines: list[str] = field(default_factory=list)
    errors: list[tuple[str, Exception, str]] = field(default_factory=list)
    """Of each failure hook: source id, error, partial text."""


class Recorder(ContextProvider):
    """Writes down its hooks, and does in them what the test says."""

    def __init__(
        self,
        source_id: str,
        log: Log,
        *,
        before: Action | None = None,
        after: Action | None = None,
        failed: Action | None = None,
    ) -> None:
        super().__init__(source_id)
        self._log = log
        self._actions = {"before": before, "after": after, "failed": failed}

    async def before_run(self, *, session: Session, context: SessionContext, state: Any, **_: Any) -> None:
        await self._do("before", Hook(session, context, state))

    async def after_run(self, *, session: Session, context: SessionContext, state: Any, **_: Any) -> None:
        await self._do("after", Hook(session, context, state))

    async def on_failure(
        self, *, session: Session, context: SessionContext, state: Any, error: Exception, partial_text: str, **_: Any
    ) -> None:
        self._log.errors.append((self.source_id, error, partial_text))
        await self._do("failed", Hook(session, context, state))

    async def _do(self, name: str, hook: Hook) -> None:
        self._log.lines.append(f"{name}:{self.source_id}")
        action = self._actions[name]
        result = action(hook) if action is not None else None
        if result is not None:
            await result


def adds(source: str, *pieces: Message | str) -> Action:
    """A hook that adds, in the name of `source`, messages, and instructions where the piece is a string."""

    def act(hook: Hook) -> None:
        hook.context.extend_instructions(source, [piece for piece in pieces if isinstance(piece, str)])
        hook.context.extend_messages(source, [piece for piece in pieces if not isinstance(piece, str)])

    return act


def fails(error: Exception | None = None, *, first: Action | None = None) -> Action:
    """A hook that fails, after it did something."""

    async def act(hook: Hook) -> None:
        done = first(hook) if first is not None else None
        if done is not None:
            await done
        raise error or KeyError("secret text")

    return act


def hangs(reached: asyncio.Event | None = None, *, first: Action | None = None) -> Action:
    """A hook that never ends, after it did something."""

    async def act(hook: Hook) -> None:
        done = first(hook) if first is not None else None
        if done is not None:
            await done
        if reached is not None:
            reached.set()
        await asyncio.Event().wait()

    return act


def writes(**values: Any) -> Action:
    """A hook that writes to its own state."""

    def act(hook: Hook) -> None:
        hook.state.update(values)

    return act
