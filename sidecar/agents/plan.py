"""A session's agent, made ready to run: its providers built, its instructions and options merged. Immutable."""

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from pydantic import ValidationError

from protocol.agents import ProviderEntry, RunOptions
from protocol.base import JsonObject
from providers.api.provider import ContextProvider, HistoryProvider, ProviderConfig, Surroundings
from providers.registry import NOT_YET, REGISTRY, ProviderType
from sidecar.config.limits import Limits
from sidecar.errors import CapabilityRequired, ConfigInvalid, SidecarError

from .catalog import ResolvedAgent

DEFAULT_LIMITS: Final = Limits()
_NO_PLUGINS: Final[Mapping[str, ProviderType]] = {}


@dataclass(frozen=True, slots=True)
class BoundProvider:
    """A provider in its place in a session's agent."""

    type: str
    source_id: str
    state_key: str
    provider: ContextProvider
    on_error: Literal["fail", "warn"]
    timeout_ms: int
    independent: bool
    position: Literal["before_input", "after_input"]


@dataclass(frozen=True, slots=True)
class AgentPlan:
    """Everything that a run needs to know of its agent."""

    name: str
    instructions: tuple[str, ...]
    """The agent's, then the session's."""
    model: str | None
    """`None`: the configured default, looked up at the run."""
    options: RunOptions
    max_turns: int
    """Model calls in a run; then one closing call without tools."""
    max_tool_calls: int
    """Calls of one model answer that are looked at."""
    truncated_call_rounds: int
    """Model answers with truncated calls that a run bears."""
    after_run_order: Literal["reverse", "forward"]
    providers: tuple[BoundProvider, ...]

    @property
    def state_keys(self) -> frozenset[str]:
        """Keys of the state bag that belong to a provider."""
        return frozenset(bound.state_key for bound in self.providers)


@dataclass(frozen=True, slots=True)
class SessionSettings:
    """What a session adds to its agent."""

    instructions: str | None = None
    context_providers: tuple[ProviderEntry, ...] = ()


def make_plan(
    agent: ResolvedAgent,
    settings: SessionSettings,
    surroundings: Surroundings,
    *,
    limits: Limits = DEFAULT_LIMITS,
    with_history: bool = True,
    plugins: Mapping[str, ProviderType] = _NO_PLUGINS,
) -> AgentPlan:
    """Put an agent and a session's settings together.

    Args:
        agent: The agent.
        settings: What the session adds; an entry with an agent entry's source id takes its place.
        surroundings: What the providers may use.
        limits: Of hooks whose entries name no time, and of runs, unless the agent says otherwise.
        with_history: Whether a history is added where the agent has none that loads.
        plugins: Provider types beyond those of the registry.

    Raises:
        ConfigInvalid: a provider type is unknown, two providers share an id or a state key, two histories load, a key
            or a value is refused.
        CapabilityRequired: a provider type, or a field, is of a later version.
    """
    spec = agent.spec
    entries = merge_entries(spec.context_providers or (), settings.context_providers)
    bound = [_bind(entry, surroundings, limits.provider_timeout_ms, plugins) for entry in entries]
    added: BoundProvider | None = None
    if with_history and not any(_loads(provider) for provider in bound):
        added = _bind(ProviderEntry(type="history"), surroundings, limits.provider_timeout_ms)
        bound.insert(0, added)
    _refuse_clashes(bound, added)
    options = spec.options or RunOptions()
    return AgentPlan(
        name=agent.name,
        instructions=tuple(text for text in (spec.instructions, settings.instructions) if text),
        model=spec.model,
        options=options,
        max_turns=options.max_turns or spec.max_turns or limits.max_turns,
        max_tool_calls=limits.max_tool_calls,
        truncated_call_rounds=limits.truncated_call_rounds,
        after_run_order=spec.after_run_order or "reverse",
        providers=tuple(bound),
    )


def merge_entries(agents: Sequence[ProviderEntry], sessions: Sequence[ProviderEntry]) -> list[ProviderEntry]:
    """The agent's entries, then the session's; one with the same source id takes the agent's place."""
    merged = list(agents)
    places = {source_id_of(entry): index for index, entry in enumerate(merged)}
    for entry in sessions:
        index = places.pop(source_id_of(entry), None)  # a second one of that id is no replacement, but a clash
        if index is None:
            merged.append(entry)
        else:
            merged[index] = entry
    return merged


def source_id_of(entry: ProviderEntry) -> str:
    """What an entry is called: its own id, or its type's default."""
    kind = REGISTRY.get(entry.type)
    return entry.source_id or (kind.default_source_id if kind else None) or entry.type


