"""THE TABLE: every method and notification of the contract, in both directions. Adding a method is adding a row."""

from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

from protocol.base import Empty, Params, WireModel
from protocol.events import RunEvent, SessionClosed, SessionUpdated
from protocol.lifecycle import CancelParams, InitializeParams, InitializeResult
from protocol.runs import CancelRunParams, CancelRunResult, RunParams, RunResult
from protocol.sessions import (
    CreateSessionParams,
    CreateSessionResult,
    ListSessionsParams,
    ListSessionsResult,
    ResumeSessionParams,
    ResumeSessionResult,
    SessionParams,
)
from protocol.state import (
    GetHistoryParams,
    GetHistoryResult,
    GetSchemaParams,
    GetSchemaResult,
    GetStateParams,
    GetStateResult,
    ListAgentsResult,
    ListModelsResult,
    ListProvidersResult,
)

P = TypeVar("P", bound=Params)
R = TypeVar("R", bound=WireModel | None)


@dataclass(frozen=True, eq=False)
class Method(Generic[P, R]):
    """A request and its answer."""

    name: str
    params: type[P]
    result: type[R]


@dataclass(frozen=True, eq=False)
class Notification(Generic[P]):
    """A message without an answer."""

    name: str
    params: type[P]


INITIALIZE: Final = Method("initialize", InitializeParams, InitializeResult)
CREATE_SESSION: Final = Method("createSession", CreateSessionParams, CreateSessionResult)
RESUME_SESSION: Final = Method("resumeSession", ResumeSessionParams, ResumeSessionResult)
CLOSE_SESSION: Final = Method("closeSession", SessionParams, Empty)
LIST_SESSIONS: Final = Method("listSessions", ListSessionsParams, ListSessionsResult)
RUN: Final = Method("run", RunParams, RunResult)
CANCEL_RUN: Final = Method("cancelRun", CancelRunParams, CancelRunResult)
GET_STATE: Final = Method("getState", GetStateParams, GetStateResult)
GET_HISTORY: Final = Method("getHistory", GetHistoryParams, GetHistoryResult)
LIST_AGENTS: Final = Method("listAgents", Empty, ListAgentsResult)
LIST_MODELS: Final = Method("listModels", Empty, ListModelsResult)
LIST_PROVIDERS: Final = Method("listProviders", Empty, ListProvidersResult)
GET_SCHEMA: Final = Method("getSchema", GetSchemaParams, GetSchemaResult)
SHUTDOWN: Final = Method("shutdown", Empty, type(None))

METHODS: Final[tuple[Method[Any, Any], ...]] = (
    INITIALIZE,
    CREATE_SESSION,
    RESUME_SESSION,
    CLOSE_SESSION,
    LIST_SESSIONS,
    RUN,
    CANCEL_RUN,
    GET_STATE,
    GET_HISTORY,
    LIST_AGENTS,
    LIST_MODELS,
    LIST_PROVIDERS,
    GET_SCHEMA,
    SHUTDOWN,
)
"""Requests from client to server, in the order in which the documents name them."""

INITIALIZED: Final = Notification("initialized", Empty)
EXIT: Final = Notification("exit", Empty)
CANCEL_REQUEST: Final = Notification("$/cancelRequest", CancelParams)

NOTIFICATIONS: Final[tuple[Notification[Any], ...]] = (INITIALIZED, EXIT, CANCEL_REQUEST)
"""Notifications from client to server that are the sidecar's own; LSP's go to its language-server half."""

SERVER_NOTIFICATIONS: Final[dict[str, type[WireModel]]] = {
    "run/event": RunEvent,
    "session/updated": SessionUpdated,
    "session/closed": SessionClosed,
}
"""Notifications from server to client."""

NOT_YET: Final[dict[str, str]] = {
    "forkSession": "fork",
    "updateSession": "updateSession",
    "deleteSession": "deleteSession",
    "exportSession": "export",
    "importSession": "export",
    "steerRun": "steering",
    "resolveRequest": "approvals",
    "getEvents": "getEvents",
    "explainRun": "explain",
    "listTools": "tools",
    "listApprovalRules": "approvals",
    "revokeApprovalRule": "approvals",
    "listMemories": "memories",
    "searchMemories": "memories",
    "deleteMemories": "memories",
    "reloadConfig": "reloadConfig",
    "trustFolder": "trust",
}
"""Methods of the contract that this build does not have: method → the feature that it lacks."""
