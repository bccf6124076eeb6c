"""Whose memory a session uses: how an entry says it, and what that comes to when the session begins. Reads no memory.

A scope is settled once, from the session's own beginning, and kept in its record. A missing or empty value is refused
there: it would mean everybody's.
"""

import difflib
from typing import Annotated, Any, Final, Literal, Self, cast

from pydantic import Field, model_validator

from protocol.base import JsonObject, StrictModel
from providers.api.errors import ProviderError
from providers.api.memory import Resolved, Scope, ScopeKey
from providers.api.session import Session

AGENT: Final = "agent"
"""As `agentId`: the name of the agent that the session has."""

_FIELDS: Final[dict[ScopeKey, str]] = {
    "applicationId": "application_id",
    "agentId": "agent_id",
    "sessionId": "session_id",
    "userId": "user_id",
}


Text = Annotated[str, Field(pattern=r"\S")]
"""Not blank."""


class FromState(StrictModel):
    """A value of the session's state, as it is when the session begins."""

    from_state: Text
    """The key."""


class FromSession(StrictModel):
    """A value of the session itself."""

    from_session: Literal["sessionId"]


ScopeValue = FromState | FromSession | Text


class ScopeConfig(StrictModel):
    """Keys and where their values come from. A text is the value itself; `"agent"` as `agentId` is the agent's name."""

    application_id: ScopeValue | None = None
    """The application."""
    agent_id: ScopeValue | None = None
    """The agent."""
    session_id: ScopeValue | None = None
    """The session: what is remembered stays in it."""
    user_id: ScopeValue | None = None
    """The user."""

    @model_validator(mode="before")
    @classmethod
    def _knows_its_keys(cls, data: object) -> object:
        """A misspelt key would be a wider scope: it is refused, with the nearest one."""
        known = {*_FIELDS, *_FIELDS.values()}
        for key in cast("dict[str, object]", data) if isinstance(data, dict) else ():
            if key not in known:
                near = difflib.get_close_matches(key, _FIELDS, n=1)
                hint = f"did you mean {near[0]!r}?" if near else f"its keys are {', '.join(_FIELDS)}"
                raise ValueError(f"a scope has no key {key!r}; {hint}")
        return cast("object", data)

    @model_validator(mode="after")
    def _says_something(self) -> Self:
        if not self.sources:
            raise ValueError(f"a scope needs a key, or it would be everybody's: one of {', '.join(_FIELDS)}")
        return self

    @property
    def sources(self) -> "dict[ScopeKey, ScopeValue]":
        """The keys that are given, with where their values come from."""
        given: dict[ScopeKey, ScopeValue | None] = {
            "applicationId": self.application_id,
            "agentId": self.agent_id,
            "sessionId": self.session_id,
            "userId": self.user_id,
        }
        return {key: value for key, value in given.items() if value is not None}


class ScopeMissing(ProviderError):
    """A session does not say whose memory it is to use. The text names the key, and no value."""


def settle(
    config: ScopeConfig, session: Session, agent: str, earlier: Resolved | None = None, *, what: str = "the scope"
) -> Resolved:
    """The values of a scope for one session.

    Args:
        config: As the entry says it.
        session: Its state is asked.
        agent: The agent's name.
        earlier: What was settled for the session that this one is a fork of: only the session's own id is new.
        what: What it is called in an error.

    Raises:
        ScopeMissing: a value is missing, blank, or no text.
    """
    found: dict[ScopeKey, str] = {}
    for key, source in config.sources.items():
        inherited = earlier.get(key) if earlier is not None and not isinstance(source, FromSession) else None
        value = inherited if inherited is not None else _value(key, source, session, agent)
        if not isinstance(value, str) or not value.strip():
            raise ScopeMissing(f"{what}: {key} is missing or empty ({_told(source)})")
        found[key] = value
    return found


def scope_of(resolved: Resolved) -> Scope:
    """A settled scope as memory knows it."""
    return Scope(**{_FIELDS[key]: value for key, value in resolved.items()})


def read_settled(value: object) -> Resolved:
    """A settled scope as it stands in a record.

    Raises:
        ScopeMissing: it is none, which nothing but damage brings about.
    """
    values = cast("dict[Any, Any]", value) if isinstance(value, dict) else {}
    if not values or not all(key in _FIELDS and isinstance(one, str) and one.strip() for key, one in values.items()):
        raise ScopeMissing("the session's record holds no scope for this memory")
    return cast("Resolved", values)


def plain(resolved: Resolved) -> JsonObject:
    """A settled scope as it is stored and told."""
    return {str(key): value for key, value in resolved.items()}


def _value(key: ScopeKey, source: ScopeValue, session: Session, agent: str) -> object:
    match source:
        case FromState(from_state=name):
            return session.snapshot().get(name)
        case FromSession():
            return session.session_id
        case _:
            return agent if key == "agentId" and source == AGENT else source


def _told(source: ScopeValue) -> str:
    match source:
        case FromState(from_state=name):
            return f"the session's state has no text {name!r}"
        case FromSession():
            return "there is no session"
        case _:
            return "a blank text"
