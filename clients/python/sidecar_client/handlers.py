"""What answers the sidecar's requests to its host, by method, and what that amounts to as features. Answers nothing.

A handler is an asynchronous function from params to result. Its task is cancelled when the sidecar takes the request
back or ends. An `RpcError` that it raises is the answer; of any other exception the sidecar is told nothing but that
the handler failed. `host` has the comfortable way to the same: tools, providers, approvals and questions.
"""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, TypeAlias

from .types import JsonObject

RequestHandler: TypeAlias = Callable[[Any], Awaitable[Any]]
"""Answers a request of the sidecar: takes its params, returns its result, or raises `RpcError`."""

_FEATURES: Final[dict[str, tuple[str, JsonObject]]] = {
    "host/callTool": ("hostTools", {}),
    "host/beforeRun": ("hostProviders", {}),
    "host/afterRun": ("hostProviders", {}),
    "host/requestApproval": ("approvals", {}),
    "host/elicit": ("elicitation", {"form": {}, "url": {}}),
}


def features_of(handlers: Mapping[str, object]) -> JsonObject:
    """The `features` that a client with these handlers declares."""
    return dict(_FEATURES[method] for method in handlers if method in _FEATURES)
