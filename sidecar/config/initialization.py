"""The little that an editor's settings may configure: they can come from the workspace, which may be hostile."""

from collections.abc import Collection
from typing import Final

from pydantic_core import to_json

from protocol.base import JsonObject
from sidecar.errors import ConfigInvalid

from .issues import issues_of
from .keypath import KeyPath, as_table, dotted
from .model import Config

ORIGIN: Final = "initializationOptions.sidecar.config"

_ADMITTED: Final = frozenset({"description", "instructions", "options"})
_MOST_NAMED: Final = 20


def admit(settings: JsonObject, defined: Collection[str]) -> tuple[JsonObject, tuple[str, ...]]:
    """What counts of the settings, with the keys of TOML, and a warning that names what does not.

    Args:
        settings: Configuration as JSON, its keys in camelCase.
        defined: The agents that exist already; nothing is changed about these.

    Raises:
        ConfigInvalid: a value that would count has the wrong shape.
    """
    ignored: list[KeyPath] = [(key,) for key in settings if key != "agents"]
    agents = as_table(settings.get("agents", {}))
    if agents is None:
        ignored.append(("agents",))
        agents = {}
    admitted: JsonObject = {}
    for name, value in agents.items():
        agent = as_table(value)
        if agent is None or name in defined:
            ignored.append(("agents", name))
            continue
        ignored += [("agents", name, key) for key in agent if key not in _ADMITTED]
        admitted[name] = {key: agent[key] for key in agent if key in _ADMITTED}
    return _in_toml_keys({"agents": admitted}), _warnings(ignored)


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
    named = ", ".join(dotted(path) for path in ignored[:_MOST_NAMED])
    more = f" and {len(ignored) - _MOST_NAMED} more" if len(ignored) > _MOST_NAMED else ""
    return (
        f"{ORIGIN}: ignored {named}{more}; settings of an editor may come from the workspace, so of them only "
        "description, instructions and options of agents that no file of the user defines count",
    )
