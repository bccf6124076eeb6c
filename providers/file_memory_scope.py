"""From whose memory it is to the folder that holds it. Touches no file, and keeps nothing itself.

What a scope reads of the session's state is read once, and kept with what it was read by: the scope stays when the
state changes.
"""

import json
from collections.abc import Mapping
from typing import Any, Final, cast

from protocol.base import JsonObject
from providers.api.memory import Resolved, Scope, ScopeKey
from providers.api.session import Session

from .file_names import file_name
from .scopes import AGENT, FromSession, FromState, ScopeConfig, ScopeMissing, ScopeValue

ScopeSource = FromState | ScopeConfig | str
"""A scope as an entry says it."""

KEPT: Final = "scope"
"""The key of a scope that is kept."""

_SCOPE: Final = "~scope-"


def folder_of_session(session_id: str) -> str:
    """A session's own folder."""
    return "sessions/" + file_name(session_id)


def folder_of_name(scope: str) -> str:
    """The folder of a scope that is a text."""
    return "names/" + file_name(scope, _SCOPE)


def folder_of_scope(scope: Scope | Resolved) -> str:
    """The folder of a scope of keys. No two scopes share one.

    Raises:
        ValueError: the scope is empty.
    """
    values = _keys_of(scope) if isinstance(scope, Scope) else dict(scope)
    if not values:
        raise ValueError("a scope needs a key")
    return "scopes/" + file_name(json.dumps(values, sort_keys=True, separators=(",", ":")), _SCOPE)


def reads_state(source: ScopeSource | None) -> bool:
    """Whether a scope depends on the session's state."""
    if isinstance(source, ScopeConfig):
        return any(isinstance(value, FromState) for value in source.sources.values())
    return isinstance(source, FromState)


def resolve(
    source: ScopeSource, *, session: Session, session_id: str | None, agent: str, kept: Mapping[str, Any]
) -> str | Resolved:
    """Whose memory it is: what was kept of the session's state, or what it says now.

    Args:
        source: As the entry says it.
        session: Whose state is asked.
        session_id: `None` in a run without a session.
        agent: The name of the agent that runs.
        kept: What `kept_as` returned earlier, among other things.

    Raises:
        ScopeMissing: a value is missing, blank, or no text.
    """
    earlier = _earlier(source, kept)
    if not isinstance(source, ScopeConfig):
        return earlier if isinstance(earlier, str) else _value(source, session, session_id)
    values: dict[ScopeKey, str] = {}
    for key, value in source.sources.items():
        if isinstance(value, FromState) and isinstance(earlier, Mapping):
            values[key] = earlier[key]
        else:
            values[key] = agent if (key, value) == ("agentId", AGENT) else _value(value, session, session_id)
    return values


def is_kept(source: ScopeSource, kept: Mapping[str, Any] | None) -> bool:
    """Whether what was kept is of this scope, and not of one that the entry named earlier."""
    return kept is not None and _earlier(source, kept) is not None


def kept_as(source: ScopeSource, resolved: str | Resolved) -> JsonObject:
    """What a scope was resolved to, as it is kept beside other things."""
    return {KEPT: {"from": _plain(source), "is": resolved if isinstance(resolved, str) else dict(resolved)}}


def _earlier(source: ScopeSource, kept: Mapping[str, Any]) -> str | Resolved | None:
    """What was kept, if it was read by the same source and has its form."""
    found: object = kept.get(KEPT)
    record = cast("JsonObject", found) if isinstance(found, dict) else {}
    if record.get("from") != _plain(source):
        return None
    value: object = record.get("is")
    if isinstance(value, str) and isinstance(source, FromState):
        return value or None
    if isinstance(value, dict) and isinstance(source, ScopeConfig):
        values = cast("dict[str, object]", value)
        if values.keys() == source.sources.keys() and all(isinstance(one, str) and one for one in values.values()):
            return cast("Resolved", values)
    return None


def _plain(source: ScopeSource) -> Any:
    return source if isinstance(source, str) else source.wire()


def _value(value: ScopeValue, session: Session, session_id: str | None) -> str:
    match value:
        case str():
            return value
        case FromSession():
            if session_id is None:
                raise ScopeMissing("the scope of file_memory needs a session")
            return session_id
        case FromState():
            found: object = session.snapshot().get(value.from_state)
            if not isinstance(found, str) or not found.strip():
                raise ScopeMissing(f"the scope of file_memory: the session's state has no text {value.from_state!r}")
            return found


def _keys_of(scope: Scope) -> dict[str, str]:
    values = {
        "applicationId": scope.application_id,
        "agentId": scope.agent_id,
        "sessionId": scope.session_id,
        "userId": scope.user_id,
    }
    return {key: value for key, value in values.items() if value is not None}
