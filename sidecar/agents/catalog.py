"""The agents that can be named, and what a name or an inline spec stands for. Builds no providers."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from protocol.agents import AgentInfo, AgentSpec, ProviderEntry
from sidecar.errors import AgentNotFound, CapabilityRequired

DEFAULT_PROVIDERS: Final = (ProviderEntry(type="history"), ProviderEntry(type="instructions"))
"""What the agent named `default` has, where its configuration does not say otherwise."""

_NOT_YET: Final = {
    "compaction": "compaction",
    "harness": "harness",
}
"""Fields of an agent that this build does not have: field → feature."""


@dataclass(frozen=True, slots=True)
class ResolvedAgent:
    """An agent and the name that events and lists show."""

    name: str
    spec: AgentSpec
    is_inline: bool = False
    """It came over the wire, not from a configuration."""


class AgentCatalog:
    """The configured agents; one named `default` is always there."""

    def __init__(self, agents: Mapping[str, AgentSpec], *, default_agent: str = "default") -> None:
        default = agents.get("default", AgentSpec())
        if default.context_providers is None:
            default = default.model_copy(update={"context_providers": DEFAULT_PROVIDERS})
        self._agents = {"default": default, **{name: spec for name, spec in agents.items() if name != "default"}}
        self._default_agent = default_agent

    def resolve(self, agent: str | AgentSpec | None) -> ResolvedAgent:
        """The agent of a name, an inline spec, or the default.

        Raises:
            AgentNotFound: no agent has that name.
            CapabilityRequired: the agent needs what this build does not have.
        """
        if isinstance(agent, AgentSpec):
            resolved = ResolvedAgent(agent.name or "inline", agent, is_inline=True)
        else:
            name = agent if agent is not None else self._default_agent
            if name not in self._agents:
                raise AgentNotFound(name, list(self._agents))
            resolved = ResolvedAgent(name, self._agents[name])
        refuse_what_is_not_there(resolved.spec)
        return resolved

    def infos(self) -> tuple[AgentInfo, ...]:
        """Rows of `listAgents`."""
        return tuple(
            AgentInfo(name=name, description=spec.description, model=spec.model) for name, spec in self._agents.items()
        )

    def models(self) -> tuple[str, ...]:
        """The models that agents name."""
        return tuple(spec.model for spec in self._agents.values() if spec.model is not None)


def refuse_what_is_not_there(spec: AgentSpec) -> None:
    """Refuse fields whose feature this build lacks: silence would be a lie."""
    for field, feature in _NOT_YET.items():
        if getattr(spec, field):
            raise CapabilityRequired(feature, f"agent field {field!r}")
