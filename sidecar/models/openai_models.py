"""The models that an OpenAI-compatible endpoint lists, and what it says of them. One request; no model is called."""

import asyncio
from dataclasses import dataclass
from typing import Any, Final, cast

from sidecar.errors import ModelAuth, ModelUnavailable

from .json_text import parse
from .openai_endpoint import OpenAIEndpoint
from .openai_errors import error_of_connection, error_of_status
from .openai_key import COMMAND_TIMEOUT_S

LISTING_TIMEOUT_S: Final = COMMAND_TIMEOUT_S + 15.0
MAX_LIST_BYTES: Final = 8 << 20
"""The longest list that is read: thousands of models, with all that is said of them."""
MAX_ID_LENGTH: Final = 256
"""Characters of a model's id; one with a longer id is left out."""

_CONTEXT_SIZE_FIELDS: Final = ("max_model_len", "context_length", "context_window", "max_context_length")
"""The same fact by vLLM, OpenRouter and Together, Groq, Mistral and LM Studio. OpenAI's own list is silent."""

_SANE_SIZE: Final = 10**9


@dataclass(frozen=True, slots=True)
class ListedModel:
    """One model of a list; None is what the endpoint does not say."""

    model_id: str
    context_size: int | None = None
    tools: bool | None = None
    images: bool | None = None


async def list_models(endpoint: OpenAIEndpoint, timeout_s: float = LISTING_TIMEOUT_S) -> list[ListedModel]:
    """What the endpoint offers, in its order. A model whose id cannot be shown as it is, is left out.

    Args:
        endpoint: who is asked.
        timeout_s: for all of it, the command that prints the key included.

    Raises:
        ModelAuth: the endpoint refused the key, or needs one.
        ModelUnavailable: there is no list, for any other reason.
    """
    where = f"endpoint {endpoint.name!r} at {endpoint.address}"
    try:
        async with asyncio.timeout(timeout_s):
            body = await _body(endpoint, where)
    except TimeoutError:
        raise ModelUnavailable(f"{where} did not list its models within {timeout_s:g} s") from None
    models = await asyncio.to_thread(_read, body)
    if models is None:
        raise ModelUnavailable(f"{where} did not answer with a list of models; check base_url")
    return models


async def _body(endpoint: OpenAIEndpoint, where: str) -> bytes:
    client = await endpoint.client()
    headers = await endpoint.headers()
    import httpx2
    from openai import APIConnectionError, APIStatusError

    listing = await asyncio.to_thread(lambda: client.models.with_streaming_response)
    body = bytearray()
    try:
        async with listing.list(extra_headers=headers) as response:
            async for piece in response.iter_bytes():
                body += piece
                if len(body) > MAX_LIST_BYTES:
                    raise ModelUnavailable(f"{where} answered with a list of models of over {MAX_LIST_BYTES} bytes")
    except APIStatusError as error:
        meaning = error_of_status(
            error.status_code,
            error.body,
            {},
            endpoint=endpoint.name,
            model="",
            key_hint=endpoint.key_source.hint,
        )
        if isinstance(meaning, ModelAuth):
            endpoint.key_source.forget()
            raise meaning from None
        raise ModelUnavailable(f"{where} did not list its models", http_status=error.status_code) from None
    except APIConnectionError as error:
        raise error_of_connection(error, endpoint.name, endpoint.address) from None
    except httpx2.HTTPError:
        raise ModelUnavailable(f"{where}: the connection broke in the middle of its list of models") from None
    return bytes(body)


def _read(body: bytes) -> list[ListedModel] | None:
    try:
        return _models(parse(body))
    except ValueError:
        return None


def _models(listed: Any) -> list[ListedModel] | None:
    rows = cast(dict[str, Any], listed).get("data") if isinstance(listed, dict) else None
    if not isinstance(rows, list):
        return None
    known = [cast(dict[str, Any], row) for row in cast(list[Any], rows) if isinstance(row, dict)]
    return [_model(row) for row in known if _is_shown(row.get("id"))]


def _is_shown(model_id: Any) -> bool:
    """A person picks one of these by what it looks like: no control characters, none that turn text around."""
    return isinstance(model_id, str) and 0 < len(model_id) <= MAX_ID_LENGTH and model_id.isprintable()


def _model(row: dict[str, Any]) -> ListedModel:
    sizes = (row.get(field) for field in _CONTEXT_SIZE_FIELDS)
    return ListedModel(
        row["id"],
        context_size=next((size for size in sizes if type(size) is int and 0 < size < _SANE_SIZE), None),
        tools=_says(row.get("supported_parameters"), "tools", row, "function_calling"),
        images=_says(_object(row.get("architecture")).get("input_modalities"), "image", row, "vision"),
    )


def _says(listed: Any, word: str, row: dict[str, Any], capability: str) -> bool | None:
    """OpenRouter lists what a model takes; Mistral has a flag for it."""
    if isinstance(listed, list):
        return word in listed
    flag = _object(row.get("capabilities")).get(capability)
    return flag if isinstance(flag, bool) else None


def _object(value: Any) -> dict[str, Any]:
    return cast(dict[str, Any], value) if isinstance(value, dict) else {}
