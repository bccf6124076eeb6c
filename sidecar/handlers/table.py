"""Which handler answers which method, and how it stands in its session's queue. One line a method."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any, TypeVar

from protocol.base import Params, WireModel
from protocol.methods import (
    CANCEL_RUN,
    CLOSE_SESSION,
    CREATE_SESSION,
    DELETE_MEMORIES,
    DELETE_SESSION,
    EXPLAIN_RUN,
    EXPORT_SESSION,
    FORK_SESSION,
    GET_EVENTS,
    GET_HISTORY,
    GET_SCHEMA,
    GET_STATE,
    IMPORT_SESSION,
    LIST_AGENTS,
    LIST_APPROVAL_RULES,
    LIST_MEMORIES,
    LIST_MODELS,
    LIST_PROVIDERS,
    LIST_SESSIONS,
    LIST_TOOLS,
    RELOAD_CONFIG,
    RESOLVE_REQUEST,
    RESUME_SESSION,
    REVOKE_APPROVAL_RULE,
    RUN,
    SEARCH_MEMORIES,
    STEER_RUN,
    TRUST_FOLDER,
    UPDATE_SESSION,
    Method,
)

from .approval_rules import list_approval_rules, revoke_approval_rule
from .cancel_run import cancel_run
from .close_session import close_session
from .create_session import create_session
from .delete_memories import delete_memories
from .delete_session import delete_session
from .explain_run import explain_run
from .export_session import export_session
from .fork_session import fork_session
from .get_events import get_events
from .get_history import get_history
from .get_schema import get_schema
from .get_state import get_state
from .import_session import import_session, imported_id
from .list_memories import list_memories
from .list_sessions import list_sessions
from .list_tools import list_tools
from .lists import list_agents, list_models, list_providers
from .reload_config import reload_config
from .resolve_request import resolve_request
from .resume_session import resume_session
from .run import run
from .search_memories import search_memories
from .services import Call, Reply, Services
from .steer_run import steer_run
from .trust_folder import trust_folder
from .update_session import update_session

P = TypeVar("P", bound=Params)
R = TypeVar("R", bound=WireModel)

Handler = Callable[[Any, Call, Services], Awaitable[WireModel | Reply]]
Creates = Callable[[Any], str | None]


class Lane(Enum):
    """How a request stands among those that name the same session."""

    FREE = "free"
    """Waits only for an unfinished `OPENS`."""
    OPENS = "opens"
    """In arrival order; everything after it waits for its end."""
    ORDERED = "ordered"
    """In arrival order, until its handler lets the next one begin, or ends."""


@dataclass(frozen=True, slots=True)
class Binding:
    """A row of the table."""

    method: Method[Any, Any]
    handler: Handler
    lane: Lane
    needs_config: bool
    creates: Creates | None
    """The id of the session that it makes beside the one that it names: what names that one waits for it."""
    stoppable: bool
    """It may be cut at any point: it changes nothing."""


def _bind(
    method: Method[P, R],
    handler: Callable[[P, Call, Services], Awaitable[R | Reply]],
    lane: Lane = Lane.FREE,
    *,
    needs_config: bool = True,
    creates: Callable[[P], str | None] | None = None,
    changes: bool = False,
) -> Binding:
    stoppable = lane is Lane.FREE and creates is None and not changes
    return Binding(method, handler, lane, needs_config, creates, stoppable)


TABLE: dict[str, Binding] = {
    binding.method.name: binding
    for binding in (
        _bind(CREATE_SESSION, create_session, Lane.OPENS),
        _bind(RESUME_SESSION, resume_session, Lane.OPENS),
        _bind(FORK_SESSION, fork_session, Lane.ORDERED, creates=lambda params: params.new_session_id),
        _bind(UPDATE_SESSION, update_session, Lane.OPENS),
        _bind(CLOSE_SESSION, close_session, Lane.ORDERED),
        _bind(DELETE_SESSION, delete_session, Lane.ORDERED),
        _bind(EXPORT_SESSION, export_session),
        _bind(IMPORT_SESSION, import_session, creates=imported_id),
        _bind(LIST_SESSIONS, list_sessions),
        _bind(RUN, run, Lane.ORDERED),
        _bind(CANCEL_RUN, cancel_run),
        _bind(STEER_RUN, steer_run, changes=True),
        _bind(GET_STATE, get_state, needs_config=False),
        _bind(GET_HISTORY, get_history),
        _bind(GET_EVENTS, get_events),
        _bind(EXPLAIN_RUN, explain_run),
        _bind(RESOLVE_REQUEST, resolve_request, changes=True),
        _bind(LIST_TOOLS, list_tools),
        _bind(LIST_APPROVAL_RULES, list_approval_rules),
        _bind(REVOKE_APPROVAL_RULE, revoke_approval_rule, changes=True),
        _bind(LIST_AGENTS, list_agents),
        _bind(LIST_MODELS, list_models),
        _bind(LIST_PROVIDERS, list_providers),
        _bind(LIST_MEMORIES, list_memories),
        _bind(SEARCH_MEMORIES, search_memories),
        _bind(DELETE_MEMORIES, delete_memories, changes=True),
        _bind(RELOAD_CONFIG, reload_config, needs_config=False, changes=True),
        _bind(TRUST_FOLDER, trust_folder, needs_config=False, changes=True),
        _bind(GET_SCHEMA, get_schema, needs_config=False),
    )
}
"""Every method that a session or the process answers; `initialize` and `shutdown` are the server's own."""
