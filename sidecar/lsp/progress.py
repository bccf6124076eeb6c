"""One piece of work as an editor shows it: `$/progress` from begin to end. Knows no run."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final, Self

from protocol.base import JsonObject

REPORT_EVERY_S: Final = 0.1
"""Reports come no faster: each holds all that is to be shown, so that a newer one replaces it."""

Token = str | int
"""A progress token of LSP."""


class Progress:
    """An `async with` block that an editor shows as work under way, and that its user may cancel."""

    def __init__(
        self,
        notify: Callable[[str, JsonObject], None],
        token: Token | None,
        title: str,
        *,
        create: Callable[[], Awaitable[bool]] | None = None,
    ) -> None:
        """Show nothing yet.

        Args:
            notify: sends a notification to the client.
            token: the client's or ours; without one nothing is shown.
            title: what the work is.
            create: asks the client to accept a token of ours; until it has, nothing is shown, and the work does not
                wait for that.
        """
        self._notify = notify
        self._token = token
        self._title = title
        self._create = create
        self._creating: asyncio.Task[None] | None = None
        self._pause: asyncio.TimerHandle | None = None
        self._begun = False
        self._message = ""
        self._shown = ""
        self.outcome = ""
        """Shown at the end."""

    async def __aenter__(self) -> Self:
        if self._create is not None:
            self._creating = asyncio.create_task(self._begin_when_created(self._create))
        elif self._token is not None:
            self._begin()
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._creating is not None:
            self._creating.cancel()
            await asyncio.wait({self._creating})
        if self._pause is not None:
            self._pause.cancel()
        if self._begun:
            self._send({"kind": "end", **({"message": self.outcome} if self.outcome else {})})

    def report(self, message: str) -> None:
        """Show a message in place of the one before."""
        self._message = message
        if self._begun and self._pause is None:
            self._report()

    async def _begin_when_created(self, create: Callable[[], Awaitable[bool]]) -> None:
        if await create():
            self._begin()

    def _begin(self) -> None:
        self._begun = True
        self._send({"kind": "begin", "title": self._title, "cancellable": True})
        self._report()

    def _report(self) -> None:
        self._pause = None
        if self._message != self._shown:
            self._shown = self._message
            self._send({"kind": "report", "cancellable": True, "message": self._message})
            self._pause = asyncio.get_running_loop().call_later(REPORT_EVERY_S, self._report)

    def _send(self, value: JsonObject) -> None:
        self._notify("$/progress", {"token": self._token, "value": value})
