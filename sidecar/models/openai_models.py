"""The models that an OpenAI-compatible endpoint lists. One request, made only when a default must be found."""

import asyncio
from typing import Any, Final, cast

from providers.api.clean_text import clean_text
from sidecar.errors import ModelAuth, ModelUnavailable

from .json_text import parse
from .openai_endpoint import OpenAIEndpoint
from .openai_errors import error_of_connection, error_of_status

LISTING_TIMEOUT_S: Final = 15.0


async def list_model_ids(endpoint: OpenAIEndpoint) -> list[str]:
    """The ids, in the endpoint's order.

    Raises:
        ModelAuth: the endpoint refused the key, or needs one.
        ModelUnavailable: there is no list, for any other reason.
    """
    client = await endpoint.client()
    headers = await endpoint.headers()
    from openai import APIConnectionError, APIStatusError

    where = f"endpoint {endpoint.name!r} at {endpoint.address}"
    listing = await asyncio.to_thread(lambda: client.models.with_raw_response)
    try:
        async with asyncio.timeout(LISTING_TIMEOUT_S):
            response = await listing.list(extra_headers=headers)
    except TimeoutError:
        raise ModelUnavailable(f"{where} did not list its models within {LISTING_TIMEOUT_S:g} s") from None
    except APIStatusError as error:
        meaning = error_of_status(error.status_code, error.body, {}, endpoint=endpoint.name, model="")
        if isinstance(meaning, ModelAuth):
            raise meaning from None
        raise ModelUnavailable(f"{where} did not list its models", http_status=error.status_code) from None
    except APIConnectionError as error:
        raise error_of_connection(error, endpoint.name, endpoint.address) from None
    try:
        ids = _ids(parse(response.content))
    except ValueError:
        ids = None
    if ids is None:
        raise ModelUnavailable(f"{where} did not answer with a list of models; check base_url")
    return ids


def _ids(listed: Any) -> list[str] | None:
    rows = cast(dict[str, Any], listed).get("data") if isinstance(listed, dict) else None
    if not isinstance(rows, list):
        return None
    ids = [cast(dict[str, Any], row).get("id") for row in cast(list[Any], rows) if isinstance(row, dict)]
    return [clean_text(name) for name in ids if isinstance(name, str) and name]
