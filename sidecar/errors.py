"""The exceptions that a host sees: each carries its code, its kind and what to do. Boundaries turn others into these.

SidecarError
├── requests      ParseError, InvalidRequest, MethodNotFound, InvalidParams, NotInitialized, RequestCancelled,
│                 ServerCancelled, ProtocolVersionUnsupported, Overloaded, MessageTooLarge, CapabilityRequired
├── sessions      SessionNotFound, SessionExists, SessionBusy, SessionClosed, SessionLocked, SessionCorrupt,
│                 RunNotFound, IdempotencyConflict, RevisionConflict, CursorExpired
├── agents        AgentNotFound, ModelNotFound, ToolNotFound, ProviderNotFound, ConfigInvalid, ProviderFailed,
│                 MiddlewareFailed, AgentFailed
├── models        ModelError: ModelAuth, ModelRateLimited, ModelQuota, ContextWindowExceeded, ContentFiltered,
│                 ModelBadRequest, ModelUnavailable, ModelTimeout, ModelBadStream
├── runs          StoredFailure: what a finished run gave, given again
└── storage       StorageFailed, StorageBusy, OwnershipLost
"""

import uuid
from collections.abc import Sequence
from typing import Any, ClassVar

from protocol.base import JsonObject
from protocol.errors import KINDS, WireError


def new_error_id() -> str:
    """A short random name for one occurrence of an error, written to the log and to the host."""
    return uuid.uuid4().hex[:12]


class SidecarError(Exception):
    """The base: a row of `protocol.errors.KINDS`, a message that says what to do, and fields for programs.

    Fields are given in snake_case and go out in camelCase; `None` is left out.
    """

    kind: ClassVar[str] = "internalError"

    def __init__(self, message: str, **fields: Any) -> None:
        super().__init__(message)
        self.message = message
        self.fields = {name: value for name, value in fields.items() if value is not None}
        self.error_id = new_error_id()

    def wire(self) -> JsonObject:
        """The JSON-RPC error object."""
        code, retryable = KINDS[self.kind]
        data: JsonObject = {"kind": self.kind, "retryable": retryable, "errorId": self.error_id}
        data.update((_camel(name), value) for name, value in self.fields.items())
        return {"code": code, "message": self.message, "data": data}


def _camel(name: str) -> str:
    head, *tail = name.split("_")
    return head + "".join(part.title() for part in tail)


class ParseError(SidecarError):
    """The bytes are no JSON."""

    kind = "parseError"


class InvalidRequest(SidecarError):
    """The envelope is no JSON-RPC request, or the connection's state forbids it."""

    kind = "invalidRequest"


class MethodNotFound(SidecarError):
    """No such method."""

    kind = "methodNotFound"

    def __init__(self, method: str) -> None:
        super().__init__(f"unknown method {method!r}; getSchema lists the methods")


class InvalidParams(SidecarError):
    """The params have the wrong shape."""

    kind = "invalidParams"

    def __init__(self, message: str, errors: Sequence[JsonObject] = (), **fields: Any) -> None:
        super().__init__(message, errors=list(errors) or None, **fields)


class NotInitialized(SidecarError):
    """A request came before `initialize`."""

    kind = "notInitialized"

    def __init__(self) -> None:
        super().__init__("send initialize first; initialize {} is enough")


class RequestCancelled(SidecarError):
    """The host cancelled the request."""

    kind = "requestCancelled"

    def __init__(self) -> None:
        super().__init__("the request was cancelled")


class ServerCancelled(SidecarError):
    """The sidecar is shutting down, and the request was not done in time."""

    kind = "serverCancelled"

    def __init__(self) -> None:
        super().__init__("the sidecar is shutting down; send the request again to a new one")


class ProtocolVersionUnsupported(SidecarError):
    """Host and sidecar have no protocol version in common."""

    kind = "protocolVersionUnsupported"

    def __init__(self, supported: Sequence[int]) -> None:
        super().__init__(f"this sidecar speaks protocol versions {list(supported)}", supported=list(supported))


