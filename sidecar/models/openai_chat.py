"""The chat client of OpenAI-compatible endpoints: chat completions, streamed. The wire's details are its neighbours'.

`openai_request` says what is sent, `openai_stream` reads what comes back, `openai_errors` names what went wrong,
`retry` decides on another try. Here they meet: one call, its time limits, and its connection, closed at the end.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import AsyncExitStack, aclosing
from typing import TYPE_CHECKING

from protocol.base import JsonObject
from protocol.errors import KINDS
from protocol.messages import FunctionCallBlock
from providers.api.ports import ChatRequest, ChatUpdate, ModelTraits
from sidecar.errors import ModelBadStream, ModelTimeout, SidecarError

from .openai_endpoint import OpenAIEndpoint
from .openai_errors import RETRIED_STATUSES, error_of_connection, error_of_status
from .openai_request import chat_body, extra_headers
from .openai_stream import AnswerReader
from .retry import AttemptFailed, RetryPolicy, with_retries
from .time_limits import GRACE_AFTER_END, GRACE_TO_CLOSE, CallTimer

if TYPE_CHECKING:
    from openai import APIStatusError, AsyncOpenAI, Omit


class OpenAIChat:
    """One model at one endpoint."""

    def __init__(
        self,
        endpoint: OpenAIEndpoint,
        model: str,
        *,
        traits: ModelTraits | None = None,
        retries: RetryPolicy | None = None,
    ) -> None:
        self._endpoint = endpoint
        self._model = model
        self._traits = traits or ModelTraits(context_size=endpoint.config.context_size)
        self._retries = retries or RetryPolicy(endpoint.config.max_retries)

    @property
    def name(self) -> str:
        """`endpoint:model`."""
        return f"{self._endpoint.name}:{self._model}"

    @property
    def traits(self) -> ModelTraits:
        """What is known of the model from the configuration: endpoints do not tell."""
        return self._traits

    async def stream(self, request: ChatRequest) -> AsyncGenerator[ChatUpdate, None]:
        """Make the call; see `ChatClient.stream`.

        Raises:
            ModelError: the call failed.
            ModelNotFound: the endpoint has no such model.
            InvalidParams: `client_kwargs` cannot be sent.
            UnpairedCallsError: the messages hold a call without its result.
        """
        body = chat_body(self._model, request, is_openai=self._endpoint.is_openai)
        headers = extra_headers(request.client_kwargs)
        taken = frozenset(
            block.call_id
            for message in request.messages
            for block in message.content
            if isinstance(block, FunctionCallBlock)
        )
        deadline = asyncio.get_running_loop().time() + self._endpoint.config.total_timeout_ms / 1000

        def attempt() -> AsyncGenerator[ChatUpdate, None]:
            reader = AnswerReader(self._endpoint.name, taken)
            return self._attempt(body, headers, reader, deadline)

        async with aclosing(with_retries(attempt, self._retries, deadline)) as updates:
            async for update in updates:
                yield update

    async def _attempt(
        self, body: JsonObject, extra: dict[str, str], reader: AnswerReader, deadline: float
    ) -> AsyncGenerator[ChatUpdate, None]:
        client = await self._endpoint.client()
        headers: dict[str, str | Omit] = {**await self._endpoint.headers(), **extra}
        timer = CallTimer(self._endpoint.name, self._endpoint.config.idle_timeout_ms / 1000, deadline)
        async with AsyncExitStack() as stack:
            pieces = await timer.within(self._open(stack, client, body, headers))
            try:
                while piece := await self._next(pieces, reader, timer):
                    for update in reader.feed(piece):
                        yield update
                    _watch(timer, reader)
                for update in reader.finish():
                    yield update
            except SidecarError as error:
                raise _retried(error) from None

    async def _open(
        self, stack: AsyncExitStack, client: "AsyncOpenAI", body: JsonObject, headers: "dict[str, str | Omit]"
    ) -> AsyncIterator[bytes]:
        """Send the request; the answer's body once its head is here."""
        from openai import APIConnectionError, APIStatusError, APITimeoutError

        try:
            response = await stack.enter_async_context(
                # The body goes as `extra_body`: the client walks through typed parameters, however long they are.
                client.chat.completions.with_streaming_response.create(
                    model=self._model, messages=(), stream=True, extra_body=body, extra_headers=headers
                )
            )
        except APIStatusError as error:
            raise self._refused(error) from None
        except APITimeoutError:
            limit = self._endpoint.config.connect_timeout_ms
            where = f"endpoint {self._endpoint.name!r} at {self._endpoint.address}"
            raise AttemptFailed(
                ModelTimeout(f"{where} was not reached within {limit} ms (connect_timeout_ms)")
            ) from None
        except APIConnectionError as error:
            raise AttemptFailed(error_of_connection(error, self._endpoint.name, self._endpoint.address)) from None
        return response.iter_bytes()

    def _refused(self, error: "APIStatusError") -> Exception:
        status = error.status_code
        if status in {401, 403}:
            self._endpoint.key_source.forget()
        meaning = error_of_status(
            status,
            error.body,
            error.response.headers,
            endpoint=self._endpoint.name,
            model=self._model,
            key_hint=self._endpoint.key_source.hint,
        )
        return AttemptFailed(meaning) if status in RETRIED_STATUSES and KINDS[meaning.kind].retryable else meaning

    async def _next(self, pieces: AsyncIterator[bytes], reader: AnswerReader, timer: CallTimer) -> bytes:
        """The next bytes of the body; none when it has ended, or nothing that matters can follow."""
        import httpx2

        try:
            piece = await timer.within(anext(pieces, None))
        except (httpx2.HTTPError, ModelTimeout) as error:
            if reader.has_ended:
                return b""
            if isinstance(error, ModelTimeout):
                raise
            what = f"endpoint {self._endpoint.name!r}: the connection broke in the middle of the answer"
            raise ModelBadStream(what) from None
        return piece or b""


def _watch(timer: CallTimer, reader: AnswerReader) -> None:
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
