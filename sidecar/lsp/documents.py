"""What is told of a document that the editor has open. Its text stays in the language-server half."""

from dataclasses import dataclass


@dataclass(frozen=True)
class DocumentInfo:
    """An open document."""

    uri: str
    """As the editor wrote it."""
    version: int
    """The editor's; it rises with each change."""
    language_id: str
    """The editor's name of the language, such as `python`."""
