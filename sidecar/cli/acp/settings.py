"""A session's settings as ACP's config options and modes, and back. Sends nothing."""

from collections.abc import Sequence
from typing import Final

from protocol.base import Json, JsonObject
from sidecar_client.types import ConfigChoice, ConfigOption

OWN: Final = ""
"""The value that stands for the agent's own: ACP has no null there."""
MODE: Final = "mode"

_CATEGORIES: Final = {"model": "model", MODE: "mode", "reasoningEffort": "thought_level"}
_EFFORTS: Final = ("low", "medium", "high")
"""What is offered for the reasoning effort, which is free text with us."""


def config_options(options: Sequence[ConfigOption]) -> list[JsonObject]:
    """The settings that a client may show and change."""
    return [_select(option) for option in options]


def modes(options: Sequence[ConfigOption]) -> JsonObject | None:
    """The modes, for clients that know no config options; None where there are none."""
    option = next((option for option in options if option["id"] == MODE), None)
    if option is None:
        return None
    available = [_mode(choice) for choice in option.get("choices", [])]
    return {"currentModeId": option.get("value", OWN), "availableModes": available}


def setting(value: str) -> Json:
    """The value that `updateSession` takes for one that a client chose."""
    return None if value == OWN else value


def _select(option: ConfigOption) -> JsonObject:
    current = option.get("value")  # where it is null, the sidecar leaves it out
    choices = option.get("choices", [])
    if option["id"] == "reasoningEffort":
        efforts = [*_EFFORTS, *([str(current)] if current is not None and current not in _EFFORTS else [])]
        choices = [_choice(effort) for effort in efforts]
    offered = [_offered(choice) for choice in choices]
    if current is None or option["id"] == "reasoningEffort":
        offered.insert(0, {"value": OWN, "name": "The agent's own"})
    return {
        "id": option["id"],
        "name": option["name"],
        "category": _CATEGORIES.get(option["id"], "model_config"),
        "type": "select",
        "currentValue": OWN if current is None else str(current),
        "options": offered,
    }


def _mode(choice: ConfigChoice) -> JsonObject:
    mode: JsonObject = {"id": choice["value"], "name": choice["name"]}
    description = choice.get("description")
    return mode if description is None else {**mode, "description": description}


def _choice(value: str) -> ConfigChoice:
    return {"value": value, "name": value}


def _offered(choice: ConfigChoice) -> JsonObject:
    offered = {"value": str(choice["value"]), "name": choice["name"]}
    description = choice.get("description")
    return offered if description is None else {**offered, "description": description}
