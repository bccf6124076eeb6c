"""What a `file_memory` entry may say: whose memory it is, where its files are, and how much it takes."""

import difflib
from typing import Annotated, Literal, Self, cast

from pydantic import Discriminator, Field, Tag, model_validator

from protocol.base import StrictModel, Whole
from providers.api.provider import ProviderConfig

from .file_memory_folder import MAX_FILES
from .file_stores import MAX_FILE_BYTES, MAX_FOLDER_BYTES, FilesystemPlace, StorePlace

Text = Annotated[str, Field(pattern=r"\S")]


class FromState(StrictModel):
    """A value of the session's state: a text that is not blank."""

    from_state: Text


class FromSession(StrictModel):
    """The session's id."""

    from_session: Literal["sessionId"]


ScopeValue = FromState | FromSession | Text


class ScopeConfig(StrictModel):
    """Whose memory, key by key. Whoever asks for it later gives the same keys with the same values."""

    application_id: ScopeValue | None = None
    agent_id: ScopeValue | None = None
    """`"agent"` is the name of the agent that runs."""
    session_id: ScopeValue | None = None
    user_id: ScopeValue | None = None

    @model_validator(mode="before")
    @classmethod
    def _knows_its_keys(cls, data: object) -> object:
        """A misspelt key would be somebody else's memory: it is refused, with the nearest one."""
        keys = [field.alias or name for name, field in cls.model_fields.items()]
        for key in cast("dict[str, object]", data) if isinstance(data, dict) else ():
            if key not in keys and key not in cls.model_fields:
                near = difflib.get_close_matches(key, keys, n=1)
                hint = f"did you mean {near[0]!r}?" if near else f"its keys are {', '.join(keys)}"
                raise ValueError(f"a scope has no key {key!r}; {hint}")
        return cast("object", data)

    @model_validator(mode="after")
    def _says_something(self) -> Self:
        if not self.model_dump(exclude_none=True):
            raise ValueError("a scope needs a key: everybody's memory is nobody's")
        return self


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
