"""One tool call, as the tool and function middleware see it. Runs nothing."""

from collections.abc import Callable, Sequence
from threading import Lock
from typing import TYPE_CHECKING, Any, Final

from protocol.base import JsonObject

from .errors import DuplicateToolError
from .run_context import RunContext
from .session import Session

if TYPE_CHECKING:
    from .tool import FunctionTool


class _Unset:
    """No result yet; `None` is a result."""

    def __repr__(self) -> str:
        return "UNSET"

    def __bool__(self) -> bool:
        return False


UNSET: Final = _Unset()


class ToolChanges:
    """The tools of a run while it works: what is added or removed counts from the next model call on."""

    def __init__(self, tools: Sequence["FunctionTool"]) -> None:
        self.live: list[FunctionTool] = list(tools)
        self._lock = Lock()  # tools add and remove from their threads

    def add(self, tools: "Sequence[FunctionTool]") -> None:
        """Add all of them or none.

        Raises:
            DuplicateToolError: another tool of that name is there.
        """
        with self._lock:
            known = {tool.name: tool for tool in self.live}
            for tool in tools:
                if known.setdefault(tool.name, tool) is not tool:
                    raise DuplicateToolError(tool.name)
            self.live[:] = known.values()

    def remove(self, names: Sequence[str]) -> None:
        """Remove by name; unknown names are passed over."""
        gone = set(names)
        with self._lock:
            self.live[:] = [tool for tool in self.live if tool.name not in gone]


class FunctionInvocationContext:
    """One tool call. A tool asks for it by annotating a parameter with this class."""

    def __init__(
        self,
        function: "FunctionTool",
        arguments: JsonObject,
        *,
        call_id: str,
        session: Session | None,
        kwargs: JsonObject,
        run: RunContext,
        changes: ToolChanges,
        progress: Callable[[str], None],
        approved: bool = False,
        seal: str | None = None,
    ) -> None:
        self.function = function
        self.arguments = arguments
        """What the model gave. Middleware may change it before the call."""
        self.session = session
        """`None` in a run without a session."""
        self.kwargs = kwargs
        """This call's own copy of the run's `functionInvocationKwargs`."""
        self.run = run
        self.metadata: dict[str, Any] = {"call_id": call_id}
        """A scratch pad for this call."""
        self.result: Any = UNSET
        """What the tool returned; what middleware sets instead."""
        self.approved = approved
        """A person was asked about this very call, and has allowed it."""
        self.seal = seal
        """What the tool's preview has sealed when they were asked; `None` where there was no preview."""
        self._changes = changes
        self._progress = progress

    @property
    def call_id(self) -> str:
        """The model's id of the call."""
        return self.metadata["call_id"]

    @property
    def tools(self) -> "Sequence[FunctionTool]":
        """The tools of the run as they are now."""
        return tuple(self._changes.live)

    def add_tools(self, *tools: "FunctionTool") -> None:
        """Offer more tools from the next model call of this run on: all of them, or none.

        Raises:
            DuplicateToolError: another tool of that name is there.
        """
        self._changes.add(tools)

    def remove_tools(self, *names: str) -> None:
        """Offer these tools no more from the next model call of this run on."""
        self._changes.remove(names)

    def progress(self, text: str) -> None:
        """Tell the host how the tool gets on (`tool.delta`). May be called from a tool's thread."""
        self._progress(text)
