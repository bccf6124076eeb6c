"""The whole of `sidecar.toml` as types: what each key means, its default and its bounds. Reads no files.

Keys are the field names; the limits have a file of their own (`limits.py`), so have the endpoints (`endpoints.py`).
"""

from typing import Annotated, Final, Literal

from pydantic import Field, SecretStr, model_validator

from protocol.agents import AgentSpec
from protocol.base import StrictModel

from .endpoints import PLUGIN_TYPE, EndpointConfig
from .limits import Limits

_ENDPOINT: Final = r"^[^:\s]+$"
_MODEL: Final = r"^[^:\s]+:.+$"
_STORE: Final = r"^(memory|sqlite:[^:].*)$"
_EMBEDDER: Final = r"^(auto|none|[^:\s]+:.+)$"

PATTERN_MEANINGS: Final = {
    _ENDPOINT: "a name without colons and blanks",
    _MODEL: "endpoint:model, for example openai:gpt-4.1-mini",
    _STORE: "memory, or sqlite: and the path of a file",
    _EMBEDDER: "auto, none, or endpoint:model",
    PLUGIN_TYPE: "module:Class, or the name of an installed plug-in",
}
"""What the patterns of this file ask for, in words."""

EndpointName = Annotated[str, Field(min_length=1, max_length=256, pattern=_ENDPOINT)]
AgentName = Annotated[str, Field(min_length=1, max_length=256)]
QualifiedModel = Annotated[str, Field(max_length=1024, pattern=_MODEL)]
StorePath = Annotated[str, Field(pattern=_STORE)]
LogLevel = Literal["debug", "info", "warning", "error"]


class StoreConfig(StrictModel):
    """Where sessions are kept."""

    path: StorePath | None = None
    """`sqlite:FILE` (relative to this file) or `memory`; default: a file in the platform's data folder."""
    durability: Literal["full", "normal"] = "full"
    """`full` survives a loss of power, `normal` the crash of any process."""
    keep_event_runs: int = Field(default=200, ge=1, le=1_000_000)
    """Runs of a session whose events are kept for replay."""


class EmbeddingsConfig(StrictModel):
    """What turns text into vectors, by which memory is found besides its words. Without: by its words alone."""

    embedder: Annotated[str, Field(pattern=_EMBEDDER)] = "auto"
    """`auto`: the embedded one if it is installed (`setup embeddings`), else none · `none` · `endpoint:model`, of an
    endpoint of type `openai`."""


class AgentConfig(AgentSpec):
    """An agent of the configuration; its name is its table's. Also the shape of an agent on the wire."""

    instructions_file: str | None = None
    """Read into `instructions`: a UTF-8 file of at most 64 KiB, inside the folder of this file."""


class McpServerConfig(StrictModel):
    """An MCP server: a command to start, or a URL."""

    command: str | None = None
    """What to start."""
    args: tuple[str, ...] = ()
    """The command's arguments."""
    env: dict[str, SecretStr] = Field(default_factory=dict)
    """Added to the command's environment."""
    url: str | None = None
    """Where the server is."""
    headers: dict[str, SecretStr] = Field(default_factory=dict)
    """Sent with each request to the URL."""

    @model_validator(mode="after")
    def _one_way(self) -> "McpServerConfig":
        if (self.command is None) == (self.url is None):
            raise ValueError("give either command or url")
        return self


class TelemetryConfig(StrictModel):
    """OpenTelemetry."""

    enabled: bool = False
    """Whether traces are made."""
    sensitive_data: bool = False
    """Whether prompts and arguments go into traces."""


class LoggingConfig(StrictModel):
    """The sidecar's own log. Never the protocol's stream."""

    level: LogLevel = "warning"
    """The least serious records that are written."""
    file: str = ""
    """Relative to this file; empty: stderr."""


class Config(StrictModel):
    """All of `sidecar.toml`."""

    default_agent: AgentName = "default"
    """The agent of sessions and runs that name none. The agent `default` always exists."""
    default_model: QualifiedModel | None = None
    """The model of agents that name none; there is no built-in default."""
    plugins: tuple[str, ...] = ()
    """Folders of plug-ins, relative to this file; they stand at the end of Python's search path."""
    tools: tuple[str, ...] = ()
    """Python tools as `module:function`, registered under their own names."""
    middleware: tuple[str, ...] = ()
    """Middleware as `module:name`, each registered under its own name."""
    detailed_tool_errors: bool = False
    """Whether a model is told what went wrong inside a tool. Off: only that it failed."""
    store: StoreConfig = Field(default_factory=StoreConfig)
    limits: Limits = Field(default_factory=Limits)
    endpoints: dict[EndpointName, EndpointConfig] = Field(default_factory=dict)
    """Places that serve models. The built-in ones are there too, with what a file changed of them."""
    embeddings: EmbeddingsConfig = Field(default_factory=EmbeddingsConfig)
    agents: dict[AgentName, AgentConfig] = Field(default_factory=dict)
    """The agents, by their names."""
    mcp_servers: dict[str, McpServerConfig] = Field(default_factory=dict)
    """The MCP servers, by their names."""
    telemetry: TelemetryConfig = Field(default_factory=TelemetryConfig)
    logging: LoggingConfig = Field(default_factory=LoggingConfig)
