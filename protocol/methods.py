"""THE TABLE: every method and notification of the contract, in both directions. Adding a method is adding a row."""

from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

from .approvals import ListApprovalRulesResult, ListToolsResult, RevokeApprovalRuleParams, SessionOrNone
from .base import Empty, Params, WireModel
from .events import RunEvent
from .explain import ExplainRunParams, ExplainRunResult
from .host import (
    AfterRunParams,
    AfterRunResult,
    ApprovalOutcome,
    BeforeRunParams,
    BeforeRunResult,
    CallToolParams,
    CallToolResult,
    EditorContextParams,
    EditorContextResult,
    ElicitParams,
    ElicitResult,
    RequestApprovalParams,
    ResolveRequestParams,
    ResolveRequestResult,
)
from .lifecycle import CancelParams, InitializeParams, InitializeResult
from .memories import (
    DeleteMemoriesParams,
    DeleteMemoriesResult,
    ListMemoriesParams,
    ListMemoriesResult,
    SearchMemoriesParams,
    SearchMemoriesResult,
)
from .runs import (
    CancelRunParams,
    CancelRunResult,
    RunAccepted,
    RunParams,
    RunResult,
    SteerRunParams,
    SteerRunResult,
)
from .sessions import (
    CreateSessionParams,
    CreateSessionResult,
    ExportSessionResult,
    ForkSessionParams,
    ImportSessionParams,
    ListSessionsParams,
    ListSessionsResult,
    ResumeSessionParams,
    ResumeSessionResult,
    SessionClosed,
    SessionParams,
    SessionResult,
    SessionUpdated,
    UpdateSessionParams,
    UpdateSessionResult,
)
from .state import (
    ConfigUpdated,
    GetEventsParams,
    GetEventsResult,
    GetHistoryParams,
    GetHistoryResult,
    GetSchemaParams,
    GetSchemaResult,
    GetStateParams,
    GetStateResult,
    ListAgentsResult,
    ListModelsResult,
    ListProvidersResult,
    ReloadConfigResult,
    TrustFolderParams,
)

P = TypeVar("P", bound=Params)
R = TypeVar("R", bound=WireModel | None)


@dataclass(frozen=True, eq=False)
class Method(Generic[P, R]):
    """A request and its answer."""

    name: str
    params: type[P]
    result: type[R]
    also: tuple[type[WireModel], ...] = ()
    """Other shapes that the answer may have."""
    deprecated: str | None = None
    """What to use instead, where it is there only for clients that know nothing else."""


@dataclass(frozen=True, eq=False)
class Notification(Generic[P]):
    """A message without an answer."""

    name: str
    params: type[P]
    deprecated: str | None = None
    """What to use instead."""


INITIALIZE: Final = Method("initialize", InitializeParams, InitializeResult)
CREATE_SESSION: Final = Method("createSession", CreateSessionParams, CreateSessionResult)
RESUME_SESSION: Final = Method("resumeSession", ResumeSessionParams, ResumeSessionResult)
CLOSE_SESSION: Final = Method("closeSession", SessionParams, Empty)
DELETE_SESSION: Final = Method("deleteSession", SessionParams, Empty)
UPDATE_SESSION: Final = Method("updateSession", UpdateSessionParams, UpdateSessionResult)
FORK_SESSION: Final = Method("forkSession", ForkSessionParams, SessionResult)
EXPORT_SESSION: Final = Method("exportSession", SessionParams, ExportSessionResult)
IMPORT_SESSION: Final = Method("importSession", ImportSessionParams, SessionResult)
LIST_SESSIONS: Final = Method("listSessions", ListSessionsParams, ListSessionsResult)
RUN: Final[Method[RunParams, RunResult | RunAccepted]] = Method("run", RunParams, RunResult, also=(RunAccepted,))
CANCEL_RUN: Final = Method("cancelRun", CancelRunParams, CancelRunResult)
STEER_RUN: Final = Method("steerRun", SteerRunParams, SteerRunResult)
GET_STATE: Final = Method("getState", GetStateParams, GetStateResult)
GET_HISTORY: Final = Method("getHistory", GetHistoryParams, GetHistoryResult)
GET_EVENTS: Final = Method("getEvents", GetEventsParams, GetEventsResult)
EXPLAIN_RUN: Final = Method("explainRun", ExplainRunParams, ExplainRunResult)
RESOLVE_REQUEST: Final = Method("resolveRequest", ResolveRequestParams, ResolveRequestResult)
LIST_AGENTS: Final = Method("listAgents", Empty, ListAgentsResult)
LIST_MODELS: Final = Method("listModels", Empty, ListModelsResult)
LIST_PROVIDERS: Final = Method("listProviders", Empty, ListProvidersResult)
LIST_TOOLS: Final = Method("listTools", SessionOrNone, ListToolsResult)
LIST_APPROVAL_RULES: Final = Method("listApprovalRules", SessionOrNone, ListApprovalRulesResult)
REVOKE_APPROVAL_RULE: Final = Method("revokeApprovalRule", RevokeApprovalRuleParams, Empty)
LIST_MEMORIES: Final = Method("listMemories", ListMemoriesParams, ListMemoriesResult)
SEARCH_MEMORIES: Final = Method("searchMemories", SearchMemoriesParams, SearchMemoriesResult)
DELETE_MEMORIES: Final = Method("deleteMemories", DeleteMemoriesParams, DeleteMemoriesResult)
RELOAD_CONFIG: Final = Method("reloadConfig", Empty, ReloadConfigResult)
TRUST_FOLDER: Final = Method("trustFolder", TrustFolderParams, Empty)
GET_SCHEMA: Final = Method("getSchema", GetSchemaParams, GetSchemaResult)
SHUTDOWN: Final = Method("shutdown", Empty, type(None))

