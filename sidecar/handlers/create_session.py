"""`createSession`: make a session, or find the one that an earlier try of the same request made."""

from collections.abc import Sequence
from typing import cast

from protocol.base import JsonObject
from protocol.sessions import CreateSessionParams, CreateSessionResult
from sidecar.crash_points import reached
from sidecar.errors import CapabilityRequired
from sidecar.sessions.manager import Opened
from sidecar.sessions.supplied import HOST_TYPE

from .going_on import keep_promises
from .payload import payload_hash
from .refusals import check_cwd
from .services import Call, Reply, Services

SUPPLIED_AGAIN = frozenset({"sessionId", "_meta", "tools", "mcpServers"})
"""Fields that are no part of the payload: a retry may supply them anew."""

_NOT_YET = {
    "mcp_servers": "mcp",
    "additional_directories": "additionalDirectories",
}


async def create_session(params: CreateSessionParams, call: Call, services: Services) -> CreateSessionResult | Reply:
    """Validate, store, open, answer; every event of the session comes after the answer."""
    for field, feature in _NOT_YET.items():
        if getattr(params, field):
            raise CapabilityRequired(feature, f"createSession with {field!r}")
    check_cwd(params.cwd)
    reached("session.create.before")
    opened = await services.sessions.create(params, payload_hash(_lasting(call.raw), SUPPLIED_AGAIN))
    reached("session.create.after")
    session = opened.session
    result = answer(opened, await services.model_names(session))
    if not session.approvals:
        return result

    async def go_on() -> None:
        call.leave_lane()
        await keep_promises(session, services)

    return Reply(result, go_on)


def _lasting(raw: JsonObject) -> JsonObject:
    """The params without the host's own providers, which are supplied again as its tools are."""
    entries: object = raw.get("contextProviders")
    if not isinstance(entries, list):
        return raw
    kept = [entry for entry in cast("list[JsonObject]", entries) if entry.get("type") != HOST_TYPE]
    if kept:
        return {**raw, "contextProviders": kept}
    return {key: value for key, value in raw.items() if key != "contextProviders"}


def answer(opened: Opened, models: Sequence[str]) -> CreateSessionResult:
    """The session as it is now, from where its events go on."""
    session = opened.session
    session.log.attached()
    return CreateSessionResult(
        session=session.info(),
        config_options=session.config_options(models),
        providers=session.provider_statuses(),
        last_seq=session.log.seq,
        warnings=tuple(opened.warnings) or None,
    )
