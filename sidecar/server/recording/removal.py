"""Takes out of one message what is a secret by its place or its name: values, not names. Knows the contract's members.

What is a secret by its form, or known from elsewhere, is the second step: `cleaned`.
"""

from collections.abc import Callable, Iterator
from typing import Final, cast

from protocol.base import Json, JsonObject
from sidecar.config.known_secrets import (
    REMOVED,
    SHORTEST_GUESSED,
    Secrets,
    is_secret_name,
    secrets_in_url,
    without_user_info,
)

_KWARGS: Final = ("functionInvocationKwargs", "clientKwargs", "kwargs")
_SETTINGS: Final = ("config", "implementationConfig", "harness", "mcpServers", "settings")
"""Members, at any depth, that configure something."""
_VALUES: Final = ("env", "headers", "extraHeaders", "extraBody")
"""Members of settings whose values are secrets, all of them."""
_SAMPLES: Final = ("default", "const", "value")
"""Members that hold a value of what is called a secret: in a schema, say."""

_NO_SECRETS: Final = ("workDoneToken", "partialResultToken", "progressToken")
_PROGRESS: Final = ("$/progress", "window/workDoneProgress/create", "window/workDoneProgress/cancel")
"""Their `token` is the name of a task."""

_BLOCK: Final = ("params", "initializationOptions", "sidecar")
_LONGEST_URL: Final = 4096


def from_client(message: JsonObject, secrets: Secrets) -> JsonObject:
    """A message of the client's without the secrets that it names. From now on `secrets` knows them."""
    if message.get("method") == "initialize":
        message = _replaced(message, (*_BLOCK, "secrets"), lambda value: _removed(value, secrets, shortest=1))
    return _without_named(_without_kwargs(message, secrets), secrets)


def to_client(message: JsonObject, secrets: Secrets) -> JsonObject:
    """A message to the client without those secrets: of a run, host tools and host providers are given some."""
    return _without_named(_without_kwargs(message, secrets) if "id" in message else message, secrets)


def cleaned(message: JsonObject, secrets: Secrets) -> JsonObject:
    """The message without secrets that are known, or are some by their form."""
    return {name: item if name == "method" else secrets.clean_json(item) for name, item in message.items()}


def _without_kwargs(message: JsonObject, secrets: Secrets) -> JsonObject:
    params = message.get("params")
    if not isinstance(params, dict):
        return message
    members = cast("JsonObject", params)
    found = [name for name in _KWARGS if members.get(name) is not None]
    for name in found:
        secrets.add(_named(members[name]))
    return {**message, "params": members | {name: _blank(members[name]) for name in found}} if found else message


def _blank(kwargs: Json) -> Json:
    """Names without values; of a value not even its shape is told."""
    return dict.fromkeys(cast("JsonObject", kwargs), REMOVED) if isinstance(kwargs, dict) else REMOVED


def _without_named(message: JsonObject, secrets: Secrets) -> JsonObject:
    kept = (*_NO_SECRETS, "token") if message.get("method") in _PROGRESS else _NO_SECRETS
    shown: JsonObject = {}
    for part, value in message.items():
        if part == "params" and isinstance(value, dict):
            members = cast("JsonObject", value)
            shown[part] = {
                name: item if name in kept else _member(name, item, secrets) for name, item in members.items()
            }
        else:  # a list is the answer to `workspace/configuration`
            shown[part] = _shown(value, secrets, in_settings=part == "result" and isinstance(value, list))
    return shown


def _shown(value: Json, secrets: Secrets, *, in_settings: bool = False) -> Json:
    if isinstance(value, dict):
        members = cast("JsonObject", value)
        shown = {name: _member(name, item, secrets, in_settings=in_settings) for name, item in members.items()}
        name = members.get("name")
        if "value" in members and isinstance(name, str) and is_secret_name(name):
            shown["value"] = _secret(members["value"], secrets)
        return shown
    if isinstance(value, list):
        items = cast("list[Json]", value)
        if in_settings:
            return list(_arguments(items, secrets))
        return [_shown(item, secrets) for item in items]
    return _url(value, secrets) if in_settings and isinstance(value, str) else value


def _member(name: str, value: Json, secrets: Secrets, *, in_settings: bool = False) -> Json:
    if in_settings and name in _VALUES:
        return _removed(value, secrets)
    if name not in _NO_SECRETS and is_secret_name(name):
        return _secret(value, secrets)
    return _shown(value, secrets, in_settings=in_settings or name in _SETTINGS)


def _secret(value: Json, secrets: Secrets) -> Json:
    """What stands in place of what is called a secret: of an object, its members count by their own names."""
    if isinstance(value, dict):
        return {
            name: _secret(item, secrets) if name in _SAMPLES else _member(name, item, secrets)
            for name, item in cast("JsonObject", value).items()
        }
    if isinstance(value, list):
        return [_secret(item, secrets) for item in cast("list[Json]", value)]
    return _removed(value, secrets) if isinstance(value, str) and value else value


def _arguments(items: list[Json], secrets: Secrets) -> Iterator[Json]:
    """A list in settings: of `["--token", "…"]`, and of `--token=…`, the names stay."""
    is_next = False
    for item in items:
        if not isinstance(item, str):
            yield _shown(item, secrets, in_settings=True)
            is_next = False
            continue
        option, _, given = item.partition("=")
        is_option = option.startswith("-") and is_secret_name(option)
        if is_next and not item.startswith("--"):
            yield _secret(item, secrets)
        elif is_option and given:
            yield f"{option}={_secret(given, secrets)}"
        else:
            yield _url(item, secrets)
        is_next = is_option and not given


def _url(text: str, secrets: Secrets) -> str:
    if "://" not in text or len(text) > _LONGEST_URL or len(text.split()) != 1:
        return text
    secrets.add(secrets_in_url(text))
    return without_user_info(text)


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