class Overloaded(SidecarError):
    """A limit on work in progress is reached."""

    kind = "overloaded"

    def __init__(self, what: str, retry_after_ms: int = 1000) -> None:
        super().__init__(f"{what}; try again in a moment", retry_after_ms=retry_after_ms)


class MessageTooLarge(SidecarError):
    """A message is over the limit, in or out."""

    kind = "messageTooLarge"

    def __init__(self, message: str, limit: int) -> None:
        super().__init__(message, limit=limit)


class CapabilityRequired(SidecarError):
    """The request needs a feature that this build, or the host, does not have."""

    kind = "capabilityRequired"

    def __init__(self, feature: str, what: str) -> None:
        super().__init__(f"{what} needs the feature {feature!r}, which this build does not have", feature=feature)


class SessionNotFound(SidecarError):
    """No session with that id is stored."""

    kind = "sessionNotFound"

    def __init__(self, session_id: str) -> None:
        super().__init__(f"no session {session_id!r}; listSessions names them", session_id=session_id)


class SessionExists(SidecarError):
    """An import or a fork would land on an existing session."""

    kind = "sessionExists"

    def __init__(self, session_id: str) -> None:
        super().__init__(f"session {session_id!r} exists already; choose another id", session_id=session_id)


class SessionBusy(SidecarError):
    """A run is active on the session, and the request did not say `queue` or `steer`."""

    kind = "sessionBusy"

    def __init__(self, session_id: str, active_run_id: str, queue_length: int = 0, allowed: Sequence[str] = ()) -> None:
        hint = f", or send whenBusy: {' or '.join(allowed)}" if allowed else ""
        super().__init__(
            f"session {session_id!r} is running {active_run_id!r}; wait for run.completed{hint}",
            session_id=session_id,
            active_run_id=active_run_id,
            queue_length=queue_length,
            allowed=list(allowed),
        )


class SessionClosed(SidecarError):
    """The session is stored, but not open in this process."""

    kind = "sessionClosed"

    def __init__(self, session_id: str) -> None:
        super().__init__(
            f"session {session_id!r} is stored but not open here; send resumeSession first", session_id=session_id
        )


class SessionLocked(SidecarError):
    """Another live process owns the session."""

    kind = "sessionLocked"

    def __init__(self, session_id: str, pid: int, since: str) -> None:
        super().__init__(
            f"session {session_id!r} is open in process {pid} since {since}; close it there, or use another session",
            session_id=session_id,
            pid=pid,
            since=since,
        )


class SessionCorrupt(SidecarError):
    """What is stored of the session does not read back."""

    kind = "sessionCorrupt"

    def __init__(self, session_id: str, what: str, saved: JsonObject) -> None:
        super().__init__(
            f"what is stored of session {session_id!r} is damaged ({what}); export what could be saved, then delete it",
            session_id=session_id,
            saved=saved,
        )


class RunNotFound(SidecarError):
    """No run with that id."""

    kind = "runNotFound"

    def __init__(self, run_id: str, session_id: str | None = None) -> None:
        super().__init__(f"no run {run_id!r}", run_id=run_id, session_id=session_id)


class IdempotencyConflict(SidecarError):
    """An id was used before, with another payload."""

    kind = "idempotencyConflict"

    def __init__(self, what: str, **fields: Any) -> None:
        super().__init__(f"{what} was used before with another payload; mint a new id", **fields)


class RevisionConflict(SidecarError):
    """The caller's revision is not the current one."""

    kind = "revisionConflict"

    def __init__(self, message: str, revision: int | None = None) -> None:
        super().__init__(message, revision=revision)


class CursorExpired(SidecarError):
    """A cursor is of another epoch, or its events are no longer kept."""

    kind = "cursorExpired"


