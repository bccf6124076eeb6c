"""The editor that the sidecar is attached to, as providers, tools and `getState` know it: its documents, and edits."""

import asyncio
from collections.abc import Sequence
from typing import Final, cast

from protocol.base import Json, JsonObject
from protocol.state import DocumentState
from providers.api.clean_text import clean_text
from providers.api.editor import EditFailed, OpenDocument, TextChange, changed
from sidecar.lsp.client_capabilities import ClientCapabilities
from sidecar.lsp.half import LspHalf
from sidecar.lsp.position import negotiate_position_encoding, position_at
from sidecar.sessions.outlet import Ask, AskFailed

APPLY_EDIT: Final = "workspace/applyEdit"
SHOW_DOCUMENT: Final = "window/showDocument"
LABEL: Final = "agent-sidecar: edit document"
"""What an editor calls the edit in its undo history."""
IN_STEP_S: Final = 3.0
"""So long an editor has to send the document that it says it has changed."""
SHOW_S: Final = 5.0
"""So long an editor has to show what was changed; nobody waits for that."""
MAX_REASON: Final = 500
"""Characters of why an editor refuses."""


class AttachedEditor:
    """One client, which may be no editor: it has no documents then. It is `providers.api.editor.Editor`."""

    def __init__(self, half: LspHalf, ask: Ask, initialize_params: JsonObject) -> None:
        """Ask nothing yet.

        Args:
            half: Keeps the documents.
            ask: Sends a request to the client.
            initialize_params: What the client says it can.
        """
        self._half = half
        self._ask = ask
        self._can = ClientCapabilities.of(initialize_params)
        self._encoding = negotiate_position_encoding(initialize_params)
        self._showing: set[asyncio.Task[None]] = set()

    @property
    def can_edit(self) -> bool:
        """Whether the client takes `workspace/applyEdit`."""
        return self._can.apply_edit

    async def settled(self) -> None:
        """Wait until everything that the editor has sent so far is taken in."""
        await self._half.loaded()

    def list(self) -> tuple[DocumentState, ...]:
        """All open documents."""
        return tuple(
            DocumentState(uri=document.uri, version=document.version, language_id=document.language_id)
            for document in self._half.documents()
        )

    def text(self, uri: str) -> tuple[str, int] | None:
        """Text and version of one, unsaved changes included; `None` if it is not open."""
        return self._half.text(uri)

    async def open_documents(self) -> Sequence[OpenDocument]:
        """All of them with their texts, the one that was touched last first."""
        await self._half.loaded()
        known = sorted(self._half.documents(), key=lambda one: -self._half.last_touched(one.uri))
        found = ((one, self._half.text(one.uri)) for one in known)
        return [OpenDocument(one.uri, one.language_id, text[1], text[0]) for one, text in found if text is not None]

    async def edit(self, document: OpenDocument, changes: Sequence[TextChange]) -> OpenDocument:
        """Have changes made, and wait for the document. See `providers.api.editor.Editor`."""
        if self._half.text(document.uri) != (document.text, document.version):
            raise EditFailed("nothing was changed, because the document has another version by now, or was closed")
        params: JsonObject = {"label": LABEL, "edit": self._workspace_edit(document, changes)}
        try:
            answer = await self._ask(APPLY_EDIT, params)
        except AskFailed as error:
            raise EditFailed("the editor has gone" if error.has_gone else _reason(str(error))) from None
        fields = cast("JsonObject", answer) if isinstance(answer, dict) else {}
        if fields.get("applied") is not True:
            raise EditFailed(_reason(fields.get("failureReason")))
        expected = changed(document.text, changes)
        text, version = await self._in_step(document, expected)
        if text == expected and self._can.show_document:
            self._show(document.uri, text, changes)
        return OpenDocument(document.uri, document.language_id, version, text)

    def _workspace_edit(self, document: OpenDocument, changes: Sequence[TextChange]) -> JsonObject:
        """The edit in the form that the client takes: with the version, where it can hold the edit against that."""
        edits = [{"range": self._range(document.text, one.start, one.end), "newText": one.text} for one in changes]
        if not self._can.document_changes:
            return {"changes": {document.uri: edits}}
        identifier = {"uri": document.uri, "version": document.version}
        return {"documentChanges": [{"textDocument": identifier, "edits": edits}]}

    def _range(self, text: str, start: int, end: int) -> JsonObject:
        first, last = (position_at(text, offset, self._encoding) for offset in (start, end))
        return {"start": first._asdict(), "end": last._asdict()}

    async def _in_step(self, document: OpenDocument, expected: str) -> tuple[str, int]:
        """The document once it is as expected, or as it is when the time for that is over.

        Raises:
            EditFailed: it is what it was.
        """
        now = self._half.text(document.uri)
        try:
            async with asyncio.timeout(IN_STEP_S):
                while now is not None and now[0] != expected:
                    await self._half.next_change()
                    now = self._half.text(document.uri)
        except TimeoutError:
            pass
        if now is None:
            raise EditFailed("the editor has closed the document, so it is not known what it holds now")
        if now[1] == document.version:
            raise EditFailed("the editor says that it made the edit, but its document is what it was")
        return now

    def _show(self, uri: str, text: str, changes: Sequence[TextChange]) -> None:
        """Have the first change selected before the user, without taking them away from where they type."""
        first = changes[0]
        selection = self._range(text, first.start, first.start + len(first.text))
        params: JsonObject = {"uri": uri, "takeFocus": False, "selection": selection}
        task = asyncio.create_task(self._shown(params))
        self._showing.add(task)
        task.add_done_callback(self._showing.discard)

    async def _shown(self, params: JsonObject) -> None:
        try:
            await self._ask(SHOW_DOCUMENT, params, timeout=SHOW_S)
        except (AskFailed, TimeoutError):
            return


def _reason(given: Json) -> str:
    """Why the editor refuses, in its own words, as far as they are fit to be passed on."""
    words = clean_text(given).strip()[:MAX_REASON] if isinstance(given, str) else ""
    return f"the editor refuses: {words}" if words else "the editor refuses"
