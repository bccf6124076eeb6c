"""What code inside a run may ask of its host, and how the host may fail to answer. The port: it asks nothing itself."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from protocol.base import Json, JsonObject

from .errors import ProviderError
from .tool_result import ToolResult


class HostError(ProviderError):
    """The host could not do what it was asked for. The text may hold what the host itself has said of that."""


class HostUnavailable(HostError):
    """There is no host to ask, it has gone, or it does not know how."""


class HostTimeout(HostError):
    """The host has not answered in time."""


@dataclass(frozen=True, slots=True)
class Elicited:
    """What a person has answered."""

    action: Literal["accept", "decline", "cancel"]
    """`decline`: an answer was refused. `cancel`: nothing was chosen."""
    content: Json = None
    """With `accept`, what was filled in: it follows the schema that it was asked for by."""


@dataclass(frozen=True, slots=True)
class HostToolCall:
    """A call of a tool that the host carries out."""

    call_id: str
    name: str
    arguments: JsonObject
    kwargs: JsonObject
    """The run's `functionInvocationKwargs`; stored nowhere."""
    timeout_ms: int | None = None
    progress: Callable[[str], None] | None = None
    """Takes what the host tells while it works."""


class Host(Protocol):
    """The host, as one run can ask it. What is asked is told by events, and ends with the run."""

    async def call_tool(self, call: HostToolCall) -> ToolResult:
        """Have a tool carried out.

        Raises:
            HostError: it could not be.
        """
        ...

    async def hook(self, phase: Literal["beforeRun", "afterRun"], shown: JsonObject, params: JsonObject) -> JsonObject:
        """Have a provider of the host's take part.

        Args:
            phase: When.
            shown: What events and lists say of the request.
            params: What the host gets besides.

        Raises:
            HostError: it could not.
        """
        ...

    async def editor_context(self, kinds: Sequence[str]) -> JsonObject:
        """What the user has before them in the editor: `selection`, `visibleDocuments`, `diagnostics`.

        A host that does not offer it, or fails, says nothing.
        """
        ...

    async def elicit(self, message: str, *, schema: JsonObject | None = None, url: str | None = None) -> Elicited:
        """Ask a person: to fill in a form of this schema, or to visit an address.

        A host that cannot ask declines; so does one that answers what the schema does not allow.

        Raises:
            ValueError: neither a schema nor an address is given, or both.
        """
        ...