def _bind(
    entry: ProviderEntry,
    surroundings: Surroundings,
    hook_timeout_ms: int,
    plugins: Mapping[str, ProviderType] = _NO_PLUGINS,
) -> BoundProvider:
    kind = plugins.get(entry.type) or _type_of(entry)
    if entry.independent:
        raise CapabilityRequired("independentProviders", f"provider {source_id_of(entry)!r} with independent")
    source_id = source_id_of(entry)
    provider = _made(entry, kind, source_id, surroundings)
    return BoundProvider(
        type=entry.type,
        source_id=source_id,
        state_key=entry.state_key or source_id,
        provider=provider,
        on_error=entry.on_error or kind.factory.on_error,
        timeout_ms=entry.timeout_ms or hook_timeout_ms,
        independent=False,
        position=entry.position or kind.factory.position,
    )


def _made(entry: ProviderEntry, kind: ProviderType, source_id: str, surroundings: Surroundings) -> ContextProvider:
    try:
        return kind.factory(source_id, _config(entry, kind, source_id), surroundings)
    except SidecarError:
        raise
    except Exception as error:
        if kind.plugin is None:
            raise
        raise ConfigInvalid(
            f"provider {source_id!r}: the plug-in {kind.plugin!r} cannot be made: {type(error).__name__}",
            key="contextProviders.type",
        ) from error


def _type_of(entry: ProviderEntry) -> ProviderType:
    kind = REGISTRY.get(entry.type)
    if kind is not None:
        return kind
    if entry.type in NOT_YET:
        raise CapabilityRequired(f"providers.{entry.type}", f"provider type {entry.type!r}")
    near = difflib.get_close_matches(entry.type, REGISTRY, n=1)
    hint = f"did you mean {near[0]!r}?" if near else f"the types are {', '.join(sorted(REGISTRY))}"
    raise ConfigInvalid(
        f"provider {source_id_of(entry)!r}: there is no provider type {entry.type!r}; {hint}",
        key="contextProviders.type",
    )


def _config(entry: ProviderEntry, kind: ProviderType, source_id: str) -> ProviderConfig:
    model = kind.factory.config_type
    try:
        return model.model_validate(entry.config or {})
    except ValidationError as error:
        raise invalid_config(error, f"provider {source_id!r}", _keys(model), prefix="config") from None


def _keys(model: type[ProviderConfig]) -> list[str]:
    return [field.alias or name for name, field in model.model_fields.items()]


def invalid_config(error: ValidationError, what: str, known: Sequence[str], *, prefix: str = "") -> ConfigInvalid:
    """The first fault, an unknown key before all others, as an error that names the key and the nearest valid one."""
    faults = error.errors(include_url=False, include_input=False)
    fault = next((fault for fault in faults if fault["type"] == "extra_forbidden"), faults[0])
    key = ".".join(str(part) for part in (prefix, *fault["loc"]) if part != "")
    hint = ""
    if fault["type"] == "extra_forbidden":
        near = difflib.get_close_matches(str(fault["loc"][-1]), known, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else f"; valid keys: {', '.join(known) or 'none'}"
    return ConfigInvalid(f"{what}: {key}: {fault['msg'].removeprefix('Value error, ')}{hint}", key=key)


def _loads(bound: BoundProvider) -> bool:
    return isinstance(bound.provider, HistoryProvider) and bound.provider.load_messages


def _refuse_clashes(providers: Sequence[BoundProvider], added: BoundProvider | None) -> None:
    """`added`: the history that nobody asked for."""
    by_id: dict[str, BoundProvider] = {}
    by_state: dict[str, BoundProvider] = {}
    for bound in providers:
        other = by_id.setdefault(bound.source_id, bound)
        if other is not bound:
            why = "" if other is not added else " (the history is added by itself where no other one loads)"
            raise ConfigInvalid(
                f"two providers have the source id {bound.source_id!r}: types {other.type!r} and {bound.type!r}{why};"
                " give one of them another sourceId",
                key="sourceId",
            )
        other = by_state.setdefault(bound.state_key, bound)
        if other is not bound:
            raise ConfigInvalid(
                f"providers {other.source_id!r} and {bound.source_id!r} share the state key {bound.state_key!r}",
                key="stateKey",
            )
    loaders = [bound.source_id for bound in providers if _loads(bound)]
    if len(loaders) > 1:
        raise ConfigInvalid(
            f"two history providers load messages: {', '.join(map(repr, loaders))}; the model would see a turn twice",
            key="contextProviders",
        )


def check_state(state: JsonObject, plan: AgentPlan) -> None:
    """Refuse a provider's state that is no object: it would fail at every run."""
    for key in plan.state_keys & state.keys():
        if not isinstance(state[key], dict):
            raise ConfigInvalid(f"state key {key!r} belongs to a provider and must hold an object", key=f"state.{key}")
