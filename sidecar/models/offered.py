"""What the configured endpoints offer, for a host's picker. Each is asked for its list; none is asked to answer."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from sidecar.errors import SidecarError, new_error_id
from sidecar.telemetry import LOGGER, log_failure

from .openai_endpoint import OpenAIEndpoint
from .openai_models import ListedModel, list_models

PICKER_TIMEOUT_S: Final = 3.0
"""How long a list is waited for: somebody waits for the picker to open."""
GIVE_UP_S: Final = 15.0
"""How long an endpoint has for its list. One that comes after the wait is there for the next picker; and a person whom
the endpoint's `api_key_command` asks for something has the time to answer."""
FRESH_S: Final = 30.0
"""How long a list counts, a failure to get it too. Longer than `GIVE_UP_S`: an endpoint is asked once at a time."""
MOST_LISTED: Final = 1_000
"""Models of one endpoint that are told."""


class _Asked(NamedTuple):
    since: float
    """The loop's time, in seconds."""
    listing: asyncio.Task[tuple[ListedModel, ...]]


class Offered:
    """The lists of some endpoints, each asked for at most once in `FRESH_S` seconds, whoever wants them."""

    def __init__(self) -> None:
        self._asked: dict[str, _Asked] = {}

    async def by(self, endpoints: Sequence[OpenAIEndpoint]) -> Mapping[str, ListedModel]:
        """What they list, as `endpoint:model`. One that cannot be asked, or not in time, offers nothing."""
        lists = await asyncio.gather(*(self._list(endpoint) for endpoint in endpoints))
        return {
            f"{endpoint.name}:{model.model_id}": model
            for endpoint, models in zip(endpoints, lists, strict=True)
            for model in models
        }

    async def aclose(self) -> None:
        """Stop asking."""
        asked, self._asked = self._asked, {}
        for _, listing in asked.values():
            listing.cancel()
        await asyncio.gather(*(listing for _, listing in asked.values()), return_exceptions=True)

    async def _list(self, endpoint: OpenAIEndpoint) -> tuple[ListedModel, ...]:
        now = asyncio.get_running_loop().time()
        asked = self._asked.get(endpoint.name)
        if asked is None or now - asked.since >= FRESH_S:
            asked = self._asked[endpoint.name] = _Asked(now, asyncio.create_task(_ask(endpoint)))
        listing = asked.listing
        await asyncio.wait([listing], timeout=max(0.0, asked.since + PICKER_TIMEOUT_S - now))
        return listing.result() if listing.done() and not listing.cancelled() else ()


async def _ask(endpoint: OpenAIEndpoint) -> tuple[ListedModel, ...]:
    try:
        return tuple(await list_models(endpoint, GIVE_UP_S))[:MOST_LISTED]
    except SidecarError as error:
        LOGGER.info("listModels: %s", error.message)
    except Exception as error:  # one endpoint must hide no other
        log_failure(f"listModels of endpoint {endpoint.name!r}", error, new_error_id())
    return ()
