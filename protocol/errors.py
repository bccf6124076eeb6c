"""Every error code and kind of the contract, in one table. The exceptions that carry them live in `sidecar.errors`."""

from typing import Final, NamedTuple

from pydantic import ConfigDict

from .base import Json, WireModel


class Kind(NamedTuple):
    """One row of the contract's error table."""

    code: int
    retryable: bool = False
    """Whether the same request may succeed later without a change."""


KINDS: Final[dict[str, Kind]] = {
    "parseError": Kind(-32700),
    "invalidRequest": Kind(-32600),
    "methodNotFound": Kind(-32601),
    "invalidParams": Kind(-32602),
    "internalError": Kind(-32603),
    "notInitialized": Kind(-32002),
    "requestCancelled": Kind(-32800),
    "serverCancelled": Kind(-32802, retryable=True),
    "protocolVersionUnsupported": Kind(4000),
    "sessionNotFound": Kind(4001),
    "sessionExists": Kind(4002),
    "runNotFound": Kind(4003),
    "sessionBusy": Kind(4004, retryable=True),
    "sessionClosed": Kind(4005),
    "idempotencyConflict": Kind(4006),
    "revisionConflict": Kind(4007),
    "cursorExpired": Kind(4008),
    "sessionCorrupt": Kind(4009),
    "agentNotFound": Kind(4010),
    "modelNotFound": Kind(4011),
    "toolNotFound": Kind(4012),
    "providerNotFound": Kind(4013),
    "capabilityRequired": Kind(4014),
    "configInvalid": Kind(4015),
    "providerFailed": Kind(4020),
    "toolFailed": Kind(4021),
    "hostUnavailable": Kind(4022, retryable=True),
    "middlewareFailed": Kind(4023),
    "agentFailed": Kind(4024),
    "modelAuth": Kind(4030),
    "modelRateLimited": Kind(4031, retryable=True),
    "modelQuota": Kind(4032),
    "contextWindowExceeded": Kind(4033),
    "contentFiltered": Kind(4034),
    "modelBadRequest": Kind(4035),
    "modelUnavailable": Kind(4036, retryable=True),
    "modelTimeout": Kind(4037, retryable=True),
    "modelBadStream": Kind(4038, retryable=True),
    "overloaded": Kind(4040, retryable=True),
    "messageTooLarge": Kind(4041),
    "storageFailed": Kind(4042, retryable=True),
    "sessionLocked": Kind(4043, retryable=True),
    "storageBusy": Kind(4044, retryable=True),
    "ownershipLost": Kind(4045),
}


class ErrorData(WireModel):
    """What a program needs to know of an error. Each kind may add fields of its own."""

    model_config = ConfigDict(extra="allow")

    kind: str
    """Stable discriminator; a key of `KINDS`, or one that a later version added."""
    retryable: bool
    retry_after_ms: int | None = None
    session_id: str | None = None
    run_id: str | None = None
    error_id: str
    """Names this occurrence in the log on stderr."""
    detail: Json = None


class WireError(WireModel):
    """A JSON-RPC error object, with our `data`."""

    code: int
    message: str
    data: ErrorData
