"""What a provider may know of the editor that the sidecar is attached to, and ask of it. The port: it asks nothing."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol


class EditFailed(Exception):
    """The editor has not made an edit, or nobody knows whether it has. The text is for models."""


@dataclass(frozen=True, slots=True)
class OpenDocument:
    """A document that an editor keeps open, unsaved changes included."""

    uri: str
    language_id: str
    version: int
    text: str


@dataclass(frozen=True, slots=True)
class TextChange:
    """A text to put in the place of another one."""

    start: int
    """Where that begins, in characters of the whole text."""
    end: int
    """Where it ends; what stands there stays."""
    text: str


def changed(text: str, changes: Sequence[TextChange]) -> str:
    """The text with changes made that are in order."""
    pieces: list[str] = []
    done = 0
    for change in changes:
        pieces += (text[done : change.start], change.text)
        done = change.end
    return "".join([*pieces, text[done:]])


class Editor(Protocol):
    """The documents that an editor keeps open."""

    @property
    def can_edit(self) -> bool:
        """Whether it makes edits that it is asked for."""
        ...

    async def open_documents(self) -> Sequence[OpenDocument]:
        """All of them, the one that was opened or changed last first."""
        ...

    async def edit(self, document: OpenDocument, changes: Sequence[TextChange]) -> OpenDocument:
        """Have changes made, all of them or none, and wait until the document is in step again.

        Args:
            document: As it was read: if the editor has another version of it by now, nothing is changed.
            changes: In the order of their places, which do not overlap.

        Returns:
            The document as it is afterwards: somebody else may have changed it as well.

        Raises:
            EditFailed: the editor refuses, has gone, or has not sent the changed document.
        """
        ...
