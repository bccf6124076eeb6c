"""The tool by which a model edits documents that are open in the editor, each time with a person's consent.

What a person is shown, and so consents to, is the change of one version of a document: if the document has another
version when the call runs, nothing is changed. Edits made here do not count as other versions.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Final
from urllib.parse import unquote

from pydantic import Field

from protocol.base import JsonObject

from .api.editor import EditFailed, Editor, OpenDocument, TextChange, changed
from .api.invocation import FunctionInvocationContext
from .api.tool import FunctionTool, ToolError, tool
from .editor_edit_text import Replacement, changes_of, shown
from .text_edits import EditError

EDIT_DOCUMENT: Final = "edit_document"
MAX_EDITS: Final = 100
MAX_NEW: Final = 1_000_000
"""Characters that one call may put into a document."""
MAX_REMEMBERED: Final = 100
"""Calls that people were asked about; and documents."""
MAX_NAMED: Final = 10
"""Open documents that a model is told of when it names another one."""


@dataclass(frozen=True, slots=True)
class _Planned:
    document: OpenDocument
    changes: Sequence[TextChange]


class DocumentEdits:
    """The tool `edit_document` of one session."""

    def __init__(self, editor: Editor) -> None:
        self._editor = editor
        self._one_at_a_time = asyncio.Lock()
        self._asked_of: OrderedDict[str, int] = OrderedDict()
        """Call id → the version that a person was shown."""
        self._ours: OrderedDict[str, frozenset[int]] = OrderedDict()
        """URI → versions that differ by our own edits only; the newest is the one that the last edit led to."""
        self.tool: Final[FunctionTool] = replace(self.edit_document, preview=self._preview)

    @tool(name=EDIT_DOCUMENT, title="Edit document", kind="edit", approval_mode="always_require")
    async def edit_document(
        self,
        context: FunctionInvocationContext,
        uri: Annotated[str, "URI of a document that is open in the user's editor."],
        edits: Annotated[
            list[Replacement],
            Field(min_length=1, max_length=MAX_EDITS, description="All are made, or none; each in the text as it is."),
        ],
        version: Annotated[
            int | None, Field(description="The version you have read; if it is another one by now, nothing is changed.")
        ] = None,
    ) -> str:
        """Edit a document that is open in the user's editor, by replacing text. The user is asked first."""
        consented = self._asked_of.pop(context.call_id, None)
        async with self._one_at_a_time:
            planned = await self._plan(uri, edits, version)
            if consented is not None and not self._is_as_at(planned.document, consented):
                raise ToolError(f"Nothing was changed: {_stale(planned.document, consented)}")
            try:
                now = await self._editor.edit(planned.document, planned.changes)
            except EditFailed as error:
                raise ToolError(f"The edit has failed: {error}.") from None
            as_expected = now.text == changed(planned.document.text, planned.changes)
            if as_expected:
                self._remember(planned.document, now.version)
        said = f"Edited {planned.document.uri}: {len(planned.changes)} place(s). It has version {now.version} now."
        return said if as_expected else f"{said} More of it has changed than was edited here."

    async def _preview(self, arguments: JsonObject, call_id: str) -> str:
        """What a person is shown of a call."""
        planned = await self._plan(**self.tool.bind(arguments))
        document = planned.document
        try:
            text = await asyncio.to_thread(shown, document.uri, document.text, planned.changes)
        except EditError as error:
            raise ToolError(f"Nothing was changed: {error}.") from None
        self._asked_of[call_id] = document.version
        if len(self._asked_of) > MAX_REMEMBERED:
            self._asked_of.popitem(last=False)
        return text

    async def _plan(self, uri: str, edits: Sequence[Replacement], version: int | None = None) -> _Planned:
        """What a call would change now.

        Raises:
            ToolError: it cannot be made.
        """
        if sum(len(edit.new_string) for edit in edits) > MAX_NEW:
            raise ToolError(f"The edits put in more than {MAX_NEW} characters; make them smaller.")
        document = await self._document(uri)
        if version is not None and not self._is_as_at(document, version):
            raise ToolError(f"Nothing was changed: {_stale(document, version)}")
        try:
            changes = await asyncio.to_thread(changes_of, document.text, edits)
        except EditError as error:
            raise ToolError(f"Could not edit {document.uri}: {error}.") from None
        if sum(len(change.text) for change in changes) > MAX_NEW:
            raise ToolError(f"The edits put in more than {MAX_NEW} characters; make them smaller.")
        return _Planned(document, changes)

    async def _document(self, uri: str) -> OpenDocument:
        documents = await self._editor.open_documents()
        same = [one for one in documents if one.uri == uri] or [one for one in documents if unquote(one.uri) == uri]
        if same:
            return same[0]
        names = "".join(f"\n{one.uri[:500]}" for one in documents[:MAX_NAMED])
        raise ToolError(f"That document is not open in the editor. Open are:{names or ' none'}")

    def _is_as_at(self, document: OpenDocument, version: int) -> bool:
        """Whether nobody but us has changed a document since it had a version."""
        ours = self._ours.get(document.uri, frozenset())
        return version == document.version or (version in ours and document.version == max(ours))

    def _remember(self, before: OpenDocument, version: int) -> None:
        ours = self._ours.pop(before.uri, frozenset())
        reached = ours if ours and max(ours) == before.version else frozenset({before.version})
        self._ours[before.uri] = reached | {version}
        if len(self._ours) > MAX_REMEMBERED:
            self._ours.popitem(last=False)


def _stale(document: OpenDocument, version: int) -> str:
    return (
        f"the document has version {document.version} by now, not {version}. "
        "If the text to replace is still there, send the edit again with that version."
    )
