"""`textDocument/codeAction`: what an agent can be asked at a place in a document. It runs nothing.

Each action is a command of the server's own, so that an editor can also bind it to a key: what the agent is told is
written when the command runs, from the document as it is then.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pydantic import ValidationError

from .places import CodeActionParams, Diagnostic, read

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from protocol.base import Json, JsonObject

    from .client_capabilities import ClientCapabilities
    from .places import CodeActionContext

CODE_ACTION: Final = "textDocument/codeAction"

QUICK_FIX: Final = "quickfix"
EXPLAIN_KIND: Final = "explain"
"""A kind of our own: LSP's are all about changes, and editors hide `source` where one looks for what to do here."""
KINDS: Final = (QUICK_FIX, EXPLAIN_KIND)
"""As `capabilities.json` advertises them."""

MAX_DIAGNOSTICS: Final = 20
"""Diagnostics that an agent is told of."""
_AUTOMATIC: Final = 2
"""`CodeActionTriggerKind` of LSP: the editor asks by itself, at each move of the cursor perhaps."""


class CodeActions:
    """What is offered to one client."""

    def __init__(self, text: Callable[[str], tuple[str, int] | None], can: ClientCapabilities) -> None:
        """Offer nothing yet.

        Args:
            text: Text and version of an open document.
            can: What the client has declared.
        """
        self._text = text
        self._can = can

    def offered(self, params: Json) -> list[JsonObject]:
        """The actions at a place, or commands for a client that knows no actions.

        Raises:
            InvalidParams: the params have the wrong shape.
        """
        request = read(CodeActionParams, params, CODE_ACTION)
        document = self._text(request.text_document.uri)
        if document is None:
            return []
        context = request.context
        by_user = context.trigger_kind != _AUTOMATIC  # Neovim tells no server of another one's diagnostics
        argument: JsonObject = {
            "uri": request.text_document.uri,
            "range": request.range.wire(),
            "version": document[1],
            "diagnostics": _told(context.diagnostics),
        }
        actions: list[JsonObject] = []
        if self._can.apply_edit and (context.diagnostics or by_user) and _wanted(QUICK_FIX, context):
            fix = self._action("Fix with agent", QUICK_FIX, "sidecar.fix", argument)
            if context.diagnostics and self._can.code_action_literals:
                fix["diagnostics"] = list(context.diagnostics)
            actions.append(fix)
        if by_user and _wanted(EXPLAIN_KIND, context):
            actions.append(self._action("Explain with agent", EXPLAIN_KIND, "sidecar.explain", argument))
        return actions

    def _action(self, title: str, kind: str, command: str, argument: JsonObject) -> JsonObject:
        run: JsonObject = {"title": title, "command": command, "arguments": [argument]}
        return {"title": title, "kind": kind, "command": run} if self._can.code_action_literals else run


def _wanted(kind: str, context: CodeActionContext) -> bool:
    """Whether a kind, or one that it is a part of, is among those that the client wants."""
    return context.only is None or any(not only or f"{kind}.".startswith(f"{only}.") for only in context.only)


def _told(diagnostics: Sequence[JsonObject]) -> list[JsonObject]:
    """What an agent is to know of diagnostics; others' `data` stays with the client."""
    found: list[JsonObject] = []
    for given in diagnostics[:MAX_DIAGNOSTICS]:
        try:
            found.append(Diagnostic.model_validate(given).wire())
        except ValidationError:  # one tool's odd diagnostic is no reason to offer nothing
            continue
    return found
