"""`clientKwargs` of OpenAI-compatible endpoints: headers and body fields that a host adds to a request, checked."""

from collections.abc import Collection, Mapping
from typing import Any, cast

from protocol.base import JsonObject
from sidecar.errors import InvalidParams


def extra_headers(client_kwargs: Mapping[str, Any]) -> dict[str, str]:
    """`clientKwargs.extraHeaders`.

    Raises:
        InvalidParams: it is no object of strings.
    """
    given = client_kwargs.get("extraHeaders")
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise InvalidParams("clientKwargs.extraHeaders must be an object of strings")
    headers = cast(Mapping[Any, Any], given)
    for name, value in headers.items():
        if not (isinstance(name, str) and name.isascii() and isinstance(value, str) and _is_header_text(value)):
            raise InvalidParams("clientKwargs.extraHeaders must be an object of strings that fit on one line")
    return dict(headers)


def with_extra_body(body: JsonObject, client_kwargs: Mapping[str, Any], ours: Collection[str]) -> JsonObject:
    """The body with `clientKwargs.extraBody` over it; a null there takes a field away.

    Args:
        body: the request's body.
        client_kwargs: what the host gave.
        ours: fields that it may not touch.

    Raises:
        InvalidParams: it is no object, or names a field that is not the host's to set.
    """
    extra = client_kwargs.get("extraBody")
    if extra is None:
        return body
    if not isinstance(extra, Mapping):
        raise InvalidParams("clientKwargs.extraBody must be an object")
    fields = cast(Mapping[str, Any], extra)
    if taken := sorted(set(ours) & fields.keys()):
        raise InvalidParams(f"clientKwargs.extraBody may not set {', '.join(taken)}")
    merged = body | dict(fields)
    return {name: value for name, value in merged.items() if value is not None or name not in fields}


def _is_header_text(value: str) -> bool:
    return value.isascii() and (value.isprintable() or not value)
