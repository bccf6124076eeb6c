"""What `[endpoints.NAME]` of `sidecar.toml` may say, and the endpoints that are always there. Data only."""

import difflib
from typing import Annotated, Final, Literal, get_args

from pydantic import Field, SecretStr, WithJsonSchema, field_validator, model_validator

from protocol.base import JsonObject, StrictModel

EndpointType = Literal["openai", "openai_responses", "embedded", "scripted"]
"""The protocols that are known here; any other type is a plug-in's."""

TYPES: Final[tuple[str, ...]] = get_args(EndpointType)
PLUGIN_TYPE: Final = r"^[^:\s]+(:[^:\s]+)?$"

_NO_PLUGINS: Final = (
    "base_url",
    "api_key_env",
    "api_key_command",
    "api_key_secret",
    "organization",
    "headers",
    "connect_timeout_ms",
    "max_retries",
)
"""Keys that mean something to our own clients only."""


class EndpointConfig(StrictModel):
    """One place that serves models."""

    type: Annotated[
        str, WithJsonSchema({"anyOf": [{"enum": list(TYPES)}, {"type": "string", "pattern": PLUGIN_TYPE}]})
    ] = "openai"
    """Which protocol it speaks, or the chat client of a plug-in."""
    config: JsonObject | None = None
    """A plug-in's own configuration."""
    base_url: str | None = None
    """Default: `OPENAI_BASE_URL`, else OpenAI's own."""
    api_key_env: str | None = None
    """Environment variable that holds the key."""
    api_key_command: tuple[str, ...] | None = None
    """A command that prints the key."""
    api_key_secret: str | None = None
    """A secret that the host gives at `initialize`."""
    organization: str | None = None
    """Sent as OpenAI's organization."""
    headers: dict[str, SecretStr] = Field(default_factory=dict)
    """Sent with each request."""
    connect_timeout_ms: int = Field(default=5_000, gt=0)
    """Longest wait for a connection."""
    idle_timeout_ms: int = Field(default=120_000, gt=0)
    """Longest silence inside one call; comments of the stream do not count as life."""
    total_timeout_ms: int = Field(default=1_800_000, gt=0)
    """Longest duration of one call."""
    max_retries: int = Field(default=2, ge=0, le=10)
    """Retries of one call; never after a delta was handed on."""
    context_size: int | None = Field(default=None, gt=0)
    """Tokens, where the endpoint does not tell."""

    @property
    def is_plugin(self) -> bool:
        """Whether its chat client is a plug-in's."""
        return self.type not in TYPES

    @field_validator("type")
    @classmethod
    def _known_type(cls, name: str) -> str:
        if name in TYPES or ":" in name:
            return name
        from providers.plugins import installed  # costs more than a configuration without it may cost

        known = [*TYPES, *installed("chat_clients")]
        if name in known:
            return name
        near = difflib.get_close_matches(name, known, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise ValueError(f"must be {', '.join(map(repr, known))} or module:Class{hint}")

    @model_validator(mode="after")
    def _of_its_type(self) -> "EndpointConfig":
        if not self.is_plugin and self.config is not None:
            raise ValueError(f"config is for plug-ins, not for the type {self.type!r}")
        if self.is_plugin and (idle := sorted(self.model_fields_set.intersection(_NO_PLUGINS))):
            raise ValueError(f"{', '.join(idle)}: not for a plug-in; what it needs stands in its config")
        return self

    @model_validator(mode="after")
    def _one_key_source(self) -> "EndpointConfig":
        if sum(value is not None for value in (self.api_key_env, self.api_key_command, self.api_key_secret)) > 1:
            raise ValueError("give one of api_key_env, api_key_command and api_key_secret")
        return self


BUILT_IN: Final = {
    "openai": EndpointConfig(type="openai", api_key_env="OPENAI_API_KEY"),
    "openai-responses": EndpointConfig(type="openai_responses", api_key_env="OPENAI_API_KEY"),
    "embedded": EndpointConfig(type="embedded"),
    "scripted": EndpointConfig(type="scripted"),
}
"""Endpoints that need no configuration; what a file says under the same name is merged over them, key by key."""
