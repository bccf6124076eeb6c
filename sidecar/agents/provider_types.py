"""The provider types that a session names beyond the registry: plug-ins, imported off the event loop, never for a host.

What comes over the wire may name what is installed, but never a Python import path.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

from protocol.agents import ProviderEntry
from providers.import_thread import IMPORT_S, in_thread
from providers.plugins import PluginError, imported, installed, is_import_path, load_installed
from providers.registry import NOT_YET, REGISTRY, ProviderType
from sidecar.errors import ConfigInvalid, new_error_id
from sidecar.telemetry import log_failure

from .catalog import ResolvedAgent


async def provider_types(
    agent: ResolvedAgent, sessions: Sequence[ProviderEntry], plugins: Sequence[Path], file: str | None
) -> Mapping[str, ProviderType]:
    """What the entries of an agent and a session name that the registry does not hold, as far as it is found.

    Args:
        agent: The agent.
        sessions: The session's own entries; they came over the wire.
        plugins: Where the plug-ins of the agent's configuration are.
        file: The file that names the agent's providers, for messages.

    Raises:
        ConfigInvalid: a plug-in cannot be used, or the wire names an import path.
    """
    configured = () if agent.is_inline else agent.spec.context_providers or ()
    from_wire = (*((agent.spec.context_providers or ()) if agent.is_inline else ()), *sessions)
    for entry in from_wire:
        _refuse_import_path(entry)
    found: dict[str, ProviderType] = {}
    for name in _unknown((*configured, *from_wire)):
        work = partial(imported, name, plugins) if is_import_path(name) else partial(_installed, name)
        try:
            kind = await in_thread(work)
        except (PluginError, TimeoutError) as error:
            why = str(error) or f"{name!r} is still being imported after {IMPORT_S:.0f} seconds"
            refusal = ConfigInvalid(f"agent {agent.name!r}: provider type {why}", file=file, key=_key(agent))
            log_failure(f"plug-in {name}", error.__cause__ or error, refusal.error_id)
            raise refusal from error
        if kind is not None:
            found[name] = kind
    return found


async def installed_types() -> Mapping[str, ProviderType]:
    """Every provider type that installed packages add; one that is broken is left out, and told in the log."""
    return {name: kind for name, kind in (await in_thread(_all_installed)).items() if kind is not None}


def _all_installed() -> dict[str, ProviderType | None]:
    return {name: _installed_or_none(name) for name in installed() if name not in REGISTRY}


def _installed_or_none(name: str) -> ProviderType | None:
    try:
        kind = _installed(name)
        if kind is not None:
            kind.factory.config_type.model_json_schema()  # a list of types must not fail for one of them
    except Exception as error:
        log_failure(f"plug-in {name}", error.__cause__ or error, new_error_id())
        return None
    return kind


def _installed(name: str) -> ProviderType | None:
    point = installed().get(name)
    return load_installed(point) if point is not None else None


def _unknown(entries: Sequence[ProviderEntry]) -> Iterator[str]:
    names = dict.fromkeys(entry.type for entry in entries)
    return (name for name in names if name not in REGISTRY and name not in NOT_YET)


def _refuse_import_path(entry: ProviderEntry) -> None:
    if is_import_path(entry.type):
        raise ConfigInvalid(
            f"provider type {entry.type!r}: only a configuration file of the user's own, or of a trusted folder, may"
            " name an import path; name an agent that has this provider",
            key="contextProviders.type",
        )


def _key(agent: ResolvedAgent) -> str:
    return "contextProviders.type" if agent.is_inline else f"agents.{agent.name}.context_providers"
