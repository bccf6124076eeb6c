"""The chat client of models that run on this machine, in a child process: the embedded one, or a user's own GGUF file.

The child speaks chat completions on loopback, so the call itself is `openai_chat`'s. Here: which file, which limits,
and what a model of 135 million parameters needs to be of use.
"""

import asyncio
import dataclasses
from collections.abc import AsyncGenerator
from contextlib import aclosing
from pathlib import Path
from typing import Final

from pydantic import SecretStr

from protocol.agents import RunOptions
from providers.api.ports import CallRequested, ChatRequest, ChatUpdate, Finished, ModelTraits, TextDelta
from sidecar.config.endpoints import EndpointConfig
from sidecar.errors import ModelBadStream, ModelNotFound, ModelUnavailable

from .embedded_files import GET_IT, MODEL_ID, checked_file, own_file, runtime_version
from .embedded_server import Address, EmbeddedServer
from .embedded_tools import as_call, as_instructions, as_schema, forced_tools, without_tools
from .openai_chat import OpenAIChat
from .openai_endpoint import OpenAIEndpoint
from .retry import RetryPolicy

CONTEXT_SIZE: Final = 4096
"""Tokens; more would cost memory, and the small model does not get better by it."""
LONGEST_ANSWER: Final = 512
"""Tokens, where the request gives no limit: a small model may never come to an end."""


class EmbeddedChat:
    """One model file. The child starts at the first call, and again at the first call after a crash."""

    def __init__(self, endpoint: str, config: EndpointConfig, model: str) -> None:
        """`model`: `smollm2-135m`, or the path of a GGUF file."""
        self._endpoint_name = endpoint
        self._config = config
        self._model = model
        self._is_bundled = model == MODEL_ID
        self._alias = model if self._is_bundled else Path(model).stem
        self._server: EmbeddedServer | None = None
        self._client: tuple[Address, OpenAIEndpoint] | None = None
        self._lock = asyncio.Lock()

    @property
    def name(self) -> str:
        """`endpoint:model`."""
        return f"{self._endpoint_name}:{self._model}"

    @property
    def traits(self) -> ModelTraits:
        """Of the embedded model all is known; of a user's file only the size of its context."""
        size = self._config.context_size or CONTEXT_SIZE
        if not self._is_bundled:
            return ModelTraits(context_size=size)
        return ModelTraits(tools=False, images=False, context_size=size, single_field_extraction=True)

    @property
    def pid(self) -> int | None:
        """The child's process id, while it runs."""
        return self._server.pid if self._server else None

    async def stream(self, request: ChatRequest) -> AsyncGenerator[ChatUpdate, None]:
        """Make the call; see `ChatClient.stream`.

        Raises:
            ModelNotFound: the file or the runtime is missing; the message says what to type.
            ModelUnavailable: the model could not be loaded, or its process ended; the next call starts it again.
            ModelError: the call failed.
        """
        server = await self._ready_server()
        client = OpenAIChat(await self._endpoint(server), self._alias, retries=RetryPolicy(0))
        tools = forced_tools(request) if self._is_bundled else ()
        sent = self._adapted(request) if self._is_bundled else request
        if tools:
            instructions = f"{sent.instructions}\n\n{as_instructions(tools)}".strip()
            sent = dataclasses.replace(sent, instructions=instructions, response_schema=as_schema(tools))
        try:
            async with aclosing(client.stream(sent)) as answered:
                updates = _one_call(answered) if tools else answered
                async for update in updates:
                    yield dataclasses.replace(update, model=self._alias) if isinstance(update, Finished) else update
        except (ModelUnavailable, ModelBadStream):
            if await server.has_crashed():
                raise ModelUnavailable(
                    f"the process of the embedded model {self._alias!r} ended; the next call starts it again"
                ) from None
            raise

    async def aclose(self) -> None:
        """End the child."""
        if self._client is not None:
            await self._client[1].aclose()
        if self._server is not None:
            await self._server.aclose()

    async def _ready_server(self) -> EmbeddedServer:
        async with self._lock:
            if self._server is None:
                path = await asyncio.to_thread(self._find)
                self._server = EmbeddedServer(path, self._alias, self._config.context_size or CONTEXT_SIZE)
            return self._server

    def _find(self) -> Path:
        if runtime_version() is None:
            raise ModelNotFound(f"the embedded model's runtime is not installed; {GET_IT}")
        return checked_file() if self._is_bundled else own_file(self._model)

    async def _endpoint(self, server: EmbeddedServer) -> OpenAIEndpoint:
        """The endpoint of the child that runs now."""
        address = await server.address()
        if self._client is None or self._client[0] != address:
            if self._client is not None:
                await self._client[1].aclose()
            # llama.cpp closes the connection after a streamed answer; one that is used again may find it closed.
            config = self._config.model_copy(
                update={"base_url": address.url, "api_key_secret": "key", "headers": {"Connection": SecretStr("close")}}
            )
            endpoint = OpenAIEndpoint(self._endpoint_name, config, secrets={"key": address.key}, use_proxies=False)
            self._client = (address, endpoint)
        return self._client[1]

    @staticmethod
    def _adapted(request: ChatRequest) -> ChatRequest:
        plain = without_tools(request)
        defaults = {"temperature": 0.0, "max_output_tokens": LONGEST_ANSWER}
        return dataclasses.replace(plain, options=_with_defaults(plain.options, defaults))


def _with_defaults(options: RunOptions, defaults: dict[str, float]) -> RunOptions:
    unset = {name: value for name, value in defaults.items() if getattr(options, name) is None}
    return options.model_copy(update=unset)


async def _one_call(answered: AsyncGenerator[ChatUpdate, None]) -> AsyncGenerator[ChatUpdate, None]:
    """The answer under a tools' schema, as a call."""
    text: list[str] = []
    async for update in answered:
        match update:
            case TextDelta():
                text.append(update.text)
            case Finished(reason="stop") if call := as_call("".join(text)):
                yield CallRequested(call)
                yield dataclasses.replace(update, reason="toolCalls")
            case _:
                yield update
