"""Finds the embedder that the configuration asks for: `auto`, `none`, or a model of an endpoint. It embeds nothing."""

import asyncio
import os
from collections.abc import Mapping
from typing import Final

from providers.api.memory import Embedder
from sidecar.config.endpoints import EndpointConfig
from sidecar.errors import ConfigInvalid, ModelNotFound
from sidecar.models.openai_embeddings import OpenAIEmbedder
from sidecar.models.openai_endpoint import OpenAIEndpoint

from .bundled import best_installed
from .cache import CachedEmbedder, VectorCache
from .local import LocalEmbedder

AUTO: Final = "auto"
NONE: Final = "none"
TYPES: Final = ("openai", "openai_responses")
"""The types of endpoints that have an embeddings API."""

QUERY_SHARE: Final = 0.5
"""What part of the time for retrieving an embedder may take; in the rest, full text alone still finds something."""


class Embedders:
    """The embedders of a configuration that were asked for, and what they share: the cache, and the connections."""

    def __init__(
        self,
        endpoints: Mapping[str, EndpointConfig],
        *,
        retrieval_timeout_s: float = 10.0,
        secrets: Mapping[str, str] | None = None,
        environ: Mapping[str, str] = os.environ,
    ) -> None:
        """Nothing is opened or imported yet.

        Args:
            endpoints: name → configuration, the built-in ones among them.
            retrieval_timeout_s: how long whatever retrieves may take, in all.
            secrets: what the host gave at `initialize`; read at each call, so it may be filled later.
            environ: the environment.
        """
        self._endpoints = endpoints
        self._query_timeout_s = retrieval_timeout_s * QUERY_SHARE
        self._secrets: Mapping[str, str] = secrets if secrets is not None else {}
        self._environ = environ
        self._cache = VectorCache()
        self._found: dict[str, Embedder | None] = {NONE: None}
        self._local: LocalEmbedder | None = None
        self._openai: dict[str, OpenAIEndpoint] = {}
        self._lock = asyncio.Lock()

    async def get(self, setting: str) -> Embedder | None:
        """The embedder of `[embeddings] embedder`; the same one each time. Whether it works, its first call tells.

        Args:
            setting: `auto` (the best one that is installed here), `none`, or `endpoint:model`.

        Returns:
            `None`: there is none, and memory is found by full text alone.

        Raises:
            ModelNotFound: there is no such endpoint.
            ConfigInvalid: the endpoint is of a type that has no embeddings.
        """
        async with self._lock:
            if setting not in self._found:
                made = await self._find_local() if setting == AUTO else self._of_endpoint(setting)
                self._found[setting] = CachedEmbedder(made, self._cache) if made is not None else None
            return self._found[setting]

    async def aclose(self) -> None:
        """Close the connections, and let the thread of a local model end."""
        self._found = {NONE: None}
        endpoints, self._openai = self._openai, {}
        local, self._local = self._local, None
        if local is not None:
            await local.aclose()
        await asyncio.gather(*(endpoint.aclose() for endpoint in endpoints.values()))

    async def _find_local(self) -> LocalEmbedder | None:
        model = await asyncio.to_thread(best_installed)
        if model is not None:
            self._local = LocalEmbedder(model, query_timeout_s=self._query_timeout_s)
        return self._local

    def _of_endpoint(self, setting: str) -> OpenAIEmbedder:
        config, name, model = endpoint_of(setting, self._endpoints)
        endpoint = self._openai.get(name)
        if endpoint is None:
            endpoint = OpenAIEndpoint(name, config, environ=self._environ, secrets=self._secrets)
            self._openai[name] = endpoint
        return OpenAIEmbedder(endpoint, model, query_timeout_s=self._query_timeout_s)


def endpoint_of(setting: str, endpoints: Mapping[str, EndpointConfig]) -> tuple[EndpointConfig, str, str]:
    """The endpoint that `endpoint:model` means, its name, and the model's.

    Raises:
        ModelNotFound: there is no such endpoint.
        ConfigInvalid: it is of a type that has no embeddings.
    """
    name, _, model = setting.partition(":")
    config = endpoints.get(name)
    if config is None or not model:
        known = ", ".join(sorted(name for name, config in endpoints.items() if config.type in TYPES))
        raise ModelNotFound(f"no embedder {setting!r}: write auto, none or endpoint:model; the endpoints are {known}")
    if config.type not in TYPES:
        raise ConfigInvalid(
            f"the endpoint {name!r} is of type {config.type!r}, which has no embeddings; it must be openai",
            key="embeddings.embedder",
        )
    return config, name, model
