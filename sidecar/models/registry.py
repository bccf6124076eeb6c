"""Finds the chat client of a model by its name, `endpoint:model`, and the model of the `default` agent. It calls none.

A new kind of endpoint is a function here and a row in `_FACTORIES`; what has no row is a plug-in's.
"""

import asyncio
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from protocol.agents import ModelInfo
from providers.api.ports import ChatClient
from sidecar.config.endpoints import EndpointConfig
from sidecar.errors import ModelNotFound, ModelUnavailable
from sidecar.models import embedded_files

from .custom import CustomChat
from .embedded import EmbeddedChat
from .offered import Offered
from .openai_chat import OpenAIChat
from .openai_endpoint import OpenAIEndpoint
from .openai_models import ListedModel, list_models
from .openai_responses import OpenAIResponses
from .scripted import ScriptedChat

EMBEDDED: Final = f"embedded:{embedded_files.MODEL_ID}"


class Models:
    """The endpoints of a configuration, and the clients that were asked for."""

    def __init__(
        self,
        endpoints: Mapping[str, EndpointConfig],
        *,
        default_model: str | None = None,
        secrets: Mapping[str, str] | None = None,
        environ: Mapping[str, str] = os.environ,
        plugins: Sequence[Path] = (),
    ) -> None:
        """Nothing is opened or imported yet.

        Args:
            endpoints: name → configuration, the built-in ones among them.
            default_model: `endpoint:model` of the configuration; there is no built-in one.
            secrets: what the host gave at `initialize`; read at each call, so it may be filled later.
            environ: the environment.
            plugins: folders of the configuration's plug-ins.
        """
        self._endpoints = endpoints
        self._default_model = default_model
        self._secrets: Mapping[str, str] = secrets if secrets is not None else {}
        self._environ = environ
        self._plugins = plugins
        self._found_default: str | None = None
        self._clients: dict[str, ChatClient] = {}
        self._openai: dict[str, OpenAIEndpoint] = {}
        self._offered = Offered()

    def get(self, model: str) -> ChatClient:
        """The client of `endpoint:model`; the same one each time. Whether it can be reached, its first call tells.

        Raises:
            ModelNotFound: there is no such endpoint.
        """
        client = self._clients.get(model)
        if client is None:
            endpoint, _, name = model.partition(":")
            config = self._endpoints.get(endpoint)
            if config is None or not name:
                known = ", ".join(sorted(self._endpoints))
                raise ModelNotFound(f"no model {model!r}: write endpoint:model; the endpoints are {known}")
            make = _FACTORIES.get(config.type)
            client = make(self, endpoint, config, name) if make else CustomChat(endpoint, config, name, self._plugins)
            self._clients[model] = client
        return client

    async def ready(self, model: str) -> ChatClient:
        """The same, once it can tell its traits: a plug-in's is imported and made first.

        Raises:
            ModelNotFound: there is no such endpoint.
            ConfigInvalid: the plug-in cannot be imported or made.
        """
        client = self.get(model)
        if isinstance(client, CustomChat):
            await client.load()
        return client

    async def default(self) -> str:
        """The model of an agent that names none.

        It is the configured one; else the environment's, if that names OpenAI or an endpoint like it; else the embedded
        one, if it is installed.

        Raises:
            ModelNotFound: there is none, or the endpoint offers several.
            ModelUnavailable: the environment's endpoint cannot be asked. The embedded model never steps in for it.
        """
        return self._default_model or self._found_default or await self._find_default()

    async def infos(self, also: Iterable[str] = ()) -> list[ModelInfo]:
        """The models that are known by name, without asking any endpoint.

        Args:
            also: further names, such as those of configured agents.
        """
        is_embedded = await asyncio.to_thread(embedded_files.is_installed)
        default = self._default_model or self._found_default or self._named_by_environment()
        if default is None and is_embedded and not self._has_environment():
            default = EMBEDDED
        names = [default, *also, EMBEDDED if is_embedded and "embedded" in self._endpoints else None]
        return [self._info(name, default) for name in dict.fromkeys(filter(None, names))]

    async def offered(self, also: Iterable[str] = ()) -> list[ModelInfo]:
        """The same, and what the endpoints list that have an address, configured or the environment's.

        Args:
            also: further names, such as those of configured agents.
        """
        has_address = [
            (name, config)
            for name, config in self._endpoints.items()
            if config.type in _LISTING and (config.base_url or (name == "openai" and self._has_environment()))
        ]
        listed = await self._offered.by([self.openai_endpoint(name, config) for name, config in has_address])
        known = {info.model: info for info in await self.infos(also)}
        return [_told(listed[name], info) if name in listed else info for name, info in known.items()] + [
            _told(model, self._listed_info(name)) for name, model in listed.items() if name not in known
        ]

    async def aclose(self) -> None:
        """Close all connections, and end the processes of embedded models."""
        await self._offered.aclose()
        clients, self._clients = self._clients, {}
        endpoints, self._openai = self._openai, {}
        closing = [client.aclose() for client in clients.values() if isinstance(client, EmbeddedChat | CustomChat)]
        closing.extend(endpoint.aclose() for endpoint in endpoints.values())
        await asyncio.gather(*closing)

    def openai_endpoint(self, name: str, config: EndpointConfig) -> OpenAIEndpoint:
        """The endpoint that all models of this name share."""
        endpoint = self._openai.get(name)
        if endpoint is None:
            endpoint = OpenAIEndpoint(name, config, environ=self._environ, secrets=self._secrets)
            self._openai[name] = endpoint
        return endpoint

    def _has_environment(self) -> bool:
        return bool(self._environ.get("OPENAI_BASE_URL") or self._environ.get("OPENAI_API_KEY"))

    def _named_by_environment(self) -> str | None:
        name = self._environ.get("OPENAI_MODEL")
        return f"openai:{name}" if name and self._has_environment() else None

    async def _find_default(self) -> str:
        if self._has_environment():
            self._found_default = self._named_by_environment() or await self._only_listed()
            return self._found_default
        if await asyncio.to_thread(embedded_files.is_installed):
            return EMBEDDED
        raise ModelNotFound(
            "no model is configured: set default_model in sidecar.toml (or OPENAI_API_KEY or OPENAI_BASE_URL, with "
            f"OPENAI_MODEL), or {embedded_files.GET_IT} for a small one that needs no service"
        )

    async def _only_listed(self) -> str:
        endpoint = self.openai_endpoint("openai", self._endpoints["openai"])
        ids = list(dict.fromkeys(model.model_id for model in await list_models(endpoint)))
        if not ids:
            raise ModelUnavailable(f"the endpoint at {endpoint.address} lists no models; set OPENAI_MODEL")
        if len(ids) > 1:
            shown = ", ".join(ids[:20]) + (", …" if len(ids) > 20 else "")
            raise ModelNotFound(
                f"the endpoint at {endpoint.address} has several models; set OPENAI_MODEL to one of: {shown}"
            )
        return f"openai:{ids[0]}"

    def _info(self, name: str, default: str | None) -> ModelInfo:
        endpoint = name.partition(":")[0]
        facts: dict[str, Any] = {}
        try:
            traits = self.get(name).traits
            facts = {"context_size": traits.context_size, "tools": traits.tools, "images": traits.images}
        except ModelNotFound:  # it is named somewhere; whether it works, a run will tell
            pass
        return ModelInfo(model=name, endpoint=endpoint, default=True if name == default else None, **facts)

    def _listed_info(self, name: str) -> ModelInfo:
        """The same for one of many, without a client that nobody has asked for."""
        endpoint = name.partition(":")[0]
        return ModelInfo(model=name, endpoint=endpoint, context_size=self._endpoints[endpoint].context_size)


