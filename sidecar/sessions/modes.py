"""A session's modes, as one of its providers has them: shown, switched, told of. What one means is the provider's."""

import copy
from typing import Final, Literal, NamedTuple, cast

from protocol.base import Json, JsonObject
from protocol.sessions import ConfigChoice, ConfigOption
from providers.api.modes import HasModes, Modes
from sidecar.agents.plan import AgentPlan
from sidecar.agents.sink import Draft
from sidecar.errors import CapabilityRequired, InvalidParams

MODE: Final = "mode"
"""The config option, and the field of `createSession`."""


class _Owner(NamedTuple):
    state_key: str
    provider: HasModes

    def corner(self, state: JsonObject) -> JsonObject:
        """Its own part of the state."""
        own: Json = state.get(self.state_key)
        return cast("JsonObject", own) if isinstance(own, dict) else {}


def modes_of(plan: AgentPlan, state: JsonObject) -> Modes | None:
    """The modes of a session with this state; None where no provider has any."""
    owner = _owner(plan)
    return None if owner is None else owner.provider.modes(owner.corner(state))


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
        wanted: The mode's name, in whatever case.
        path: Where it stands in the request, for errors.

    Raises:
        CapabilityRequired: no provider of the session has modes.
        InvalidParams: there is no such mode; the message names those that there are.
    """
    owner = _owner(plan)
    if owner is None:
        raise CapabilityRequired("modes", f"{path!r}, as no provider of the session has modes,")
    own = copy.deepcopy(owner.corner(state))
    names = [mode.name for mode in owner.provider.modes(own).available]
    found = next((name for name in names if isinstance(wanted, str) and name.casefold() == wanted.casefold()), None)
    if found is None:
        message = f"there is no such mode; the modes are {', '.join(names)}"
        raise InvalidParams(f"{path}: {message}", [{"path": path, "message": message}])
    owner.provider.switch_mode(found, own)
    return {**state, owner.state_key: own}


def told(plan: AgentPlan, before: JsonObject, after: JsonObject, by: Literal["host", "model"]) -> list[Draft]:
    """The event that says that another mode counts, if one does."""
    was, now = modes_of(plan, before), modes_of(plan, after)
    if was is None or now is None or was.current == now.current:
        return []
    return [Draft("mode.changed", {"mode": now.current, "previous": was.current, "by": by})]


def _owner(plan: AgentPlan) -> _Owner | None:
    return next(
        (_Owner(bound.state_key, bound.provider) for bound in plan.providers if isinstance(bound.provider, HasModes)),
        None,
    )
