"""What a provider may know of the editor that the sidecar is attached to. The port: it asks nothing itself."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class OpenDocument:
    """A document that an editor keeps open, unsaved changes included."""

    uri: str
    language_id: str
    version: int
    text: str


class Editor(Protocol):
    """The documents that an editor keeps open."""

    async def open_documents(self) -> Sequence[OpenDocument]:
        """All of them, the one that was opened or changed last first."""
        ...