class AgentNotFound(SidecarError):
    """No agent of that name is configured."""

    kind = "agentNotFound"

    def __init__(self, name: str, known: Sequence[str]) -> None:
        super().__init__(f"no agent {name!r}; there are: {', '.join(known)}", agent=name, known=list(known))


class ModelNotFound(SidecarError):
    """No such endpoint or model, or no model is configured at all."""

    kind = "modelNotFound"


class ToolNotFound(SidecarError):
    """No tool of that name is registered."""

    kind = "toolNotFound"


class ProviderNotFound(SidecarError):
    """No provider of that type is registered."""

    kind = "providerNotFound"


class ConfigInvalid(SidecarError):
    """A configuration, an agent or a provider entry is refused. The message names the key or id."""

    kind = "configInvalid"

    def __init__(
        self, message: str, *, file: str | None = None, line: int | None = None, key: str | None = None, **fields: Any
    ) -> None:
        where = ":".join(str(part) for part in (file, line) if part is not None)
        super().__init__(f"{where}: {message}" if where else message, file=file, line=line, key=key, **fields)


class ProviderFailed(SidecarError):
    """A context provider failed, and its policy is to fail the run."""

    kind = "providerFailed"

    def __init__(self, source_id: str, phase: str, why: str) -> None:
        super().__init__(f"provider {source_id!r} failed in {phase}: {why}", source_id=source_id, phase=phase)


class MiddlewareFailed(SidecarError):
    """Middleware failed, or failed the run on purpose: what it stands around does not count."""

    kind = "middlewareFailed"

    def __init__(self, around: str, why: str, **fields: Any) -> None:
        super().__init__(f"{around} middleware failed: {why}", around=around, **fields)


class AgentFailed(SidecarError):
    """An agent with a `run` of its own failed, or gave what is no answer."""

    kind = "agentFailed"

    def __init__(self, agent: str, why: str) -> None:
        super().__init__(f"agent {agent!r} failed: {why}", agent=agent)


class ModelError(SidecarError):
    """A model call failed. Messages never repeat what the endpoint wrote, nor a key."""

    kind = "modelUnavailable"


class ModelAuth(ModelError):
    """The endpoint refused the key, or there is none."""

    kind = "modelAuth"


class ModelRateLimited(ModelError):
    """Too many requests; `retryAfterMs` where the endpoint said so."""

    kind = "modelRateLimited"


class ModelQuota(ModelError):
    """The account has no quota left."""

    kind = "modelQuota"


class ContextWindowExceeded(ModelError):
    """The request is longer than the model's context."""

    kind = "contextWindowExceeded"


class ContentFiltered(ModelError):
    """The service refused to process the request."""

    kind = "contentFiltered"


class ModelBadRequest(ModelError):
    """The endpoint called the request malformed."""

    kind = "modelBadRequest"


class ModelUnavailable(ModelError):
    """The endpoint cannot be reached or is failing; `httpStatus` where there was one."""

    kind = "modelUnavailable"


class ModelTimeout(ModelError):
    """The model was silent, or the call took, longer than its limit."""

    kind = "modelTimeout"


class ModelBadStream(ModelError):
    """The stream ended without an ending, or held something that is no answer."""

    kind = "modelBadStream"


class StoredFailure(SidecarError):
    """A finished run's own error, given again to a request that asks for that run."""

    def __init__(self, error: WireError) -> None:
        super().__init__(error.message)
        self._error = error

    def wire(self) -> JsonObject:
        """The error as it was stored."""
        return self._error.wire()


class StorageFailed(SidecarError):
    """Nothing was stored."""

    kind = "storageFailed"


class StorageBusy(SidecarError):
    """The store is busy with another process."""

    kind = "storageBusy"


class OwnershipLost(SidecarError):
    """Another process took the session over."""

    kind = "ownershipLost"

    def __init__(self, session_id: str) -> None:
        super().__init__(
            f"another process took session {session_id!r} over; resume it there, or here when it is closed there",
            session_id=session_id,
        )
