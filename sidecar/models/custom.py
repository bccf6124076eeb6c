"""The chat client of a plug-in, held to the contract: what it gives is checked, what it raises is a model error.

It is imported and made at the first call, or before its first run, off the event loop; closed with its configuration.
"""

import asyncio
import inspect
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, cast

from providers.api.chat_client import ChatClientError, whole_answer
from providers.api.ports import ChatRequest, ChatUpdate, ModelTraits
from providers.import_thread import IMPORT_S, Once, in_thread
from providers.plugin_config import made
from providers.plugins import Plugin, PluginError, imported_object, installed, is_import_path, load_installed_object
from sidecar.config.endpoints import EndpointConfig
from sidecar.errors import (
    ConfigInvalid,
    ContentFiltered,
    ContextWindowExceeded,
    ModelAuth,
    ModelBadRequest,
    ModelBadStream,
    ModelNotFound,
    ModelQuota,
    ModelRateLimited,
    ModelTimeout,
    ModelUnavailable,
    SidecarError,
    new_error_id,
)
from sidecar.telemetry import log_failure

from .call_pairs import call_ids
from .custom_answer import CustomAnswer
from .time_limits import CallTimer

CLOSE_S: Final = 2.0
"""Longest wait for a client that is closed."""

_ERRORS: Final[dict[str, type[SidecarError]]] = {
    error.kind: error
    for error in (
        ModelAuth,
        ModelRateLimited,
        ModelQuota,
        ContextWindowExceeded,
        ContentFiltered,
        ModelBadRequest,
        ModelUnavailable,
        ModelTimeout,
        ModelBadStream,
        ModelNotFound,
    )
}


class CustomChat:
    """One model of a plug-in's client."""

    def __init__(self, endpoint: str, config: EndpointConfig, model: str, folders: Sequence[Path]) -> None:
        """Nothing is imported yet. `folders`: where the plug-ins of the configuration are."""
        self._endpoint = endpoint
        self._config = config
        self._model = model
        self._folders = folders
        self._traits = ModelTraits(context_size=config.context_size)
        self._client: Any = None
        self._loading = Once(self._load)

    @property
    def name(self) -> str:
        """`endpoint:model`."""
        return f"{self._endpoint}:{self._model}"

    @property
    def traits(self) -> ModelTraits:
        """What the client says of itself; nothing is known before it is loaded."""
        return self._traits

    async def load(self) -> None:
        """Import and make the client, unless it is there.

        Raises:
            ConfigInvalid: it cannot be imported or made.
        """
        if self._client is None:
            await self._loading.get()

    async def stream(self, request: ChatRequest) -> AsyncGenerator[ChatUpdate, None]:
        """Make the call; see `ChatClient.stream`.

        Raises:
            ConfigInvalid: the client cannot be imported or made.
            ModelError: the call failed, or the client broke the contract.
        """
        await self.load()
        idle_s, total_s = self._config.idle_timeout_ms / 1000, self._config.total_timeout_ms / 1000
        timer = CallTimer(self._endpoint, idle_s, asyncio.get_running_loop().time() + total_s)
        answer = CustomAnswer(self.name, call_ids(request.messages))
        updates: AsyncIterator[Any] | None = None
        try:
            updates = await timer.within(self._begin(request))
            while not answer.is_finished:
                update = await timer.within(anext(updates, None))
                timer.heard()
                for checked in answer.checked(update):
                    yield checked
        except GeneratorExit:
            raise
        except BaseException as error:
            told = self._told(error)
            if told is error:
                raise
            raise told from error
        finally:
            if isinstance(updates, AsyncGenerator):
                await self._end(cast("AsyncGenerator[Any, None]", updates))

    async def aclose(self) -> None:
        """Close the client, if it was made and can be closed."""
        client, self._client = self._client, None
        close = getattr(client, "aclose", None)
        if not callable(close):
            return
        try:
            async with asyncio.timeout(CLOSE_S):
                closing = close()
                if inspect.isawaitable(closing):
                    await closing
        except (Exception, SystemExit) as error:
            log_failure(f"closing {self.name}", error, new_error_id())

    async def _begin(self, request: ChatRequest) -> AsyncIterator[Any]:
        if not callable(getattr(self._client, "stream", None)):
            return _iterated(await whole_answer(self._client.get_response, request))
        updates = self._client.stream(request)
        if inspect.isawaitable(updates):
            updates = await updates
        if not isinstance(updates, AsyncIterator):
            raise ModelBadStream(f"{self.name}: stream gave a {type(updates).__name__}, not an async iterator")
        return cast("AsyncIterator[Any]", updates)

    async def _end(self, updates: AsyncGenerator[Any, None]) -> None:
        """Close a stream. What goes wrong in that changes nothing of the answer."""
        try:
            await updates.aclose()
        except (Exception, SystemExit) as error:
            log_failure(f"closing a stream of {self.name}", error, new_error_id())

    async def _load(self) -> None:
        what = f"endpoint {self._endpoint!r}"
        try:
            client = await in_thread(self._made)
        except (PluginError, TimeoutError) as error:
            why = str(error) or f"{self._config.type!r} is still being imported after {IMPORT_S:.0f} seconds"
            refusal = ConfigInvalid(f"{what}: chat client {why}", key=f"endpoints.{self._endpoint}")
            log_failure(what, error.__cause__ or error, refusal.error_id)
            raise refusal from error
        traits: object = getattr(client, "traits", None)
        known = traits if isinstance(traits, ModelTraits) else ModelTraits()
        self._traits = replace(known, context_size=self._config.context_size or known.context_size)
        self._client = client

    def _made(self) -> object:
        plugin = self._plugin()
        if not isinstance(plugin.target, type):
            raise PluginError(f"{plugin.what!r} in {plugin.place} is no class, but a {type(plugin.target).__name__}")
        _refuse_no_client(plugin)
        return made(plugin, self._config.config, self._endpoint, self._model)

    def _plugin(self) -> Plugin:
        kind = self._config.type
        if is_import_path(kind):
            return imported_object(kind, self._folders)
        point = installed("chat_clients").get(kind)
        if point is None:
            raise PluginError(f"{kind!r} is no longer installed")
        return load_installed_object(point)

    def _told(self, error: BaseException) -> BaseException:
        """What the caller is told: cancelling is his own doing; of all else he gets no text that may hold a secret."""
        if isinstance(error, SidecarError):
            return error
        if isinstance(error, asyncio.CancelledError) and _is_cancelled():
            return error
        if isinstance(error, ChatClientError):
            return _ERRORS[error.kind](f"{self.name}: {error.message}", retry_after_ms=error.retry_after_ms)
        failure = ModelUnavailable(f"{self.name}: its chat client failed: {type(error).__name__}")
        log_failure(f"chat client of {self.name}", error, failure.error_id)
        return failure


async def _iterated(updates: Sequence[ChatUpdate]) -> AsyncGenerator[ChatUpdate, None]:
    for update in updates:
        yield update


def _refuse_no_client(plugin: Plugin) -> None:
    if callable(getattr(plugin.target, "stream", None)):
        return
    get_response: object = getattr(plugin.target, "get_response", None)
    if not callable(get_response):
        raise PluginError(
            f"{plugin.what!r} in {plugin.place} is no chat client: it has neither stream nor get_response"
        )
    try:
        inspect.signature(get_response).bind(None, (), options=None, client_kwargs=None)
    except TypeError as error:
        raise PluginError(
            f"{plugin.what!r} in {plugin.place}: get_response must take (messages, *, options, client_kwargs): {error}"
        ) from None


def _is_cancelled() -> bool:
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
