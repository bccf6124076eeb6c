"""What the configured endpoints offer, for a host's picker. Each is asked for its list; none is asked to answer."""

import asyncio
import time
from collections.abc import Mapping, Sequence
from typing import Final

from sidecar.errors import SidecarError
from sidecar.telemetry import LOGGER

from .openai_endpoint import OpenAIEndpoint
from .openai_models import ListedModel, list_models

PICKER_TIMEOUT_S: Final = 3.0
"""How long a list may take: somebody waits for the picker to open."""
FRESH_S: Final = 30.0
"""How long a list counts, a failure to get it too."""
MOST_LISTED: Final = 1_000
"""Models of one endpoint that are told."""


class Offered:
    """The lists of some endpoints, each asked for at most once in `FRESH_S` seconds."""

    def __init__(self) -> None:
        self._lists: dict[str, tuple[float, tuple[ListedModel, ...]]] = {}
        self._asking = asyncio.Lock()

    async def by(self, endpoints: Sequence[OpenAIEndpoint]) -> Mapping[str, ListedModel]:
        """What they list, as `endpoint:model`. One that cannot be asked, or not in time, offers nothing."""
        async with self._asking:
            lists = await asyncio.gather(*(self._list(endpoint) for endpoint in endpoints))
        return {
            f"{endpoint.name}:{model.model_id}": model
            for endpoint, models in zip(endpoints, lists, strict=True)
            for model in models
        }

    async def _list(self, endpoint: OpenAIEndpoint) -> tuple[ListedModel, ...]:
        since, known = self._lists.get(endpoint.name, (float("-inf"), ()))
        if time.monotonic() - since < FRESH_S:
            return known
        models: tuple[ListedModel, ...] = ()
        try:
            models = tuple(await list_models(endpoint, PICKER_TIMEOUT_S))[:MOST_LISTED]
        except SidecarError as error:
            LOGGER.info("listModels: %s", error.message)
        self._lists[endpoint.name] = time.monotonic(), models
        return models
