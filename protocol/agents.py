"""What an agent is made of: one shape in `sidecar.toml`, in `createSession` and in Python."""

from typing import Annotated, Literal

from pydantic import ConfigDict, Field

from protocol.base import MAX_ID_LENGTH, Json, JsonObject, StrictModel, WireModel
from protocol.tools import ToolEntry

SourceId = Annotated[str, Field(min_length=1, max_length=MAX_ID_LENGTH)]
ModelName = Annotated[str, Field(min_length=1, max_length=1024)]
"""`endpoint:model`, for example `openai:gpt-4.1-mini`."""


class NamedToolChoice(StrictModel):
    """Make the model call this tool."""

    name: str


class RunOptions(WireModel):
    """How a model call is made. A field that is absent is not sent."""

    temperature: float | None = Field(default=None, ge=0)
    top_p: float | None = Field(default=None, ge=0, le=1)
    max_output_tokens: int | None = Field(default=None, gt=0)
    tool_choice: Literal["auto", "none", "required"] | NamedToolChoice | None = None
    max_turns: int | None = Field(default=None, gt=0)
    """Model calls in one run."""
    reasoning_effort: str | None = None
    seed: int | None = None
    stop: tuple[str, ...] | None = None
    store: bool | None = None
    """True leaves the conversation with the model service; false keeps it here."""
    parallel_tool_calls: bool | None = None
    instructions: str | None = None
    """Added after the agent's and the providers'."""
    model: ModelName | None = None


class AgentOptions(RunOptions):
    """The same in an agent, where an unknown key is refused."""

    model_config = ConfigDict(extra="forbid")


class ProviderEntry(StrictModel):
    """One context provider of an agent or a session."""

    type: str
    """A registered provider type; `listProviders` names them."""
    source_id: SourceId | None = None
    """What its contributions are attributed to; default: the type (`in_memory` for `history`)."""
    state_key: SourceId | None = None
    """Its key in the session's state; default: the source id."""
    config: JsonObject | None = None
    on_error: Literal["fail", "warn"] | None = None
    timeout_ms: int | None = Field(default=None, gt=0)
    independent: bool | None = None
    """May run at the same time as its independent neighbours."""
    position: Literal["before_input", "after_input"] | None = None


class MiddlewareEntry(StrictModel):
    """A registered middleware by name."""

    name: str
    config: Json = None


class ApprovalRule(StrictModel):
    """What to do with calls that match."""

    decision: Literal["allow", "deny", "ask"]
    tool: str
    arguments: JsonObject | None = None


class ApprovalConfig(StrictModel):
    """How approvals are asked for."""

    mode: Literal["live", "inputRequired"] | None = None
    timeout_ms: int | None = Field(default=None, ge=0)
    rules: tuple[ApprovalRule, ...] | None = None


class CompactionConfig(StrictModel):
    """How a history that grows too long is shortened."""

    strategy: str
    context_window_tokens: int | None = Field(default=None, gt=0)
    max_output_tokens: int | None = Field(default=None, gt=0)


class AgentSpec(StrictModel):
    """An agent. Everything is optional: the empty spec is the default model with no instructions."""

    name: str | None = None
    description: str | None = None
    instructions: str | None = None
    model: ModelName | None = None
    tools: tuple[ToolEntry, ...] | None = None
    context_providers: tuple[ProviderEntry, ...] | None = None
    middleware: tuple[MiddlewareEntry, ...] | None = None
    options: AgentOptions | None = None
    max_turns: int | None = Field(default=None, gt=0)
    after_run_order: Literal["reverse", "forward"] | None = None
    per_service_call_history: bool | None = None
    approvals: ApprovalConfig | None = None
    compaction: CompactionConfig | None = None
    harness: bool | JsonObject | None = None


class AgentInfo(WireModel):
    """A row of `listAgents`."""

    name: str
    description: str | None = None
    model: str | None = None


class ModelInfo(WireModel):
    """A row of `listModels`."""

    model: str
    endpoint: str
    context_size: int | None = None
    tools: bool | None = None
    images: bool | None = None
    default: bool | None = None


class ProviderTypeInfo(WireModel):
    """A row of `listProviders`."""

    type: str
    description: str
    config_schema: JsonObject
