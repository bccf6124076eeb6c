"""Our block inside LSP's `initialize`, and the plumbing notifications. Types only."""

from typing import Annotated, Any

from pydantic import Field, SecretStr, Strict

from .base import JsonObject, Params, Whole, WireModel


class SidecarOptions(WireModel):
    """`initializationOptions.sidecar`: what the host says of itself."""

    protocol_versions: tuple[Whole, ...] = (1,)
    client_id: str | None = None
    config: JsonObject | None = None
    """The same keys as `sidecar.toml`, limited as for an untrusted project."""
    secrets: dict[str, SecretStr] | None = None
    """Named secrets for `api_key_secret`. Kept in memory only."""
    features: JsonObject = Field(default_factory=dict)
    opt_out_events: tuple[str, ...] | None = None
    max_message_bytes: Whole | None = Field(default=None, ge=65_536)


class InitializationOptions(WireModel):
    """LSP's `initializationOptions`; other programs' keys are passed over."""

    sidecar: SidecarOptions = SidecarOptions()


class InitializeParams(Params):
    """LSP's `initialize`, as far as the sidecar itself reads it."""

    process_id: Whole | None = None
    root_uri: str | None = None
    workspace_folders: tuple[dict[str, Any], ...] | None = None
    capabilities: JsonObject = Field(default_factory=dict)
    initialization_options: InitializationOptions | None = None


class SidecarCapabilities(WireModel):
    """`capabilities.experimental.sidecar` of the answer."""

    protocol_version: int
    instance_id: str
    features: JsonObject
    limits: JsonObject
    schema_hash: str
    commands: tuple[str, ...]


class InitializeResult(WireModel):
    """LSP's answer; `capabilities.experimental.sidecar` is a `SidecarCapabilities`."""

    capabilities: JsonObject
    server_info: JsonObject


class CancelParams(Params):
    """`$/cancelRequest`: string and number ids differ."""

    id: Annotated[str, Strict()] | Annotated[int, Strict()]
