"""What a session's host was asked and has not answered: each request once, until it is resolved. Sends nothing."""

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Final, Literal

from protocol.base import Json, JsonObject
from protocol.sessions import PendingRequest, RequestKind
from sidecar.errors import StorageFailed

from .ids import new_id, now
from .outlet import AskFailed

KEPT_RESOLVED: Final = 1_000
"""Requests of a session that are known to be resolved; an answer to an older one is to an unknown request."""

STORED_S: Final = 10.0
"""So long an answer that was brought late waits to be stored with what comes of it."""

Resolved = Literal["resolved", "alreadyResolved", "unknown"]


@dataclass(slots=True, eq=False)
class OpenRequest:
    """One request that waits for its answer."""

    pending: PendingRequest
    answer: "asyncio.Future[JsonObject]"
    """What `resolveRequest` brought: `result` or `error`; cancelled: it would come too late."""
    is_taken: bool = False
    """The client's own answer was read: it came first."""
    is_answered: bool = False
    """That is what counts."""
    closed: asyncio.Event = field(default_factory=asyncio.Event)
    stored: "asyncio.Future[Exception | None]" = field(
        default_factory=lambda: asyncio.get_running_loop().create_future()
    )
    """For the event that tells of its end."""
    progress: Callable[[str], None] | None = None
    """Takes what the host tells while it works."""


class HostRequests:
    """The open requests of one session, approvals that are parked left out."""

    def __init__(self) -> None:
        self._open: dict[str, OpenRequest] = {}
        self._resolved: OrderedDict[str, asyncio.Future[Exception | None] | None] = OrderedDict()

    def pending(self) -> Sequence[PendingRequest]:
        """What waits, the oldest first."""
        return [request.pending for request in self._open.values()]

    def open(self, pending: PendingRequest, progress: Callable[[str], None] | None = None) -> OpenRequest:
        """A request is about to be asked."""
        request = OpenRequest(pending, asyncio.get_running_loop().create_future(), progress=progress)
        self._open[pending.request_id] = request
        return request

    async def resolve(self, request_id: str, answer: JsonObject) -> Resolved:
        """Answer a request in place of the client's own answer, and wait until that is stored.

        For an answer that came earlier it is waited until storing it was tried; the session's log may still keep it.

        Args:
            request_id: Which.
            answer: An object with `result` or `error`.

        Raises:
            StorageFailed: the answer counts for the run, and is not stored.
        """
        request = self._open.get(request_id)
        is_first = request is not None and not request.is_taken and not request.answer.done()
        if request is not None:
            if is_first:
                request.answer.set_result(answer)
            await request.closed.wait()
            if is_first and request.is_answered:
                await _stored(request)
                return "resolved"
        earlier = self._resolved.get(request_id)
        if earlier is not None:
            await _tried(earlier)
        return "alreadyResolved" if self.knows(request_id) else "unknown"

    def take(self, request_id: str) -> None:
        """The client's own answer has come."""
        request = self._open.get(request_id)
        if request is not None:
            request.is_taken = True

    def tell(self, request_id: str, text: str) -> bool:
        """The host tells how a request gets on; whether it is open."""
        request = self._open.get(request_id)
        if request is None:
            return False
        if request.progress is not None:
            request.progress(text)
        return True

    def knows(self, request_id: str) -> bool:
        """Whether it is open, or was."""
        return request_id in self._open or request_id in self._resolved

    def close(self, request_id: str, *, forget: bool = False) -> None:
        """It is not waited for any longer; `forget`: it is not resolved by that."""
        request = self._open.pop(request_id, None)
        if request is not None:
            request.closed.set()
        if forget:
            return
        stored = request.stored if request is not None and request.is_answered else None
        self._resolved[request_id] = stored or self._resolved.get(request_id)
        if len(self._resolved) > KEPT_RESOLVED:
            self._resolved.popitem(last=False)


def new_pending(kind: RequestKind, run_id: str, payload: JsonObject, timeout_ms: int | None) -> PendingRequest:
    """A request that is about to be asked; its payload gets its id."""
    request_id = new_id("req")
    deadline = None
    if timeout_ms is not None:
        at = datetime.now(UTC) + timedelta(milliseconds=timeout_ms)
        deadline = at.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return PendingRequest(
        request_id=request_id,
        kind=kind,
        run_id=run_id,
        opened_at=now(),
        deadline=deadline,
        payload={**payload, "requestId": request_id},
    )


async def first_answer(request: OpenRequest, asked: "asyncio.Task[Json]") -> Json:
    """The client's own answer, or what `resolveRequest` brought, whichever comes first; the other is not waited for.

    Raises:
        AskFailed: the client could not answer.
        TimeoutError: there was no answer in time.
    """
    try:
        await asyncio.wait({request.answer, asked}, return_when=asyncio.FIRST_COMPLETED)
        if not request.answer.done():
            return asked.result()
    finally:
        request.answer.cancel()
        asked.cancel()
        asked.add_done_callback(_retrieve)
    request.is_answered = True
    answer = request.answer.result()
    if answer.get("error") is not None:
        error = answer["error"]
        raise AskFailed(_code(error.get("code")), str(error.get("message", "the host could not")))
    return answer.get("result")


async def _stored(request: OpenRequest) -> None:
    """Wait until the end of a request is stored: only then a crash cannot lose the answer.

    Raises:
        StorageFailed: it is not.
    """
    error = await _tried(request.stored)
    if error is not None:
        raise _not_yet(error)


async def _tried(stored: "asyncio.Future[Exception | None]") -> Exception | None:
    """What kept the end of a request from being stored, when that was tried.

    Raises:
        StorageFailed: it was not, for too long.
    """
    try:
        return await asyncio.wait_for(asyncio.shield(stored), STORED_S)
    except TimeoutError:
        raise _not_yet(f"that took longer than {STORED_S:g} s") from None


def _not_yet(why: object) -> StorageFailed:
    return StorageFailed(f"the run has taken the answer, but it is not stored yet: {why}; do not send it again")


def _code(code: Json) -> int:
    return code if isinstance(code, int) and code != 0 else -32603


def _retrieve(task: "asyncio.Task[Json]") -> None:
    if not task.cancelled():
        task.exception()
