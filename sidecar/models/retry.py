"""Makes a model call again where that is safe: nothing was handed on yet, and the failure may pass. No HTTP here."""

import asyncio
import secrets
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import dataclass
from typing import Final

from providers.api.ports import ChatUpdate, RetryNotice
from sidecar.errors import SidecarError

LONGEST_WAIT_MS: Final = 60_000
"""An endpoint that asks for a longer wait is not waited for: the host is told, and decides."""


class AttemptFailed(Exception):
    """One attempt failed in a way that may pass."""

    def __init__(self, error: SidecarError) -> None:
        super().__init__(error.message)
        self.error = error


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How often, and after what wait: doubling from `first_wait` to `longest_wait` seconds, less up to a quarter."""

    max_retries: int
    first_wait: float = 0.5
    longest_wait: float = 8.0

    def wait(self, retry: int, asked_ms: int | None) -> float | None:
        """Seconds before this retry (1 is the first); `None` if there should be none."""
        if retry > self.max_retries or (asked_ms or 0) > LONGEST_WAIT_MS:
            return None
        if asked_ms is not None:
            return asked_ms / 1000
        backoff = min(self.longest_wait, self.first_wait * 2 ** (retry - 1))
        return backoff * (1 - secrets.randbelow(250) / 1000)


async def with_retries(
    attempt: Callable[[], AsyncGenerator[ChatUpdate, None]], policy: RetryPolicy, deadline: float
) -> AsyncGenerator[ChatUpdate, None]:
    """The updates of the first attempt that hands one on, or of the last.

    Args:
        attempt: makes the call. `AttemptFailed` says that another try may help.
        policy: how often to try.
        deadline: loop time after which no retry begins.

    Raises:
        SidecarError: the last attempt's error, or one that no retry helps.
    """
    retry = 0
    while True:
        retry += 1
        handed_on = False
        try:
            async with aclosing(attempt()) as updates:
                async for update in updates:
                    handed_on = True
                    yield update
        except AttemptFailed as failure:
            error = failure.error
        else:
            return
        wait = None if handed_on else policy.wait(retry, error.fields.get("retry_after_ms"))
        if wait is None or asyncio.get_running_loop().time() + wait >= deadline:
            raise error
        yield RetryNotice(f"{error.message}; trying again in {wait:.1f} s", retry)
        await asyncio.sleep(wait)
