"""One call at an OpenAI-compatible endpoint, whichever of its APIs: attempts, time limits, the connection, its errors.

What is sent and how the answer is read are the caller's. The connection is closed at the end, however that comes.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, aclosing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from protocol.errors import KINDS
from providers.api.ports import ChatUpdate
from sidecar.errors import ModelBadStream, ModelTimeout, SidecarError

from .openai_answer import AnswerReader
from .openai_endpoint import OpenAIEndpoint
from .openai_errors import RETRIED_STATUSES, error_of_connection, error_of_status
from .retry import AttemptFailed, RetryPolicy, with_retries
from .time_limits import GRACE_AFTER_END, GRACE_TO_CLOSE, CallTimer

if TYPE_CHECKING:
    from openai import APIStatusError, AsyncAPIResponse, AsyncOpenAI, Omit

    Response = AbstractAsyncContextManager[AsyncAPIResponse[Any]]
    Headers = dict[str, str | Omit]


@dataclass(frozen=True, slots=True)
class OpenAICall:
    """What to send, to which model, and how to read the answer."""

    endpoint: OpenAIEndpoint
    model: str
    extra_headers: dict[str, str]
    post: "Callable[[AsyncOpenAI, Headers], Response]"
    """Begins the request at one of the client's APIs."""
    new_reader: Callable[[], AnswerReader[Any]]
    """Called once an attempt."""

    async def updates(self, retries: RetryPolicy) -> AsyncGenerator[ChatUpdate, None]:
        """Make the call, again where that is safe.

        Raises:
            ModelError: the call failed.
            ModelNotFound: the endpoint has no such model.
        """
        deadline = asyncio.get_running_loop().time() + self.endpoint.config.total_timeout_ms / 1000
        async with aclosing(with_retries(lambda: self._attempt(deadline), retries, deadline)) as updates:
            async for update in updates:
                yield update

    async def _attempt(self, deadline: float) -> AsyncGenerator[ChatUpdate, None]:
        client = await self.endpoint.client()
        headers: Headers = {**await self.endpoint.headers(), **self.extra_headers}
        timer = CallTimer(self.endpoint.name, self.endpoint.config.idle_timeout_ms / 1000, deadline)
        reader = self.new_reader()
        async with AsyncExitStack() as stack:
            pieces = await timer.within(self._open(stack, client, headers))
            try:
                while piece := await self._next(pieces, reader, timer):
                    for update in reader.feed(piece):
                        yield update
                    _watch(timer, reader)
                for update in reader.finish():
                    yield update
            except SidecarError as error:
                raise _retried(error) from None

    async def _open(self, stack: AsyncExitStack, client: "AsyncOpenAI", headers: "Headers") -> AsyncIterator[bytes]:
        """Send the request; the answer's body once its head is here."""
        from openai import APIConnectionError, APIStatusError, APITimeoutError

        try:
            response = await stack.enter_async_context(self.post(client, headers))
        except APIStatusError as error:
            raise self._refused(error) from None
        except APITimeoutError:
            limit = self.endpoint.config.connect_timeout_ms
            where = f"endpoint {self.endpoint.name!r} at {self.endpoint.address}"
            raise AttemptFailed(
                ModelTimeout(f"{where} was not reached within {limit} ms (connect_timeout_ms)")
            ) from None
        except APIConnectionError as error:
            raise AttemptFailed(error_of_connection(error, self.endpoint.name, self.endpoint.address)) from None
        return response.iter_bytes()

    def _refused(self, error: "APIStatusError") -> Exception:
        status = error.status_code
        if status in {401, 403}:
            self.endpoint.key_source.forget()
        meaning = error_of_status(
            status,
            error.body,
            error.response.headers,
            endpoint=self.endpoint.name,
            model=self.model,
            key_hint=self.endpoint.key_source.hint,
        )
        return AttemptFailed(meaning) if status in RETRIED_STATUSES and KINDS[meaning.kind].retryable else meaning

    async def _next(self, pieces: AsyncIterator[bytes], reader: AnswerReader[Any], timer: CallTimer) -> bytes:
        """The next bytes of the body; none when it has ended, or nothing that matters can follow."""
        import httpx2

        try:
            piece = await timer.within(anext(pieces, None))
        except (httpx2.HTTPError, ModelTimeout) as error:
            if reader.has_ended:
                return b""
            if isinstance(error, ModelTimeout):
                raise
            what = f"endpoint {self.endpoint.name!r}: the connection broke in the middle of the answer"
            raise ModelBadStream(what) from None
        return piece or b""


def _watch(timer: CallTimer, reader: AnswerReader[Any]) -> None:
    if reader.done:
        timer.hurry(GRACE_TO_CLOSE)
    elif reader.has_ended:
        timer.hurry(GRACE_AFTER_END)
    elif reader.is_alive:
        timer.heard()


def _retried(error: SidecarError) -> Exception:
    """The error, marked if another attempt may help. A silent endpoint has had its time."""
    if isinstance(error, ModelTimeout) or not KINDS[error.kind].retryable:
        return error
    return AttemptFailed(error)
