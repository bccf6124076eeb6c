"""The tool by which a model edits documents that are open in the editor, each time with a person's consent.

What a person is shown, and so consents to, is the change of one text of one document: a seal of both goes with the
question, and if the document holds another text when the call runs, or the change would look otherwise, nothing is
changed. What has changed by edits made here alone counts as the same text.
"""

import asyncio
import hashlib
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Final
from urllib.parse import unquote

from pydantic import Field

from protocol.base import JsonObject

from .api.editor import EditFailed, Editor, OpenDocument, TextChange, changed
from .api.invocation import FunctionInvocationContext
from .api.tool import FunctionTool, Preview, ToolError, tool
from .editor_edit_text import Replacement, changes_of, shown
from .text_edits import EditError

EDIT_DOCUMENT: Final = "edit_document"
MAX_EDITS: Final = 100
MAX_NEW: Final = 1_000_000
"""Characters that one call may put into a document."""
MAX_REMEMBERED: Final = 100
"""Documents whose own edits are remembered."""
MAX_CHAIN: Final = 1_000
"""Edits of one of them."""
MAX_NAMED: Final = 10
"""Open documents that a model is told of when it names another one."""


@dataclass(frozen=True, slots=True)
class _Planned:
    document: OpenDocument
    changes: Sequence[TextChange]


@dataclass(frozen=True, slots=True)
class _Ours:
    """A document as our own edits alone have led to it."""

    now: str
    """Fingerprint of what the last one led to."""
    texts: frozenset[str]
    """Fingerprints of what it was before each of them, and now."""
    versions: frozenset[int]


class DocumentEdits:
    """The tool `edit_document` of one session."""

    def __init__(self, editor: Editor) -> None:
        self._editor = editor
        self._one_at_a_time = asyncio.Lock()
        self._ours: OrderedDict[str, _Ours] = OrderedDict()
        """By URI."""
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
        async with self._one_at_a_time:
            planned = await self._plan(uri, edits, version)
            if context.approved:
                await self._check_seal(planned, context.seal)
            try:
                now = await self._editor.edit(planned.document, planned.changes)
            except EditFailed as error:
                raise ToolError(f"The edit has failed: {error}.") from None
            as_expected = now.text == changed(planned.document.text, planned.changes)
            if as_expected:
                self._remember(planned.document, now)
        said = f"Edited {planned.document.uri}: {len(planned.changes)} place(s). It has version {now.version} now."
        return said if as_expected else f"{said} More of it has changed than was edited here."

    async def _preview(self, arguments: JsonObject) -> Preview:
        """What a person is shown of a call."""
        planned = await self._plan(**self.tool.bind(arguments))
        text = await self._shown(planned)
        return Preview(text, f"{_fingerprint(planned.document)} {_change(text)}")

    async def _shown(self, planned: _Planned) -> str:
        document = planned.document
        try:
            return await asyncio.to_thread(shown, document.uri, document.text, planned.changes)
        except EditError as error:
            raise ToolError(f"Nothing was changed: {error}.") from None

    async def _check_seal(self, planned: _Planned, seal: str | None) -> None:
        """Hold what a call would do now against what a person has seen of it.

        Raises:
            ToolError: it is something else, or nobody knows what they have seen.
        """
        seen_document, _, seen_change = (seal or "").partition(" ")
        now = _fingerprint(planned.document)
        ours = self._ours.get(planned.document.uri)
        is_same = now == seen_document or (ours is not None and now == ours.now and seen_document in ours.texts)
        if not is_same or _change(await self._shown(planned)) != seen_change:
            raise ToolError(
                "Nothing was changed: the document is not what it was when the user was asked. Send the edit again."
            )

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
        if version == document.version:
            return True
        ours = self._ours.get(document.uri)
        return ours is not None and version in ours.versions and ours.now == _fingerprint(document)

    def _remember(self, before: OpenDocument, after: OpenDocument) -> None:
        was, now = _fingerprint(before), _fingerprint(after)
        ours = self._ours.pop(before.uri, None)
        if ours is None or ours.now != was or len(ours.texts) > MAX_CHAIN:
            ours = _Ours(was, frozenset({was}), frozenset({before.version}))
        self._ours[before.uri] = _Ours(now, ours.texts | {now}, ours.versions | {after.version})
        if len(self._ours) > MAX_REMEMBERED:
            self._ours.popitem(last=False)


def _fingerprint(document: OpenDocument) -> str:
    """Of which document it is, and of its text: versions begin anew when an editor opens it again."""
    return _hash(f"{document.uri}\0{document.text}")


def _change(shown_text: str) -> str:
    """Of what goes, what comes, and where; what stands around may have been edited here meanwhile."""
    return _hash("\n".join(line for line in shown_text.split("\n") if not line.startswith("  ")))


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _stale(document: OpenDocument, version: int) -> str:
    return (
        f"the document has version {document.version} by now, not {version}. "
        "If the text to replace is still there, send the edit again with that version."
    )
