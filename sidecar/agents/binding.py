"""Puts the providers of an agent and a session in their places: merges the entries, makes each one, refuses clashes."""

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from pydantic import ValidationError

from protocol.agents import ProviderEntry
from providers.api.history import HistoryProvider
from providers.api.provider import ContextProvider, ProviderConfig, Surroundings
from providers.registry import NOT_YET, REGISTRY, ProviderType
from sidecar.errors import CapabilityRequired, ConfigInvalid, SidecarError


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
    is_added: bool = False
    """A history that nobody asked for: it is there only in runs whose conversation no service keeps."""

    @property
    def loads_history(self) -> bool:
        """Whether it feeds earlier turns to the model."""
        return isinstance(self.provider, HistoryProvider) and self.provider.load_messages


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


def bind(
    entry: ProviderEntry,
    surroundings: Surroundings,
    hook_timeout_ms: int,
    retrieval_timeout_ms: int,
    plugins: Mapping[str, ProviderType],
    *,
    is_added: bool = False,
) -> BoundProvider:
    """Make a provider and put it in its place.

    Raises:
        ConfigInvalid: its type is unknown, or its configuration is refused.
        CapabilityRequired: its type is of a later version.
    """
    kind = plugins.get(entry.type) or _type_of(entry)
    source_id = source_id_of(entry)
    provider = _made(entry, kind, source_id, surroundings)
    return BoundProvider(
        type=entry.type,
        source_id=source_id,
        state_key=entry.state_key or source_id,
        provider=provider,
        on_error=entry.on_error or kind.factory.on_error,
        timeout_ms=entry.timeout_ms or (retrieval_timeout_ms if kind.factory.retrieves else hook_timeout_ms),
        independent=bool(entry.independent),
        position=entry.position or kind.factory.position,
        is_added=is_added,
    )


def _made(entry: ProviderEntry, kind: ProviderType, source_id: str, surroundings: Surroundings) -> ContextProvider:
    try:
        own = replace(surroundings, state_key=entry.state_key or source_id)
        return kind.factory(source_id, _config(entry, kind, source_id), own)
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


def refuse_clashes(providers: Sequence[BoundProvider]) -> None:
    """Refuse two providers with one id or one state key, and two histories that load.

    Raises:
        ConfigInvalid: naming both.
    """
    by_id: dict[str, BoundProvider] = {}
    by_state: dict[str, BoundProvider] = {}
    for bound in providers:
        other = by_id.setdefault(bound.source_id, bound)
        if other is not bound:
            why = "" if not other.is_added else " (the history is added by itself where no other one loads)"
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
    loaders = [bound.source_id for bound in providers if bound.loads_history]
    if len(loaders) > 1:
        raise ConfigInvalid(
            f"two history providers load messages: {', '.join(map(repr, loaders))}; the model would see a turn twice",
            key="contextProviders",
        )
