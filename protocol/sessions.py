"""Sessions: creating, opening, closing and listing them. Types only."""

from typing import Annotated, Literal

from pydantic import Field, SerializerFunctionWrapHandler, model_serializer

from .agents import AgentSpec, ModelName, ProviderEntry
from .base import MAX_ID_LENGTH, Flag, Json, JsonObject, Params, Whole, WireModel
from .messages import Usage
from .tools import HostTool

SessionId = Annotated[str, Field(min_length=1, max_length=MAX_ID_LENGTH)]
RunId = Annotated[str, Field(min_length=1, max_length=MAX_ID_LENGTH)]
PageLimit = Annotated[Whole, Field(gt=0)]
"""Items wanted on a page; a page holds fewer where that is over a limit of the configuration."""


class WireWarning(WireModel):
    """Something the host should know that is no error."""

    kind: str
    message: str
    source_id: str | None = None
    data: Json = None


class SessionInfo(WireModel):
    """A session in a few lines."""

    session_id: str
    agent: str
    model: str | None = None
    title: str | None = None
    cwd: str | None = None
    created_at: str
    updated_at: str
    revision: int
    """Rises with each change of state, config options, title, metadata or archived; not with messages or events."""
    last_seq: int
    epoch: str
    status: Literal["idle", "running", "inputRequired"]
    archived: bool | None = None
    open: bool
    """In this process."""
    parent_session_id: str | None = None
    service_session_id: str | None = None
    usage: Usage | None = None
    metadata: JsonObject | None = None


class ConfigChoice(WireModel):
    """One value that a config option can take."""

    value: Json
    name: str
    description: str | None = None


class ConfigOption(WireModel):
    """A setting of a session that the host may show and change."""

    id: str
    name: str
    value: Json
    choices: tuple[ConfigChoice, ...] | None = None

    @model_serializer(mode="wrap")
    def _with_value(self, handler: SerializerFunctionWrapHandler) -> JsonObject:
        """A setting that has no value says so: `value` is there, and null."""
        fields: JsonObject = handler(self)
        return {"id": fields.pop("id"), "name": fields.pop("name"), "value": fields.pop("value", None), **fields}


RequestKind = Literal["approval", "elicitation", "hostTool", "hostProvider"]


class PendingRequest(WireModel):
    """A question to the host that waits for its answer."""

    request_id: str
    kind: RequestKind
    run_id: str
    opened_at: str
    deadline: str | None = None
    payload: Json


class ProviderStatus(WireModel):
    """Whether a session's provider can work."""

    source_id: str
    type: str
    status: Literal["ready", "loading", "unavailable"]
    detail: str | None = None


class CreateSessionParams(Params):
    """Make a session. The same id with the same payload gives the same session."""

    session_id: SessionId | None = None
    """Minted by the client, so that the request can be sent again; else by the sidecar."""
    agent: str | AgentSpec | None = None
    """A configured agent's name, or a whole agent; `default` if absent."""
    model: ModelName | None = None
    mode: str | None = None
    instructions: str | None = None
    """Added after the agent's."""
    cwd: str | None = None
    additional_directories: tuple[str, ...] | None = None
    tools: tuple[HostTool, ...] | None = None
    context_providers: tuple[ProviderEntry, ...] | None = None
    """Added after the agent's; an entry with the same `sourceId` replaces the agent's."""
    mcp_servers: tuple[JsonObject, ...] | None = None
    state: JsonObject | None = None
    service_session_id: str | None = None
    ephemeral: Flag | None = None
    """Kept in memory only, gone with the process."""
    title: str | None = None
    metadata: JsonObject | None = None


class CreateSessionResult(WireModel):
    """The session, open in this process."""

    session: SessionInfo
    config_options: tuple[ConfigOption, ...]
    providers: tuple[ProviderStatus, ...]
    last_seq: int
    warnings: tuple[WireWarning, ...] | None = None


