"""What a `file_memory` entry may say: whose memory it is, where its files are, and how much it takes."""

from typing import Annotated

from pydantic import Discriminator, Field, Tag

from protocol.base import Whole
from providers.api.provider import ProviderConfig

from .file_memory_folder import MAX_FILES
from .file_stores import MAX_FILE_BYTES, MAX_FOLDER_BYTES, FilesystemPlace, StorePlace
from .scopes import FromState, ScopeConfig, Text


def _form_of(scope: object) -> str:
    if isinstance(scope, FromState):
        return "fromState"
    if isinstance(scope, dict):
        return "fromState" if {"fromState", "from_state"} & scope.keys() else "keys"
    return "keys" if isinstance(scope, ScopeConfig) else "text"


ScopeSetting = Annotated[
    Annotated[FromState, Tag("fromState")] | Annotated[ScopeConfig, Tag("keys")] | Annotated[Text, Tag("text")],
    Discriminator(_form_of),
]


class FileMemoryConfig(ProviderConfig):
    """Whose memory, where it is, and how much it takes."""

    scope: ScopeSetting | None = None
    """Sessions of one scope share its files; default: each session has its own. A text is a name, not a path."""
    store: StorePlace = FilesystemPlace(type="filesystem")
    instructions: str | None = None
    """Instead of our own words; blank: none."""
    max_file_bytes: Annotated[Whole, Field(ge=1, le=16 << 20)] = MAX_FILE_BYTES
    """Of one file."""
    max_files: Annotated[Whole, Field(ge=1, le=4_000)] = MAX_FILES
    """In one folder; descriptions and the index do not count."""
    max_total_bytes: Annotated[Whole, Field(ge=1, le=64 << 20)] = MAX_FOLDER_BYTES
    """Of one folder, with descriptions and the index."""