def _told(model: ListedModel, info: ModelInfo) -> ModelInfo:
    """What the configuration says of a model; where it is silent, what its endpoint says."""
    told = {"context_size": model.context_size, "tools": model.tools, "images": model.images}
    return info.model_copy(update={name: value for name, value in told.items() if getattr(info, name) is None})


_Factory = Callable[[Models, str, EndpointConfig, str], ChatClient]


def _openai(models: Models, endpoint: str, config: EndpointConfig, model: str) -> ChatClient:
    return OpenAIChat(models.openai_endpoint(endpoint, config), model)


def _openai_responses(models: Models, endpoint: str, config: EndpointConfig, model: str) -> ChatClient:
    return OpenAIResponses(models.openai_endpoint(endpoint, config), model)


def _embedded(models: Models, endpoint: str, config: EndpointConfig, model: str) -> ChatClient:
    del models
    return EmbeddedChat(endpoint, config, model)


def _scripted(models: Models, endpoint: str, config: EndpointConfig, model: str) -> ChatClient:
    del models
    return ScriptedChat(endpoint, model, context_size=config.context_size)


_LISTING: Final = frozenset({"openai", "openai_responses"})
"""Types of endpoints that can be asked for a list."""

_FACTORIES: Final[Mapping[str, _Factory]] = {
    "openai": _openai,
    "openai_responses": _openai_responses,
    "embedded": _embedded,
    "scripted": _scripted,
}