METHODS: Final[tuple[Method[Any, Any], ...]] = (
    INITIALIZE,
    CREATE_SESSION,
    RESUME_SESSION,
    LIST_SESSIONS,
    FORK_SESSION,
    UPDATE_SESSION,
    CLOSE_SESSION,
    DELETE_SESSION,
    EXPORT_SESSION,
    IMPORT_SESSION,
    RUN,
    CANCEL_RUN,
    STEER_RUN,
    GET_STATE,
    GET_HISTORY,
    GET_EVENTS,
    EXPLAIN_RUN,
    RESOLVE_REQUEST,
    LIST_AGENTS,
    LIST_MODELS,
    LIST_PROVIDERS,
    LIST_TOOLS,
    LIST_APPROVAL_RULES,
    REVOKE_APPROVAL_RULE,
    LIST_MEMORIES,
    SEARCH_MEMORIES,
    DELETE_MEMORIES,
    RELOAD_CONFIG,
    TRUST_FOLDER,
    GET_SCHEMA,
    SHUTDOWN,
)
"""Requests from client to server, in the order in which the documents name them."""

HOST_CALL_TOOL: Final = Method("host/callTool", CallToolParams, CallToolResult)
HOST_BEFORE_RUN: Final = Method("host/beforeRun", BeforeRunParams, BeforeRunResult)
HOST_AFTER_RUN: Final = Method("host/afterRun", AfterRunParams, AfterRunResult)
HOST_REQUEST_APPROVAL: Final = Method("host/requestApproval", RequestApprovalParams, ApprovalOutcome)
HOST_ELICIT: Final = Method("host/elicit", ElicitParams, ElicitResult)

HOST_EDITOR_CONTEXT: Final = Method("host/getEditorContext", EditorContextParams, EditorContextResult)

HOST_METHODS: Final[tuple[Method[Any, Any], ...]] = (
    HOST_CALL_TOOL,
    HOST_BEFORE_RUN,
    HOST_AFTER_RUN,
    HOST_REQUEST_APPROVAL,
    HOST_ELICIT,
    HOST_EDITOR_CONTEXT,
)
"""Requests from server to client."""

INITIALIZED: Final = Notification("initialized", Empty)
EXIT: Final = Notification("exit", Empty)
CANCEL_REQUEST: Final = Notification("$/cancelRequest", CancelParams)

NOTIFICATIONS: Final[tuple[Notification[Any], ...]] = (INITIALIZED, EXIT, CANCEL_REQUEST)
"""Notifications from client to server that are the sidecar's own; LSP's go to its language-server half."""

RUN_EVENT: Final = "run/event"
SESSION_UPDATED: Final = "session/updated"
SESSION_CLOSED: Final = "session/closed"
CONFIG_UPDATED: Final = "config/updated"

SERVER_NOTIFICATIONS: Final[dict[str, type[WireModel]]] = {
    RUN_EVENT: RunEvent,
    SESSION_UPDATED: SessionUpdated,
    SESSION_CLOSED: SessionClosed,
    CONFIG_UPDATED: ConfigUpdated,
}
"""Notifications from server to client."""
