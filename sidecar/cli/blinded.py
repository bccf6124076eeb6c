"""A configuration as a stranger may see it: what is set, and where, without what people wrote. Pure."""

from dataclasses import replace
from typing import Final, cast

from pydantic_core import to_json

from protocol.base import Json, JsonObject
from sidecar.config.keypath import KeyPath
from sidecar.config.load import Loaded
from sidecar.config.model import Config

_TOLD: Final = frozenset(
    {
        "after_run_order",
        "agent",
        "decision",
        "implementation",
        "import",
        "mode",
        "model",
        "name",
        "on_error",
        "position",
        "reasoning_effort",
        "source_id",
        "state_key",
        "strategy",
        "tool",
        "tool_choice",
        "type",
    }
)
"""Keys of agents whose texts are names, of things or of choices."""
_FREE: Final = frozenset({"config", "implementation_config", "arguments", "harness"})
"""Below these, texts may be anything."""
_COMMANDS: Final = frozenset({"api_key_command", "args", "organization"})


def blinded(loaded: Loaded) -> Loaded:
    """The same configuration with lengths in place of prompts, of the arguments of commands, and of free-form texts."""
    data: JsonObject = loaded.config.model_dump(mode="json", by_alias=False, exclude_none=True, exclude_unset=True)
    hidden = to_json(_blind(data, ()))
    return replace(loaded, config=Config.model_validate_json(hidden, strict=True, by_alias=False, by_name=True))


def _blind(value: Json, path: KeyPath) -> Json:
    if isinstance(value, dict):
        return {name: _blind(item, (*path, name)) for name, item in cast("JsonObject", value).items()}
    if isinstance(value, list):
        return [_blind(item, (*path, index)) for index, item in enumerate(cast("list[Json]", value))]
    return f"({len(value)} characters)" if isinstance(value, str) and not _is_told(path) else value


def _is_told(path: KeyPath) -> bool:
    if _COMMANDS.intersection(path):
        return path[-2:] == ("api_key_command", 0)
    if path[0] == "agents":
        name = next((part for part in reversed(path) if isinstance(part, str)), "")
        return name in _TOLD and not _FREE.intersection(path)
    return not (path[0] == "endpoints" and "config" in path)
