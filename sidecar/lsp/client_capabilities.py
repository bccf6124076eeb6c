"""What a client says it can, as far as anything here depends on that. Read once, from params of any quality."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self, cast

if TYPE_CHECKING:
    from protocol.base import Json, JsonObject


@dataclass(frozen=True, slots=True)
class ClientCapabilities:
    """LSP's, by what they allow us."""

    progress: bool = False
    """It takes `window/workDoneProgress/create`."""
    apply_edit: bool = False
    """It takes `workspace/applyEdit`."""
    document_changes: bool = False
    """It takes edits with the version that they are for."""
    show_document: bool = False
    """It takes `window/showDocument`."""
    code_action_literals: bool = False
    """It takes code actions; one that does not takes commands in their place."""

    @classmethod
    def of(cls, initialize_params: JsonObject) -> Self:
        """What the params of `initialize` declare."""

        def declared(*path: str) -> Json:
            value: Json = initialize_params.get("capabilities")
            for name in path:
                value = cast("JsonObject", value).get(name) if isinstance(value, dict) else None
            return value

        return cls(
            progress=declared("window", "workDoneProgress") is True,
            apply_edit=declared("workspace", "applyEdit") is True,
            document_changes=declared("workspace", "workspaceEdit", "documentChanges") is True,
            show_document=declared("window", "showDocument", "support") is True,
            code_action_literals=isinstance(declared("textDocument", "codeAction", "codeActionLiteralSupport"), dict),
        )