class ReplayNone(WireModel):
    """No replay."""

    type: Literal["none"] = "none"


class ReplayStart(WireModel):
    """Replay every event that is kept."""

    type: Literal["start"]


class ReplaySeq(WireModel):
    """Replay what came after a cursor."""

    type: Literal["seq"]
    seq: Whole = Field(ge=0)
    epoch: str


ReplayFrom = Annotated[ReplayNone | ReplayStart | ReplaySeq, Field(discriminator="type")]


class ResumeSessionParams(Params):
    """Open a stored session in this process, and replay."""

    session_id: SessionId
    replay_from: ReplayFrom = ReplayNone()
    tools: tuple[HostTool, ...] | None = None
    context_providers: tuple[ProviderEntry, ...] | None = None
    mcp_servers: tuple[JsonObject, ...] | None = None


class ActiveRun(WireModel):
    """A run in progress."""

    run_id: str
    started_at: str
    stage: str | None = None
    """`starting`, `beforeRun`, `model`, `afterRun` or `ending`."""


class Recovered(WireModel):
    """What opening the session had to repair."""

    interrupted_runs: tuple[str, ...]
    closed_calls: tuple[str, ...]
    set_aside: Json = None


class ResumeSessionResult(WireModel):
    """The session, open in this process; replayed events follow."""

    session: SessionInfo
    config_options: tuple[ConfigOption, ...]
    providers: tuple[ProviderStatus, ...]
    active_run: ActiveRun | None = None
    pending_requests: tuple[PendingRequest, ...]
    last_seq: int
    truncated: bool
    """Some of the events asked for are no longer kept."""
    recovered: Recovered | None = None
    warnings: tuple[WireWarning, ...] | None = None


class SessionParams(Params):
    """A request about one session."""

    session_id: SessionId


class ListSessionsParams(Params):
    """A page of stored sessions, newest first."""

    cursor: str | None = None
    limit: PageLimit = 100
    cwd: str | None = None
    query: str | None = None
    """Text in title or id."""
    archived: Flag = False


class ListSessionsResult(WireModel):
    """Sessions, and where the next page begins."""

    sessions: tuple[SessionInfo, ...]
    next_cursor: str | None = None


class ForkSessionParams(Params):
    """Make a new session out of a stored one: messages and state are copied, events are not."""

    session_id: SessionId
    through_run_id: RunId | None = None
    """Keep this run and what came before it."""
    before_run_id: RunId | None = None
    """Keep only what came before this run."""
    new_session_id: SessionId | None = None
    ephemeral: Flag | None = None
    """Default: as the source."""


class SessionResult(WireModel):
    """A session in a few lines."""

    session: SessionInfo


class UpdateSessionParams(Params):
    """Change a session's settings, labels or state. Fields that are absent stay as they are."""

    session_id: SessionId
    title: str | None = None
    metadata: JsonObject | None = None
    archived: Flag | None = None
    config_options: JsonObject | None = None
    """Option id → its new value."""
    state_patch: JsonObject | None = None
    """RFC 7386 merge patch of the state bag."""
    if_revision: Whole | None = None
    """Refuse with `revisionConflict` if the session has another revision."""


class UpdateSessionResult(WireModel):
    """The session as it is now."""

    session: SessionInfo
    config_options: tuple[ConfigOption, ...]


class ExportSessionResult(WireModel):
    """The whole session as one JSON document: `{format: "agent-sidecar/session", version: 1, …}`."""

    document: JsonObject


class ImportSessionParams(Params):
    """Make a session from an exported document."""

    document: JsonObject
    new_session_id: SessionId | None = None
    """Default: the id in the document."""


class SessionUpdated(WireModel):
    """`session/updated`: a session's labels or settings have changed."""

    session: SessionInfo


class SessionClosed(WireModel):
    """`session/closed`: a session is no longer open here, or no longer there at all."""

    session_id: str
    reason: Literal["closed", "deleted"]
