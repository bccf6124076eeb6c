"""The little that an editor's settings may configure: they can come from the workspace, which may be hostile."""

from collections.abc import Collection
from typing import Final

from pydantic_core import to_json

from protocol.base import JsonObject
from sidecar.errors import ConfigInvalid

from .issues import issues_of
from .keypath import KeyPath, dotted
from .model import Config
from .untrusted import admitted, named

ORIGIN: Final = "initializationOptions.sidecar.config"


def admit(settings: JsonObject, defined: Collection[str]) -> tuple[JsonObject, tuple[str, ...]]:
    """What counts of the settings, with the keys of TOML, and a warning that names what does not.

    Args:
        settings: Configuration as JSON, its keys in camelCase.
        defined: The agents that exist already; nothing is changed about these.

    Raises:
        ConfigInvalid: a value that would count has the wrong shape.
    """
    counting, ignored = admitted(settings, defined)
    return _in_toml_keys(counting), _warnings(ignored)


def _in_toml_keys(data: JsonObject) -> JsonObject:
    issues = issues_of(data, wire=True)
    if issues:
        key = dotted(issues[0].path)
        message = "\n".join(f"{dotted(path)}: {message}" for path, message in issues)
        raise ConfigInvalid(f"{ORIGIN}: {message}", key=key)
    config = Config.model_validate_json(to_json(data), by_alias=True, by_name=False)
    return config.model_dump(mode="json", by_alias=False, exclude_unset=True)


def _warnings(ignored: list[KeyPath]) -> tuple[str, ...]:
    if not ignored:
        return ()
    return (
        f"{ORIGIN}: ignored {named(ignored)}; settings of an editor may come from the workspace, so of them only "
        "description, instructions and options of agents that no file of the user defines count",
    )
