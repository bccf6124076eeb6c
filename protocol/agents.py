"""What an agent is made of: one shape in `sidecar.toml`, in `createSession` and in Python."""

from typing import Annotated, Literal

from pydantic import ConfigDict, Field, model_validator

from .base import MAX_ID_LENGTH, Flag, Json, JsonObject, Number, StrictModel, Whole, WireModel
from .tools import ToolEntry

SourceId = Annotated[str, Field(min_length=1, max_length=MAX_ID_LENGTH)]
ModelName = Annotated[str, Field(min_length=1, max_length=1024)]
"""`endpoint:model`, for example `openai:gpt-4.1-mini`."""


class NamedToolChoice(StrictModel):
    """Make the model call this tool."""

    name: str
    """The tool's name."""


class RunOptions(WireModel):
    """How a model call is made. A field that is absent is not sent."""

    temperature: Number | None = Field(default=None, ge=0)
    """How freely tokens are chosen; 0: the likeliest each time."""
    top_p: Number | None = Field(default=None, ge=0, le=1)
    """Choose among the likeliest tokens that together have this probability."""
    max_output_tokens: Whole | None = Field(default=None, gt=0)
    """Longest answer of one model call."""
    tool_choice: Literal["auto", "none", "required"] | NamedToolChoice | None = None
    """Whether the model may call tools, must, must not, or must call this one."""
    max_turns: Whole | None = Field(default=None, gt=0)
    """Model calls in one run."""
    reasoning_effort: str | None = None
    """How much a model reasons; the values are the endpoint's own."""
    seed: Whole | None = None
    """Asks the endpoint for the same choices again; few promise it."""
    stop: tuple[str, ...] | None = None
    """Texts at which the answer ends."""
    store: Flag | None = None
    """True leaves the conversation with the model service; false keeps it here."""
    parallel_tool_calls: Flag | None = None
    """Whether one answer may hold several tool calls."""
    instructions: str | None = None
    """Added after the agent's and the providers'."""
    model: ModelName | None = None
    """Instead of the agent's."""


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
    """The type's own configuration; `listProviders` has its schema."""
    on_error: Literal["fail", "warn"] | None = None
    """Whether a failure before the run fails the run; default: as the type has it."""
    timeout_ms: Whole | None = Field(default=None, gt=0)
    """Longest call of one of its hooks; default: a limit of the configuration."""
    independent: Flag | None = None
    """May run at the same time as its independent neighbours."""
    position: Literal["before_input", "after_input"] | None = None
    """Where its messages stand; default: as the type has it."""


class MiddlewareEntry(StrictModel):
    """A middleware: a registered one by its name; in configuration files also one by its import path."""

    name: str | None = None
    """A registered middleware."""
    import_: str | None = Field(default=None, alias="import")
    """`module:name`; configuration files only."""
    config: Json = None
    """Its own configuration."""

    @model_validator(mode="after")
    def _one_way(self) -> "MiddlewareEntry":
        if (self.name is None) == (self.import_ is None):
            raise ValueError("give either name or import")
        return self


class ApprovalRule(StrictModel):
    """What to do with calls that match."""

    decision: Literal["allow", "deny", "ask"]
    """Deny beats ask, and ask beats allow."""
    tool: str
    """The tool's name; `*` and `?` stand for any characters."""
    arguments: JsonObject | None = None
    """Argument → the value, or a pattern of it, that it must have."""


class ApprovalConfig(StrictModel):
    """How approvals are asked for."""

    mode: Literal["live", "inputRequired"] | None = None
    """`live` asks while the run waits; `inputRequired` ends the run with the question."""
    timeout_ms: Whole | None = Field(default=None, ge=0)
    """How long an answer is waited for, then the call is denied; 0: for ever."""
    rules: tuple[ApprovalRule, ...] | None = None
    """Decisions that need no question. Deny rules of an earlier file stay."""


class CompactionConfig(StrictModel):
    """How a history that grows too long is shortened."""

    strategy: str
    """The name of the way in which it is shortened."""
    context_window_tokens: Whole | None = Field(default=None, gt=0)
    """What the model can take in; default: what is known of the model."""
    max_output_tokens: Whole | None = Field(default=None, gt=0)
    """What is kept free for the answer."""


class AgentSpec(StrictModel):
    """An agent. Everything is optional: the empty spec is the default model with no instructions."""

    name: str | None = None
    """What it is called; in a configuration, the name of its table."""
    description: str | None = None
    """What it is for, in lists and for agents that call it."""
    instructions: str | None = None
    """What the model is told before everything else."""
    model: ModelName | None = None
    """`endpoint:model`; default: the configuration's `default_model`."""
    tools: tuple[ToolEntry, ...] | None = None
    """What it may call."""
    context_providers: tuple[ProviderEntry, ...] | None = None
    """What takes part in its runs, in this order."""
    middleware: tuple[MiddlewareEntry, ...] | None = None
    """What stands around its runs, model calls and tool calls, outermost first."""
    options: AgentOptions | None = None
    """How its model calls are made."""
    max_turns: Whole | None = Field(default=None, gt=0)
    """Model calls in one run; default: a limit of the configuration."""
    after_run_order: Literal["reverse", "forward"] | None = None
    """In which order providers learn from a run; default: reverse."""
    per_service_call_history: Flag | None = None
    """Whether the history is stored with each model call, instead of with the run."""
    approvals: ApprovalConfig | None = None
    """Which tool calls need a person's consent."""
    compaction: CompactionConfig | None = None
    """What happens to a history that grows too long."""
    implementation: str | None = None
    """A plug-in that answers in place of model and tools: an installed one by its name, or `module:Class`
    (configuration files only)."""
    implementation_config: JsonObject | None = None
    """The plug-in's own configuration."""
    harness: Flag | JsonObject | None = None
    """A ready-made set of providers and tools; false, true, or its parts."""


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
