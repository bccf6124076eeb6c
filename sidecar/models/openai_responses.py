"""The chat client of OpenAI's Responses API, streamed. The wire's details are its neighbours'.

`openai_responses_request` says what is sent, `openai_responses_stream` reads what comes back, `openai_call` makes the
call. Which messages are new to a conversation that the service keeps, the caller decides: all that it gives are sent.
"""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import TYPE_CHECKING

from providers.api.ports import ChatRequest, ChatUpdate, ModelTraits

from .call_pairs import call_ids
from .openai_call import OpenAICall
from .openai_endpoint import OpenAIEndpoint
from .openai_extras import extra_headers
from .openai_responses_request import responses_body
from .openai_responses_stream import ResponseReader
from .retry import RetryPolicy

if TYPE_CHECKING:
    from openai import AsyncOpenAI

    from .openai_call import Headers, Response


class OpenAIResponses:
    """One model at one endpoint."""

    def __init__(self, endpoint: OpenAIEndpoint, model: str, *, retries: RetryPolicy | None = None) -> None:
        self._endpoint = endpoint
        self._model = model
        self._retries = retries or RetryPolicy(endpoint.config.max_retries)

    @property
    def name(self) -> str:
        """`endpoint:model`."""
        return f"{self._endpoint.name}:{self._model}"

    @property
    def traits(self) -> ModelTraits:
        """What the API can do, and what the configuration tells of the model."""
        return ModelTraits(
            context_size=self._endpoint.config.context_size,
            keeps_conversations=True,
            stores_by_default=True,
            hosted_tools=frozenset({"web_search"}),
        )

    async def stream(self, request: ChatRequest) -> AsyncGenerator[ChatUpdate, None]:
        """Make the call; see `ChatClient.stream`.

        Raises:
            ModelError: the call failed.
            ModelNotFound: the endpoint has no such model.
            InvalidParams: an option or `client_kwargs` cannot be sent.
            UnpairedCallsError: the messages hold a call without its result.
        """
        body = responses_body(self._model, request)
        taken = call_ids(request.messages)
        is_stored = body.get("store") is not False

        def post(client: "AsyncOpenAI", headers: "Headers") -> "Response":
            # The body goes as `extra_body`: the client walks through typed parameters, however long they are.
            return client.responses.with_streaming_response.create(stream=True, extra_body=body, extra_headers=headers)

        call = OpenAICall(
            self._endpoint,
            self._model,
            extra_headers(request.client_kwargs),
            post,
            lambda: ResponseReader(self._endpoint.name, taken, is_stored=is_stored),
        )
        async with aclosing(call.updates(self._retries)) as updates:
            async for update in updates:
                yield update
