"""A session's agent, made ready to run: its providers built, its instructions and options merged. Immutable."""

from dataclasses import dataclass
from typing import Final, Literal

from protocol.agents import ApprovalConfig, ProviderEntry, RunOptions
from protocol.base import JsonObject
from protocol.tools import HostTool
from providers.api.agent import CustomAgent
from providers.api.context import OfferedTool
from providers.api.provider import Surroundings
from sidecar.config.limits import Limits
from sidecar.errors import ConfigInvalid

from .binding import BoundProvider, bind, merge_entries, refuse_clashes
from .catalog import ResolvedAgent
from .host_tools import with_host_tools
from .parts import NO_PARTS, BoundMiddleware, Parts

DEFAULT_LIMITS: Final = Limits()
NO_APPROVALS: Final = ApprovalConfig()


@dataclass(frozen=True, slots=True)
class AgentPlan:
    """Everything that a run needs to know of its agent."""

    name: str
    instructions: tuple[str, ...]
    """The agent's, then the session's."""
    model: str | None
    """`None`: the configured default, looked up at the run."""
    options: RunOptions
    limits: Limits
    max_turns: int
    """Model calls in a run; then one closing call without tools."""
    after_run_order: Literal["reverse", "forward"]
    providers: tuple[BoundProvider, ...]
    tools: tuple[OfferedTool, ...] = ()
    """The agent's, then the session's."""
    middleware: tuple[BoundMiddleware, ...] = ()
    """Outermost first."""
    per_service_call_history: bool = False
    """Whether histories are fed and saved around each model call, instead of around the run."""
    detailed_tool_errors: bool = False
    """Whether a model is told what went wrong in a tool."""
    session_instructions: str | None = None
    """Which of the instructions are the session's."""
    approvals: ApprovalConfig = NO_APPROVALS
    """How consent is asked for."""
    implementation: CustomAgent | None = None
    """What answers in place of model and tools."""

    @property
    def state_keys(self) -> frozenset[str]:
        """Keys of the state bag that belong to a provider."""
        return frozenset(bound.state_key for bound in self.providers)


@dataclass(frozen=True, slots=True)
class SessionSettings:
    """What a session adds to its agent."""

    instructions: str | None = None
    context_providers: tuple[ProviderEntry, ...] = ()
    tools: tuple[HostTool, ...] = ()


def make_plan(
    agent: ResolvedAgent,
    settings: SessionSettings,
    surroundings: Surroundings,
    *,
    limits: Limits = DEFAULT_LIMITS,
    with_history: bool = True,
    parts: Parts = NO_PARTS,
) -> AgentPlan:
    """Put an agent and a session's settings together.

    Args:
        agent: The agent.
        settings: What the session adds; an entry with an agent entry's source id takes its place.
        surroundings: What the providers may use.
        limits: Of hooks whose entries name no time, and of runs, unless the agent says otherwise.
        with_history: Whether a history is added where the agent has none that loads.
        parts: What the agent's names stand for: provider types beyond the registry's, tools, middleware.

    Raises:
        ConfigInvalid: a provider type is unknown, two providers share an id or a state key, two histories load, a key
            or a value is refused.
        CapabilityRequired: a provider type, or a field, is of a later version.
    """
    spec = agent.spec
    entries = merge_entries(spec.context_providers or (), settings.context_providers)
    times = (limits.provider_timeout_ms, limits.retrieval_timeout_ms)
    bound = [bind(entry, surroundings, *times, parts.providers) for entry in entries]
    if with_history and not any(provider.loads_history for provider in bound):
        history = ProviderEntry(type="history")
        bound.insert(0, bind(history, surroundings, *times, {}, is_added=True))
    refuse_clashes(bound)
    if parts.implementation is not None and spec.per_service_call_history:
        raise ConfigInvalid(
            f"agent {agent.name!r}: its implementation makes its own model calls; leave out perServiceCallHistory",
            key="perServiceCallHistory",
        )
    options = spec.options or RunOptions()
    return AgentPlan(
        name=agent.name,
        instructions=tuple(text for text in (spec.instructions, settings.instructions) if text),
        model=spec.model,
        options=options,
        limits=limits,
        max_turns=options.max_turns or spec.max_turns or limits.max_turns,
        after_run_order=spec.after_run_order or "reverse",
        providers=tuple(bound),
        tools=with_host_tools(parts.tools, settings.tools),
        middleware=parts.middleware,
        per_service_call_history=bool(spec.per_service_call_history),
        detailed_tool_errors=parts.detailed_tool_errors,
        session_instructions=settings.instructions,
        approvals=spec.approvals or NO_APPROVALS,
        implementation=parts.implementation,
    )


def check_state(state: JsonObject, plan: AgentPlan) -> None:
    """Refuse a provider's state that is no object: it would fail at every run."""
    for key in plan.state_keys & state.keys():
        if not isinstance(state[key], dict):
            raise ConfigInvalid(f"state key {key!r} belongs to a provider and must hold an object", key=f"state.{key}")
