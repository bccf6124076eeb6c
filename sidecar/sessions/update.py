"""Changes that a host makes to an open session: title, labels, settings, state. One unit, whole or absent."""

import asyncio
from typing import Final

from protocol.base import Json, JsonObject
from protocol.sessions import UpdateSessionParams
from sidecar.agents.plan import check_state
from sidecar.agents.sink import Draft
from sidecar.errors import CapabilityRequired, InvalidParams, RevisionConflict
from sidecar.stores.base import PutState, StoreError

from .ids import now
from .merge_patch import merge_patch
from .open_session import OpenSession
from .storage_errors import storage_error

MAX_SETTING_LENGTH: Final = 1024


async def update(session: OpenSession, params: UpdateSessionParams) -> bool:
    """Apply what the params ask for.

    Returns:
        Whether anything changed.

    Raises:
        RevisionConflict: the session has another revision than the host thinks.
        InvalidParams: an option or a state is refused.
        StorageFailed: nothing was stored, nothing has changed.
    """
    async with session.changing:
        return await _update(session, params)


async def _update(session: OpenSession, params: UpdateSessionParams) -> bool:
    before = session.record
    if params.if_revision is not None and params.if_revision != before.revision:
        raise RevisionConflict(
            f"the session's revision is {before.revision}; read it again, then repeat the change", before.revision
        )
    fields = {name: value for name in ("title", "metadata", "archived") if (value := getattr(params, name)) is not None}
    fields |= _settings(params.config_options or {})
    puts = _state_changes(session, params.state_patch)
    if not puts and all(getattr(before, name) == value for name, value in fields.items()):
        return False
    record = before.model_copy(update={**fields, "updated_at": now(), "revision": before.revision + 1})
    changed: JsonObject = {"revision": record.revision, "keys": [put.key for put in puts]}
    drafts = [Draft("state.changed", changed)] if puts else []
    try:
        await asyncio.shield(session.log.append(drafts, [*puts, record.put()], keep=False))
    except StoreError as error:
        raise storage_error(error, session.session_id) from error
    session.record = record
    session.committed(puts)
    return True


def _settings(options: JsonObject) -> dict[str, Json]:
    fields: dict[str, Json] = {}
    for option, value in options.items():
        if option == "mode":
            raise CapabilityRequired("modes", "config option 'mode'")
        if option not in ("model", "reasoningEffort"):
            raise _refused(option, "there is no such option; configOptions of the session names them")
        if value is not None and not (isinstance(value, str) and 0 < len(value) <= MAX_SETTING_LENGTH):
            raise _refused(option, "must be a short text, or null for the agent's own")
        fields["model" if option == "model" else "reasoning_effort"] = value
    return fields


def _refused(option: str, why: str) -> InvalidParams:
    return InvalidParams(f"config option {option!r}: {why}", [{"path": f"configOptions.{option}", "message": why}])


def _state_changes(session: OpenSession, patch: JsonObject | None) -> list[PutState]:
    if patch is None:
        return []
    patched = merge_patch(session.state(), patch)
    check_state(patched, session.plan)
    try:
        return session.replacement(patched)
    except ValueError as error:
        raise InvalidParams(str(error), [{"path": "statePatch", "message": str(error)}]) from None
