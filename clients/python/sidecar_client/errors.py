"""What can go wrong for a client: the sidecar answers with an error, it is gone, or it is none.

SidecarClientError
├── RpcError              the sidecar answered a request with an error
├── SidecarDied           the process ended, or closed its output, while something was expected of it
└── SidecarIncompatible   what was started is no sidecar, or of a version that this client does not speak
"""

from typing import Any, Final

METHOD_NOT_FOUND: Final = -32601
INVALID_PARAMS: Final = -32602
INTERNAL_ERROR: Final = -32603
REQUEST_CANCELLED: Final = -32800
SERVER_CANCELLED: Final = -32802


class SidecarClientError(Exception):
    """The base of this package's exceptions."""


class RpcError(SidecarClientError):
    """An error answer. A handler of a reverse request may raise one, to answer with it.

    Attributes:
        code: The JSON-RPC error code.
        message: What happened and what to do about it.
        data: The error's `data` object; empty if there was none.
    """

    def __init__(self, code: int, message: str, data: dict[str, Any] | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.data: dict[str, Any] = data or {}

    @property
    def kind(self) -> str:
        """The error's kind, e.g. `sessionBusy`; empty if the answer names none."""
        return str(self.data.get("kind", ""))

    @property
    def retryable(self) -> bool:
        """Whether the same request may succeed later."""
        return self.data.get("retryable") is True


class SidecarDied(SidecarClientError):
    """The sidecar is not there any more, or could not be started.

    Attributes:
        returncode: The exit code, negative for a signal; None if it is not known.
        stderr: The last lines that the process wrote to its stderr.
    """

    def __init__(self, what: str, returncode: int | None = None, stderr: str = "") -> None:
        super().__init__(f"{what}\n{stderr}" if stderr else what)
        self.returncode = returncode
        self.stderr = stderr


class SidecarIncompatible(SidecarClientError):
    """What was started is no sidecar, or one that this client cannot work with; the message says what to do."""
