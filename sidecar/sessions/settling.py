"""What the providers of a session decide once, when it begins, and what is kept of that in its record. Runs nothing."""

from collections.abc import Mapping

from protocol.base import JsonObject
from providers.api.errors import ProviderError
from providers.api.session import Session
from sidecar.agents.plan import AgentPlan
from sidecar.errors import ConfigInvalid


def settle(
    plan: AgentPlan, session: Session, known: Mapping[str, JsonObject], earlier: Mapping[str, JsonObject] | None = None
) -> dict[str, JsonObject]:
    """Let each provider decide, or know what it has decided.

    Args:
        plan: The session's agent.
        session: As it begins.
        known: What stands in the session's record, by source id. It counts, whatever the session has become.
        earlier: What stands in the record of the session that this one is a fork of.

    Returns:
        What is to stand in the record.

    Raises:
        ConfigInvalid: the session lacks something that a provider needs.
    """
    kept = dict(known)
    for bound in plan.providers:
        settled = known.get(bound.source_id)
        if settled is None:
            try:
                settled = bound.provider.settle(session, plan.name, (earlier or {}).get(bound.source_id))
            except ProviderError as error:
                raise ConfigInvalid(f"provider {bound.source_id!r}: {error}", key="contextProviders") from error
        bound.provider.settled = settled
        if settled:
            kept[bound.source_id] = settled
    return kept
