"""Looking in: state and history of sessions, and the lists of what the sidecar offers. Types only."""

from typing import Annotated, Literal

from pydantic import Field

from .agents import AgentInfo, ModelInfo, ProviderTypeInfo
from .base import Flag, Json, JsonObject, Params, Whole, WireModel
from .errors import WireError
from .messages import Message, Usage
from .sessions import ActiveRun, PageLimit, PendingRequest, RunId, SessionId, SessionInfo, WireWarning

StatePart = Literal["session", "run", "queue", "providers", "state", "usage", "pending", "documents", "tools"]


class GetStateParams(Params):
    """Look at the sidecar, a session or a run. Small and quick; works during a run. No message bodies."""

    session_id: SessionId | None = None
    run_id: RunId | None = None
    include: tuple[StatePart, ...] | None = None
    """Default: everything except `documents` and `tools`."""
    if_revision: Whole | None = None
    """Answer `unchanged` if the session still has this revision and no run is active."""


class ServerState(WireModel):
    """The process."""

    instance_id: str
    version: str
    protocol_version: int
    uptime_ms: int
    open_sessions: int
    active_runs: int
    rss_bytes: int | None = None


class RunState(WireModel):
    """One run, as far as it has come."""

    run_id: str
    status: Literal["queued", "running", "completed", "failed", "cancelled", "interrupted"]
    stop_reason: str | None = None
    started_at: str | None = None
    ended_at: str | None = None
    error: WireError | None = None


class QueuedRun(WireModel):
    """A run that waits for its turn."""

    run_id: str
    position: int


class ProviderState(WireModel):
    """One provider of a session."""

    source_id: str
    type: str
    status: Literal["ready", "loading", "unavailable"]
    state: Json = None
    last_before_ms: float | None = None
    last_after_ms: float | None = None
    last_error: str | None = None


class DocumentState(WireModel):
    """A document that an editor keeps open."""

    uri: str
    version: int | None = None
    language_id: str | None = None


class ToolState(WireModel):
    """A tool of the session's agent."""

    name: str
    source: str


class GetStateResult(WireModel):
    """What was asked for, or `unchanged`."""

    unchanged: Literal[True] | None = None
    server: ServerState | None = None
    session: SessionInfo | None = None
    revision: int | None = None
    epoch: str | None = None
    last_seq: int | None = None
    active_run: ActiveRun | None = None
    run: RunState | None = None
    queue: tuple[QueuedRun, ...] | None = None
    pending_requests: tuple[PendingRequest, ...] | None = None
    providers: tuple[ProviderState, ...] | None = None
    state: JsonObject | None = None
    usage: Usage | None = None
    documents: tuple[DocumentState, ...] | None = None
    tools: tuple[ToolState, ...] | None = None


class GetHistoryParams(Params):
    """A page of a session's transcript, oldest first unless asked otherwise."""

    session_id: SessionId
    cursor: str | None = None
    limit: PageLimit = 100
    order: Literal["asc", "desc"] = "asc"
    sources: tuple[Annotated[str, Field(max_length=256)], ...] | None = None
    """Only messages whose source has one of these types or ids."""


class GetHistoryResult(WireModel):
    """Messages with their attribution, and where the next page begins."""

    messages: tuple[Message, ...]
    next_cursor: str | None = None


class ListAgentsResult(WireModel):
    """The configured agents; `default` is always there."""

    items: tuple[AgentInfo, ...]


class ListModelsResult(WireModel):
    """The models that are known without asking an endpoint."""

    items: tuple[ModelInfo, ...]


class ListProvidersResult(WireModel):
    """The provider types, each with the JSON Schema of its config."""

    items: tuple[ProviderTypeInfo, ...]


class GetSchemaParams(Params):
    """Which document to send."""

    format: Literal["jsonschema", "openrpc"] = "jsonschema"


class GetSchemaResult(WireModel):
    """The whole contract as one document."""

    schema_: Json = Field(alias="schema")


class GetEventsParams(Params):
    """A page of a session's durable events after a cursor."""

    session_id: SessionId
    after_seq: Whole = Field(ge=0)
    epoch: str | None = None
    """The epoch that the cursor is of; another one gives status `epochChanged`."""
    limit: PageLimit = 100
    types: tuple[str, ...] | None = None
    """Only events of these types."""
    wait_ms: Annotated[Whole, Field(ge=0, le=600_000)] | None = None
    """Wait this long for the first event, if there is none yet."""


class GetEventsResult(WireModel):
    """Events as they were sent, without `prevSeq`."""

    events: tuple[JsonObject, ...]
    """Each a `RunEvent`."""
    last_seq: int
    """The last event of the session; of the page, where there are more."""
    first_seq: int
    """The oldest event that is kept."""
    has_more: bool
    status: Literal["ok", "truncated", "epochChanged"]


class ReloadConfigResult(WireModel):
    """How many agents there are now, and what was ignored."""

    agents: int
    warnings: tuple[WireWarning, ...]


class ConfigUpdated(WireModel):
    """`config/updated`: what can be named in a request has changed."""

    agents: tuple[str, ...]
    models: tuple[str, ...]


class TrustFolderParams(Params):
    """The user's word on a workspace, passed on by the host."""

    path: str
    trusted: Flag
