"""The base class of providers: hooks around every run. `simple.py` has one with less to write."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

from protocol.base import JsonObject, StrictModel

from .context import SessionContext
from .editor import Editor
from .memory import Memory
from .ports import AgentView, HistoryStore
from .session import Session, State

if TYPE_CHECKING:
    from .callbacks import Provide, Store
    from .filters import Sources


Phase = Literal["beforeRun", "afterRun"]


class ProviderConfig(StrictModel):
    """The base of a provider's config model. Unknown keys are refused."""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What a provider may use of the process that hosts it."""

    cwd: str | None = None
    """The session's working directory."""
    history: HistoryStore | None = None
    """The transcript store; `None` in a run without a session."""
    memory: Memory | None = None
    """Long-term memory; `None` where there is none."""
    editor: Editor | None = None
    """The editor that the sidecar is attached to; `None` where there is none."""
    state_key: str | None = None
    """Where the provider's own state stands in the session's; `None`: under its source id."""


class ContextProvider:
    """Takes part in every run: adds context before the model is called, learns from it afterwards.

    One instance serves one open session, but may be made anew at any time: what must last goes into `state`, which is
    stored with the run. `state` is the provider's own object in the session's state bag.

    A provider that holds something open (a connection, a process) may be an async context manager besides: a class
    with `__aenter__` and `__aexit__`. The sidecar enters it before its first run, and leaves it when its session
    closes or the process ends; `__aexit__` is then given no error. One that cannot be entered fails that run. Never
    enter in `__init__`: an agent that is only looked at makes its providers, too.
    """

    config_type: ClassVar[type[ProviderConfig]] = ProviderConfig
    on_error: ClassVar[Literal["fail", "warn"]] = "fail"
    """What a failure in `before_run` does to the run, unless the entry says otherwise."""
    position: ClassVar[Literal["before_input", "after_input"]] = "before_input"
    """Where its messages stand, unless the entry says otherwise."""
    retrieves: ClassVar[bool] = False
    """Whether its hooks search: then `limits.retrieval_timeout_ms` is their time, unless the entry says otherwise."""

    def __init__(
        self, source_id: str, config: ProviderConfig | None = None, surroundings: Surroundings | None = None
    ) -> None:
        self.source_id = source_id
        self.config = config if config is not None else self.config_type()
        self.surroundings = surroundings or Surroundings()
        self.settled: JsonObject | None = None
        """What `settle` has said of this session; `None` before it was asked."""

    @property
    def state_key(self) -> str:
        """Where its own state stands in the session's."""
        return self.surroundings.state_key or self.source_id

    @staticmethod
    def of(
        source_id: str,
        *,
        provide: "Provide | None" = None,
        store: "Store | None" = None,
        provide_sources: "Sources | None" = None,
        store_request_sources: "Sources | None" = None,
        store_response_sources: "Sources | None" = None,
    ) -> "ContextProvider":
        """A provider made of functions; see `SimpleProvider` for what they get and what the sources mean.

        A configuration may name what this returns: `type = "module:name"`. Each session then gets one of its own.

        Args:
            source_id: What it is called.
            provide: `(request)`; returns what to add. It may be async; a sync one must not block.
            store: `(exchange)`; learns from a run that succeeded. As above.
            provide_sources: Whose messages are in the request.
            store_request_sources: Whose messages are in the exchange's request.
            store_response_sources: Whose messages are in the exchange's response.

        Raises:
            TypeError: one of them is no function of one argument.
            ValueError: there is neither.
        """
        from .callbacks import CallbackProvider

        return CallbackProvider(
            source_id,
            provide=provide,
            store=store,
            provide_sources=provide_sources,
            store_request_sources=store_request_sources,
            store_response_sources=store_response_sources,
        )

    def settle(self, session: Session, agent: str, earlier: JsonObject | None = None) -> JsonObject:
        """What this provider decides once, from a session's beginning: whose memory it uses, for example.

        It is kept in the session's record, where no patch, tool or middleware can change it.

        Args:
            session: As it begins; nothing may be written to it.
            agent: The agent's name.
            earlier: What was settled for the session that this one is a fork of.

        Raises:
            ProviderError: the session lacks something: it is not made.
        """
        return {}

    @property
    def detail(self) -> str | None:
        """What a host should know of how well it can work here; `None`: all is well."""
        return None

    def takes_part(self, phase: Phase) -> bool:
        """Whether it has such a hook. One that has not is not called, and costs nothing."""
        if phase == "beforeRun":
            return type(self).before_run is not ContextProvider.before_run
        return type(self).after_run is not ContextProvider.after_run

    async def before_run(self, *, agent: AgentView, session: Session, context: SessionContext, state: State) -> None:
        """Add messages and instructions before the model is called."""

    async def after_run(self, *, agent: AgentView, session: Session, context: SessionContext, state: State) -> None:
        """Learn from a run that succeeded; `context.response` is its answer."""

    async def on_failure(
        self,
        *,
        agent: AgentView,
        session: Session,
        context: SessionContext,
        state: State,
        error: Exception,
        partial_text: str,
    ) -> None:
        """The run failed or was cut after this provider had begun. What is written to `state` may be dropped."""
