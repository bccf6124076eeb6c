"""The chat client of OpenAI-compatible endpoints: chat completions, streamed. The wire's details are its neighbours'.

`openai_request` says what is sent, `openai_stream` reads what comes back, `openai_call` makes the call.
"""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import TYPE_CHECKING

from providers.api.ports import ChatRequest, ChatUpdate, ModelTraits

from .call_pairs import call_ids
from .openai_call import OpenAICall
from .openai_endpoint import OpenAIEndpoint
from .openai_extras import extra_headers
from .openai_request import chat_body
from .openai_stream import CompletionReader
from .retry import RetryPolicy

if TYPE_CHECKING:
    from openai import AsyncOpenAI

    from .openai_call import Headers, Response


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
        taken = call_ids(request.messages)

        def post(client: "AsyncOpenAI", headers: "Headers") -> "Response":
            # The body goes as `extra_body`: the client walks through typed parameters, however long they are.
            return client.chat.completions.with_streaming_response.create(
                model=self._model, messages=(), stream=True, extra_body=body, extra_headers=headers
            )

        call = OpenAICall(
            self._endpoint,
            self._model,
            extra_headers(request.client_kwargs),
            post,
            lambda: CompletionReader(self._endpoint.name, taken),
        )
        async with aclosing(call.updates(self._retries)) as updates:
            async for update in updates:
                yield update
