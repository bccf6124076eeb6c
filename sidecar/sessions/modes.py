"""A session's modes, as one of its providers has them: shown, switched, told of. What one means is the provider's."""

import copy
from typing import Final, Literal, NamedTuple, cast

from protocol.base import Json, JsonObject
from protocol.sessions import ConfigChoice, ConfigOption
from providers.api.clean_text import clean_text
from providers.api.errors import ProviderError
from providers.api.modes import HasModes, Mode, Modes
from sidecar.agents.onion import named
from sidecar.agents.plan import AgentPlan, check_state
from sidecar.agents.sink import Draft
from sidecar.errors import CapabilityRequired, InvalidParams, ProviderFailed
from sidecar.telemetry import LOGGER, log_failure

from .state_bytes import state_bytes

MODE: Final = "mode"
"""The config option, and the field of `createSession`."""


class _Owner(NamedTuple):
    source_id: str
    state_key: str
    provider: HasModes

    def corner(self, state: JsonObject) -> JsonObject:
        """Its own part of the state, as a copy."""
        own: Json = state.get(self.state_key)
        return copy.deepcopy(cast("JsonObject", own)) if isinstance(own, dict) else {}

    def modes(self, state: JsonObject) -> Modes:
        """What it says. Whether the current one is a mode at all, is not looked at.

        Raises:
            ProviderFailed: it says nothing that can be shown.
        """
        try:
            modes = self.provider.modes(self.corner(state))
        except Exception as error:
            raise self.failed("modes", error) from error
        if not _can_be_shown(modes):
            raise ProviderFailed(self.source_id, "modes", "it returned something else than Modes")
        return modes

    def failed(self, phase: str, error: Exception) -> ProviderFailed:
        """What is told of its failure, which is in the log now."""
        why = str(error) if isinstance(error, ProviderError) else named(error)
        failure = ProviderFailed(self.source_id, phase, why)
        log_failure(f"provider {self.source_id!r} in {phase}", error, failure.error_id)
        return failure


def has_modes(plan: AgentPlan) -> bool:
    """Whether a provider has any: where none has, nobody need look at the state."""
    return _owner(plan) is not None


def modes_of(plan: AgentPlan, state: JsonObject) -> Modes | None:
    """The modes of a session with this state.

    None where no provider has any; and where the one that has cannot say which of them counts, which is logged.
    """
    owner = _owner(plan)
    if owner is None:
        return None
    try:
        modes = owner.modes(state)
    except ProviderFailed as failure:
        LOGGER.warning("no modes are shown: %s", failure.message)
        return None
    if not modes.available:
        return None
    if modes.current not in [mode.name for mode in modes.available]:
        LOGGER.warning("no modes are shown: the current one of provider %r is none of its modes", owner.source_id)
        return None
    return modes


def mode_option(plan: AgentPlan, state: JsonObject) -> ConfigOption | None:
    """The setting that a host may show."""
    modes = modes_of(plan, state)
    if modes is None:
        return None
    choices = tuple(
        ConfigChoice(value=mode.name, name=mode.name, description=mode.description) for mode in modes.available
    )
    return ConfigOption(id=MODE, name="Mode", value=modes.current, choices=choices)


def with_mode(plan: AgentPlan, state: JsonObject, wanted: Json, path: str) -> JsonObject:
    """The state in which this mode counts; the one that is given stays as it is.

    Args:
        plan: Whose providers are asked.
        state: The session's.
        wanted: The mode's name; in another case too, where no mode has exactly this name.
        path: Where it stands in the request, for errors.

    Raises:
        CapabilityRequired: no provider of the session has modes.
        InvalidParams: there is no such mode; the message names those that there are. Or the provider refuses it.
        ProviderFailed: the provider cannot tell its modes, or not switch.
        ConfigInvalid: a provider's part of the state is no object.
    """
    check_state(state, plan)
    owner = _owner(plan)
    if owner is None:
        raise CapabilityRequired("modes", f"{path!r}, as no provider of the session has modes,")
    names = [mode.name for mode in owner.modes(state).available]
    found = _found(names, wanted)
    if found is None:
        raise _refused(path, f"there is no such mode; the modes are {', '.join(names) or 'none'}")
    own = owner.corner(state)
    try:
        owner.provider.switch_mode(found, own)
    except ProviderError as error:
        raise _refused(path, str(error)) from error
    except Exception as error:
        raise owner.failed("switchMode", error) from error
    try:
        state_bytes(owner.state_key, own)
    except ValueError as error:
        raise ProviderFailed(owner.source_id, "switchMode", str(error)) from None
    return {**state, owner.state_key: own}


def told(plan: AgentPlan, before: JsonObject, after: JsonObject, by: Literal["host", "model"]) -> list[Draft]:
    """The event that says that another mode counts, if one does."""
    was, now = modes_of(plan, before), modes_of(plan, after)
    if was is None or now is None or was.current == now.current:
        return []
    return [Draft("mode.changed", {"mode": now.current, "previous": was.current, "by": by})]


def _owner(plan: AgentPlan) -> _Owner | None:
    return next(
        (
            _Owner(bound.source_id, bound.state_key, bound.provider)
            for bound in plan.providers
            if isinstance(bound.provider, HasModes)
        ),
        None,
    )


def _found(names: list[str], wanted: Json) -> str | None:
    if not isinstance(wanted, str):
        return None
    alike = [name for name in names if name.casefold() == wanted.casefold()]
    return wanted if wanted in alike else next(iter(alike), None)


def _refused(path: str, why: str) -> InvalidParams:
    return InvalidParams(f"{path}: {why}", [{"path": path, "message": why}])


def _can_be_shown(modes: object) -> bool:
    """A plug-in is not checked for types, and its texts may be none that travel."""
    return (
        isinstance(modes, Modes)
        and isinstance(modes.available, list | tuple)
        and all(map(_is_mode, cast("list[object]", modes.available)))
    )


def _is_mode(mode: object) -> bool:
    return isinstance(mode, Mode) and _travels(mode.name) and (mode.description is None or _travels(mode.description))


def _travels(text: object) -> bool:
    return isinstance(text, str) and clean_text(text) == text
