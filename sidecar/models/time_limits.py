"""The time limits of one model call: connecting, silence, total. Monotonic; the loop's own clock."""

import asyncio
from collections.abc import Awaitable
from typing import Final, TypeVar

from sidecar.errors import ModelTimeout

GRACE_AFTER_END: Final = 2.0
"""Seconds that an answer whose finish reason is here may take to send its usage."""

GRACE_TO_CLOSE: Final = 0.05
"""Seconds to wait for the end of the body after `[DONE]`."""

_Result = TypeVar("_Result")


class CallTimer:
    """Watches one call; every wait for the endpoint goes through `within`."""

    def __init__(self, endpoint: str, idle_s: float, deadline: float) -> None:
        """`deadline`: loop time at which the whole call is over its limit."""
        self._endpoint = endpoint
        self._idle = idle_s
        self._deadline = deadline
        self._loop = asyncio.get_running_loop()
        self._silent_at = self._loop.time() + idle_s

    def heard(self) -> None:
        """The endpoint gave a sign of life."""
        self._silent_at = self._loop.time() + self._idle

    def hurry(self, grace_s: float) -> None:
        """Nothing that the answer needs can follow: be silent-proof only so long from now on."""
        if grace_s < self._idle:
            self._idle = grace_s
            self.heard()

    async def within(self, wait: Awaitable[_Result]) -> _Result:
        """Wait for the endpoint, as long as the limits allow.

        Raises:
            ModelTimeout: it was silent, or the call took, too long.
        """
        limit = asyncio.timeout_at(min(self._silent_at, self._deadline))
        try:
            async with limit:
                return await wait
        except TimeoutError:
            if not limit.expired():
                raise
        if self._deadline <= self._silent_at:
            raise ModelTimeout(f"endpoint {self._endpoint!r}: the call took longer than total_timeout_ms allows")
        raise ModelTimeout(f"endpoint {self._endpoint!r} was silent for {self._idle:g} s (idle_timeout_ms)")
