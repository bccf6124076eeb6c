"""What a `mem0` entry may say. Each key is described where `listProviders` shows it. Keys of services stay outside."""

import os
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Final, Self
from urllib.parse import urlsplit

from pydantic import Field, field_validator, model_validator

from protocol.base import JsonObject, Number, StrictModel, Whole
from providers.api.errors import ProviderError
from providers.api.provider import ProviderConfig

from .scopes import ScopeConfig

NEEDS_EXTRA: Final = "mem0 needs the extra 'mem0' (pip install 'agent-sidecar[mem0]')"
CONTEXT_PROMPT: Final = "What is remembered of earlier conversations, and may matter for this one:"

_NO_KEY: Final = "none"
"""Sent to endpoints that ask for no key: servers of one's own."""


class Mem0Service(StrictModel):
    """A model behind an endpoint that speaks OpenAI's protocol."""

    model: Annotated[str, Field(pattern=r"\S")]
    """Its name at the endpoint."""
    base_url: str | None = None
    """Default: OpenAI's own."""
    api_key_env: Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")] | None = None
    """The environment variable that holds the key; default: the endpoint asks for none."""

    @field_validator("base_url")
    @classmethod
    def _names_an_endpoint(cls, url: str | None) -> str | None:
        if url is not None:
            parts = urlsplit(url)
            if parts.scheme not in ("http", "https") or not parts.hostname:
                raise ValueError("it must be http://… or https://…")
            if "@" in parts.netloc:
                raise ValueError("a password does not belong here: name the key's environment variable in api_key_env")
        return url

    def mem0(self) -> JsonObject:
        """The same in Mem0's own words. It holds the key.

        Raises:
            ProviderError: the variable is not set.
        """
        key = _NO_KEY
        if self.api_key_env is not None:
            key = os.environ.get(self.api_key_env, "").strip()
            if not key:
                raise ProviderError(f"the environment variable {self.api_key_env} is not set")
        base_url = self.base_url or "https://api.openai.com/v1"
        return {"provider": "openai", "config": {"model": self.model, "openai_base_url": base_url, "api_key": key}}


class Mem0Embedder(Mem0Service):
    """The same for the model that turns texts into vectors."""

    dimensions: Annotated[Whole, Field(ge=1, le=65_536)] = 1536
    """Numbers in a vector. Those of another length are refused by the folder that they are kept in."""


class Mem0Config(ProviderConfig):
    """Where Mem0 keeps its memories, which models it uses, whose memories they become, and whose are searched."""

    path: Annotated[str, Field(min_length=1)]
    """A folder; relative to the session's working directory, and then inside it. One process uses it at a time."""
    llm: Mem0Service
    """The model that makes memories of what was said."""
    embedder: Mem0Embedder
    """The model that makes vectors of memories and questions."""
    storage_scope: ScopeConfig
    """Whose memories they become: `userId`, `agentId`, `sessionId`, or several of them together."""
    search_scope: ScopeConfig | None = None
    """Whose are searched; default: none. It names some keys of the storage scope, from the same place."""
    context_prompt: str = CONTEXT_PROMPT
    """Stands above the memories; blank: nothing does."""
    max_results: Annotated[Whole, Field(ge=1, le=100)] = 10
    """Most memories that are shown."""
    min_score: Annotated[Number, Field(ge=0, le=1)] | None = None
    """Leave out what Mem0 ranks lower; default: as Mem0 has it."""

    @field_validator("path")
    @classmethod
    def _names_a_folder(cls, text: str) -> str:
        path = Path(text)
        if "\0" in text or not path.name or ".." in path.parts:
            raise ValueError("path must name a folder, and no step of it may be '..'")
        return text

    @model_validator(mode="after")
    def _can_be_kept_apart(self) -> Self:
        for scope in (self.storage_scope, self.search_scope):
            if scope is not None and scope.application_id is not None:
                raise ValueError("Mem0 does not keep applications apart: give each its own path, not an applicationId")
        if self.search_scope is not None:
            for key, source in self.search_scope.sources.items():
                if self.storage_scope.sources.get(key) != source:
                    raise ValueError(f"searchScope.{key} must be a key of storageScope, from the same place")
        if find_spec("mem0") is None:
            raise ValueError(NEEDS_EXTRA)
        return self
