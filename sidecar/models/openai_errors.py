"""What an endpoint's failure means: HTTP statuses, error bodies and broken connections, as the sidecar's errors.

The endpoint's own words are read to tell errors apart and never passed on: they may hold prompts, paths and keys.
"""

import email.utils
import math
import socket
import ssl
import time
from collections.abc import Mapping
from typing import Any, Final, cast

from sidecar.errors import (
    ContentFiltered,
    ContextWindowExceeded,
    ModelAuth,
    ModelBadRequest,
    ModelError,
    ModelNotFound,
    ModelQuota,
    ModelRateLimited,
    ModelTimeout,
    ModelUnavailable,
    SidecarError,
)

RETRIED_STATUSES: Final = frozenset({408, 409, 429, *range(500, 600)})

_QUOTA: Final = ("insufficient_quota", "billing_hard_limit", "billing_not_active", "insufficient balance")
_TOO_LONG: Final = (
    "context_length_exceeded", "exceed_context_size", "context length", "context window", "context size",
    "prompt is too long", "too many tokens",
)  # fmt: skip
_FILTERED: Final = (
    "content_filter", "content_policy", "content management policy", "moderation_blocked", "bio_policy",
    "policy_violation",
)  # fmt: skip
_NO_MODEL: Final = ("model_not_found", "model not found", "does not exist", "unknown model", "no such model")
_NOT_KEPT: Final = ("previous_response_not_found", "previous response with id", "conversation with id")
_OF_THE_REQUEST: Final = (
    "invalid_prompt", "invalid_request", "invalid_image", "invalid_base64_image", "image_too_", "model_not_found",
)  # fmt: skip
"""Inside a stream, where no status tells: sent again, it would fail again."""


def error_of_status(
    status: int, body: Any, headers: Mapping[str, str], *, endpoint: str, model: str, key_hint: str = ""
) -> SidecarError:
    """The error that an HTTP answer with this status means.

    Args:
        status: the HTTP status, 3xx to 5xx.
        body: the answer's JSON body, or its `error`, or anything else.
        headers: the answer's headers, for `Retry-After`.
        endpoint: the endpoint's name in the configuration.
        model: the model that was asked for.
        key_hint: where the key comes from, for a message about a refused one.
    """
    words = _words(body)
    says = f"endpoint {endpoint!r} answered {status}"
    fields: dict[str, Any] = {"http_status": status}
    if 300 <= status < 400:
        return ModelUnavailable(
            f"{says}, a redirect; redirects are not followed: set its base_url to the place itself", **fields
        )
    if status in {401, 403}:
        return ModelAuth(f"{says}: it refused the key{key_hint}", **fields)
    if status == 402 or _any(_QUOTA, words):
        return ModelQuota(f"{says}: the account has no quota left", **fields)
    if status == 429:
        wait = retry_after_ms(headers)
        return ModelRateLimited(f"{says}: too many requests", **fields, retry_after_ms=wait)
    if status == 408:
        return ModelTimeout(f"{says}: it gave up waiting", **fields)
    if status == 409 or status >= 500:
        return ModelUnavailable(f"{says}; try again later", **fields, retry_after_ms=retry_after_ms(headers))
    return _refused_request(status, words, says, model)


def _refused_request(status: int, words: str, says: str, model: str) -> SidecarError:
    fields: dict[str, Any] = {"http_status": status}
    if _any(_TOO_LONG, words):
        return ContextWindowExceeded(f"{says}: the request is longer than the model's context", **fields)
    if _any(_FILTERED, words):
        return ContentFiltered(f"{says}: the service refused to process the request", **fields)
    if _any(_NOT_KEPT, words):
        return ModelBadRequest(f"{says}: it does not keep the conversation that this call goes on from", **fields)
    if _any(_NO_MODEL, words) or (status == 404 and "model" in words):
        return ModelNotFound(
            f"{says}: it has no model {model!r}; listModels and the endpoint's own list name them", **fields
        )
    if status == 404:
        return ModelBadRequest(f"{says}: nothing is there; check base_url (it usually ends in /v1) and type", **fields)
    return ModelBadRequest(f"{says}: it called the request malformed", **fields)


def error_in_stream(error: Any, endpoint: str) -> SidecarError:
    """The error that `data: {"error": …}` inside a stream means."""
    code: Any = cast(dict[str, Any], error).get("code") if isinstance(error, dict) else None
    words = _words(error)
    status = code if isinstance(code, int) and 300 <= code < 600 else _status_of(words)
    return error_of_status(status, error, {}, endpoint=endpoint, model="of this run")


def _status_of(words: str) -> int:
    if _any(_TOO_LONG + _FILTERED, words):
        return 400
    if "rate_limit" in words or _any(_QUOTA, words):
        return 429
    if "authentication" in words or "invalid_api_key" in words:
        return 401
    return 400 if _any(_NOT_KEPT + _OF_THE_REQUEST, words) else 500


def error_of_connection(error: BaseException, endpoint: str, address: str) -> ModelError:
    """The error that a connection which could not be made means."""
    causes = list(_causes(error))
    if any(isinstance(cause, ssl.SSLError) for cause in causes):
        why = "its TLS certificate or handshake was not accepted"
    elif any(isinstance(cause, socket.gaierror) for cause in causes):
        why = "its name does not resolve"
    elif any(isinstance(cause, ConnectionRefusedError) for cause in causes):
        why = "nothing listens there"
    else:
        why = "the connection failed"
    return ModelUnavailable(f"endpoint {endpoint!r} at {address} cannot be reached: {why}")


def retry_after_ms(headers: Mapping[str, str]) -> int | None:
    """How long the endpoint asks to wait: seconds, milliseconds or a date; `None` if it says nothing that is clear."""
    milliseconds = _number(headers.get("retry-after-ms"))
    if milliseconds is not None:
        return math.ceil(milliseconds)
    value = headers.get("retry-after")
    seconds = _number(value)
    if seconds is None and value:
        try:
            seconds = email.utils.parsedate_to_datetime(value).timestamp() - time.time()
        except (ValueError, OverflowError):
            return None
    return None if seconds is None else max(0, math.ceil(seconds * 1000))


def _number(value: str | None) -> float | None:
    try:
        number = float(value or "")
    except ValueError:
        return None
    return number if 0 <= number < 1e9 else None


def _words(body: Any) -> str:
    """What is said of the error, in lower case: code, type and message."""
    if isinstance(body, dict):
        fields = cast(dict[str, Any], body)
        if isinstance(fields.get("error"), dict | str):
            return _words(fields["error"])
        return " ".join(str(fields.get(name)) for name in ("code", "type", "message", "param")).lower()[:2000]
    return body.lower()[:2000] if isinstance(body, str) else ""


def _any(phrases: tuple[str, ...], words: str) -> bool:
    return any(phrase in words for phrase in phrases)


def _causes(error: BaseException | None) -> list[BaseException]:
    found: list[BaseException] = []
    while error is not None and error not in found:
        found.append(error)
        if isinstance(error, BaseExceptionGroup):
            found.extend(cast(BaseExceptionGroup[BaseException], error).exceptions)
        error = error.__cause__ or error.__context__
    return found
