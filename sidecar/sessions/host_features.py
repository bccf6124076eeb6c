"""What the client can be asked, by what it has declared. Asks nothing."""

from dataclasses import dataclass
from typing import Any, Final, cast

from protocol.base import Json, JsonObject


@dataclass(frozen=True, slots=True)
class HostFeatures:
    """Which questions the client understands. Tools and providers need no word: who supplies them serves them."""

    approvals: bool = False
    elicit_form: bool = False
    elicit_url: bool = False
    editor_context: bool = False
    message_request: bool = False
    """A plain editor that can show a message with buttons."""


NO_FEATURES: Final = HostFeatures()


def host_features(features: JsonObject, capabilities: JsonObject) -> HostFeatures:
    """From `initializationOptions.sidecar.features`, and LSP's client capabilities."""
    elicitation = features.get("elicitation")
    return HostFeatures(
        approvals=_is_there(features.get("approvals")),
        elicit_form=_is_there(_member(elicitation, "form")),
        elicit_url=_is_there(_member(elicitation, "url")),
        editor_context=_is_there(features.get("editorContext")),
        message_request=isinstance(_member(_member(capabilities, "window"), "showMessage"), dict),
    )


def _is_there(feature: Json) -> bool:
    return isinstance(feature, dict) or feature is True


def _member(value: Json, name: str) -> Json:
    return cast("dict[str, Any]", value).get(name) if isinstance(value, dict) else None
