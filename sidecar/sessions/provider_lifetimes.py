"""Opens providers that hold something open before their first run; closes them with their session. Calls no hooks."""

import asyncio
from contextlib import AbstractAsyncContextManager
from typing import Any, Final

from sidecar.agents.binding import BoundProvider
from sidecar.agents.onion import contained, named
from sidecar.agents.plan import AgentPlan
from sidecar.errors import ProviderFailed, new_error_id
from sidecar.telemetry import log_failure

LEAVE_S: Final = 1.0
"""For all providers of a session together; a shutdown must be answered soon."""


class ProviderLifetimes:
    """The providers of one session that are async context managers."""

    def __init__(self) -> None:
        self._open: dict[int, tuple[BoundProvider, AbstractAsyncContextManager[Any]]] = {}

    async def enter(self, plan: AgentPlan) -> None:
        """Enter what is not entered yet, in list order; leave what the plan has no more.

        Raises:
            ProviderFailed: one could not be entered. Those that were stay open for the next run.
        """
        managers = [bound for bound in plan.providers if isinstance(bound.provider, AbstractAsyncContextManager)]
        if not managers and not self._open:
            return
        wanted = {id(bound.provider) for bound in managers}
        await self._leave([key for key in self._open if key not in wanted])
        for bound in managers:
            if id(bound.provider) not in self._open and isinstance(bound.provider, AbstractAsyncContextManager):
                await self._enter(bound, bound.provider)

    async def leave(self) -> None:
        """Leave them all, the last one first. What goes wrong in it is logged: the session closes anyway."""
        await self._leave(list(self._open))

    async def _enter(self, bound: BoundProvider, manager: AbstractAsyncContextManager[Any]) -> None:
        try:
            async with asyncio.timeout(bound.timeout_ms / 1000):
                await contained(manager.__aenter__())
        except Exception as error:
            why = "opening it took too long" if isinstance(error, TimeoutError) else named(error)
            failure = ProviderFailed(bound.source_id, "beforeRun", why)
            log_failure(f"opening provider {bound.source_id!r}", error, failure.error_id)
            raise failure from error
        self._open[id(bound.provider)] = (bound, manager)

    async def _leave(self, keys: list[int]) -> None:
        leaving = [self._open.pop(key) for key in reversed(keys)]
        deadline = asyncio.get_running_loop().time() + LEAVE_S
        for bound, manager in leaving:
            try:
                async with asyncio.timeout_at(deadline):
                    await contained(manager.__aexit__(None, None, None))
            except Exception as error:
                log_failure(f"closing provider {bound.source_id!r}", error, new_error_id())
