"""What a delegated run is made of: the other agent, made ready, and the session that it works on. Runs nothing.

A child never has its caller's conversation. Where it shares the caller's session state, its providers keep theirs in
it under `AGENT/KEY`, beside the caller's; its histories under `AGENT/RUN/KEY`, which goes away with the run.
"""

from dataclasses import dataclass, replace

from protocol.agents import ProviderEntry
from providers.api.delegation import Errand
from providers.api.provider import Surroundings
from providers.api.session import Session
from providers.registry import REGISTRY

from .binding import source_id_of
from .catalog import ResolvedAgent
from .part_lookup import look_up
from .parts import Parts
from .plan import AgentPlan, SessionSettings, make_plan
from .workspaces import Workspace


@dataclass(frozen=True, slots=True)
class Child:
    """Another agent, ready to do one errand."""

    plan: AgentPlan
    session: Session
    conversation_id: str
    """What its histories are told: never the caller's session."""
    shares_state: bool
    private_keys: tuple[str, ...] = ()
    """Keys of the shared state that go away with the run."""

    def forget(self) -> None:
        """The run is over: what is private to it leaves the shared state."""
        for key in self.private_keys:
            self.session.state.pop(key, None)


async def make_child(workspace: Workspace, errand: Errand, caller: Session, run_id: str, cwd: str | None) -> Child:
    """Make the agent of an errand ready.

    Args:
        workspace: The configuration that the caller's session works with.
        errand: The task.
        caller: The session of the run that asks.
        run_id: The child's run.
        cwd: Where the caller's session works.

    Raises:
        SidecarError: there is no such agent, or it cannot be made.
    """
    agent = workspace.catalog.resolve(errand.agent)
    parts = await look_up(workspace, agent)
    private: tuple[str, ...] = ()
    if errand.propagate_session:
        agent, private = _apart(agent, parts, run_id)
    plan = make_plan(
        agent, SessionSettings(), Surroundings(cwd=cwd), limits=workspace.limits, with_history=False, parts=parts
    )
    conversation_id = f"{caller.session_id}/{run_id}"
    session = _shared(caller) if errand.propagate_session else Session(conversation_id)
    return Child(plan, session, conversation_id, errand.propagate_session, private)


def _shared(caller: Session) -> Session:
    """The caller's state, without the conversation that a model's service keeps for it."""
    session = Session(caller.session_id, state=caller.state)
    session.lock = caller.lock
    return session


def _apart(agent: ResolvedAgent, parts: Parts, run_id: str) -> tuple[ResolvedAgent, tuple[str, ...]]:
    """The agent, with its providers' state beside the caller's; and the keys of its histories."""
    entries: list[ProviderEntry] = []
    private: list[str] = []
    for entry in agent.spec.context_providers or ():
        kind = parts.providers.get(entry.type) or REGISTRY.get(entry.type)
        key = entry.state_key or source_id_of(entry)
        if kind is not None and kind.is_history:
            own = f"{agent.name}/{run_id}/{key}"
            private.append(own)
        else:
            own = f"{agent.name}/{key}"
        entries.append(entry.model_copy(update={"state_key": own}))
    spec = agent.spec.model_copy(update={"context_providers": tuple(entries)})
    return replace(agent, spec=spec), tuple(private)
