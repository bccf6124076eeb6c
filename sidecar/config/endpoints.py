"""What `[endpoints.NAME]` of `sidecar.toml` may say, and the endpoints that are always there. Data only."""

from typing import Final, Literal

from pydantic import Field, SecretStr, model_validator

from protocol.base import StrictModel

EndpointType = Literal["openai", "openai_responses", "embedded", "scripted"]


class EndpointConfig(StrictModel):
    """One place that serves models."""

    type: EndpointType = "openai"
    """Which protocol it speaks."""
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
