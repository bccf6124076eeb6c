"""The embedder that a configuration names. Nothing of it is imported before somebody asks: most processes never do."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from providers.api.memory import Embedder
from sidecar.config.model import Config

if TYPE_CHECKING:
    from .registry import Embedders


class ConfiguredEmbedder:
    """Finds one embedder, and closes what it holds."""

    def __init__(self, config: Config, secrets: Mapping[str, str]) -> None:
        """`secrets`: what the host gave at `initialize`."""
        self._config = config
        self._secrets = secrets
        self._embedders: Embedders | None = None

    async def find(self) -> Embedder | None:
        """The embedder; `None`: memory is found by full text alone.

        Raises:
            ModelNotFound: there is no such endpoint.
            ConfigInvalid: the endpoint has no embeddings.
        """
        if self._embedders is None:
            from .registry import Embedders

            seconds = self._config.limits.retrieval_timeout_ms / 1000
            self._embedders = Embedders(self._config.endpoints, retrieval_timeout_s=seconds, secrets=self._secrets)
        return await self._embedders.get(self._config.embeddings.embedder)

    async def aclose(self) -> None:
        """Close connections, and end the process of a local model."""
        if self._embedders is not None:
            await self._embedders.aclose()
