"""Takes out of one message what is a secret by its place: values, not names. Pure; knows the contract's members."""

from collections.abc import Callable, Iterator
from typing import Final, cast

from protocol.base import Json, JsonObject
from sidecar.config.known_secrets import REMOVED, SHORTEST_GUESSED, Secrets, is_secret_name

_KWARGS: Final = ("functionInvocationKwargs", "clientKwargs", "kwargs")
_SETTINGS: Final = ("config", "implementationConfig", "harness", "mcpServers", "settings")
"""Members of params, at any depth, that configure something."""
_VALUES: Final = ("env", "headers", "extraHeaders", "extraBody")
"""Members of settings whose values are secrets, all of them."""

_BLOCK: Final = ("params", "initializationOptions", "sidecar")


def from_client(message: JsonObject, secrets: Secrets) -> JsonObject:
    """A message of the client's without its secrets. From now on `secrets` knows them, wherever they come again."""
    params = message.get("params")
    if isinstance(params, dict):
        message = {
            **message,
            "params": _without_settings(_without_kwargs(cast("JsonObject", params), secrets), secrets),
        }
    if message.get("method") == "initialize":
        message = _replaced(message, (*_BLOCK, "secrets"), lambda value: _removed(value, secrets, shortest=1))
    return _clean(message, secrets)


def to_client(message: JsonObject, secrets: Secrets) -> JsonObject:
    """A message to the client without secrets: those of a run that host tools and host providers are given."""
    params = message.get("params")
    if isinstance(params, dict) and "id" in message:
        message = {**message, "params": _without_kwargs(cast("JsonObject", params), secrets)}
    return _clean(message, secrets)


def _clean(message: JsonObject, secrets: Secrets) -> JsonObject:
    return {name: item if name == "method" else secrets.clean_json(item) for name, item in message.items()}


def _without_kwargs(params: JsonObject, secrets: Secrets) -> JsonObject:
    found = [name for name in _KWARGS if params.get(name) is not None]
    for name in found:
        secrets.add(_named(params[name]))
    return params | {name: _blank(params[name]) for name in found}


def _blank(kwargs: Json) -> Json:
    """Names without values; of a value not even its shape is told."""
    return dict.fromkeys(cast("JsonObject", kwargs), REMOVED) if isinstance(kwargs, dict) else REMOVED


def _without_settings(value: Json, secrets: Secrets) -> Json:
    if isinstance(value, dict):
        return {
            name: _settings(item, secrets) if name in _SETTINGS else _without_settings(item, secrets)
            for name, item in cast("JsonObject", value).items()
        }
    if isinstance(value, list):
        return [_without_settings(item, secrets) for item in cast("list[Json]", value)]
    return value


def _settings(value: Json, secrets: Secrets) -> Json:
    if isinstance(value, list):
        return [_settings(item, secrets) for item in cast("list[Json]", value)]
    if not isinstance(value, dict):
        return value
    return {
        name: _removed(item, secrets) if _is_secret(name, item) else _settings(item, secrets)
        for name, item in cast("JsonObject", value).items()
    }


def _is_secret(name: str, value: Json) -> bool:
    return name in _VALUES or (isinstance(value, str) and is_secret_name(name))


def _removed(value: Json, secrets: Secrets, *, shortest: int = SHORTEST_GUESSED) -> Json:
    """`<secret>` for every value in it; a list of `{name, value}` keeps its names."""
    if isinstance(value, dict):
        members = cast("JsonObject", value)
        kept = "name" if members.keys() == {"name", "value"} else None
        return {
            name: item if name == kept else _removed(item, secrets, shortest=shortest) for name, item in members.items()
        }
    if isinstance(value, list):
        return [_removed(item, secrets, shortest=shortest) for item in cast("list[Json]", value)]
    if isinstance(value, str) and len(value) >= shortest:
        secrets.add((value,))
    return value if value is None else REMOVED


def _named(value: Json, name: str = "") -> Iterator[str]:
    """The texts that are called secrets, or headers: they are looked for elsewhere, other values are not."""
    if isinstance(value, dict):
        for key, item in cast("JsonObject", value).items():
            yield from _named(item, key if name not in _VALUES else name)
    elif isinstance(value, list):
        for item in cast("list[Json]", value):
            yield from _named(item, name)
    elif isinstance(value, str) and len(value) >= SHORTEST_GUESSED and (name in _VALUES or is_secret_name(name)):
        yield value


def _replaced(value: Json, path: tuple[str, ...], change: Callable[[Json], Json]) -> JsonObject:
    """A copy with the member at `path` changed, where there is one."""
    members = cast("JsonObject", value)
    first, *rest = path
    if not isinstance(value, dict) or members.get(first) is None:
        return members
    return {**members, first: _replaced(members[first], tuple(rest), change) if rest else change(members[first])}
