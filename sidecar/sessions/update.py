"""Changes that a host makes to an open session: title, labels, settings, state. One unit, whole or absent."""

import asyncio
from typing import Final

from protocol.base import Json, JsonObject
from protocol.sessions import UpdateSessionParams
from sidecar.agents.plan import check_state
from sidecar.agents.sink import Draft
from sidecar.errors import InvalidParams, RevisionConflict
from sidecar.stores.base import PutState, StoreError

from .ids import now
from .merge_patch import merge_patch
from .modes import MODE, told, with_mode
from .open_session import OpenSession
from .storage_errors import storage_error

MAX_SETTING_LENGTH: Final = 1024


async def update(session: OpenSession, params: UpdateSessionParams, *, is_known: bool = True) -> bool:
    """Apply what the params ask for.

    Args:
        session: The session.
        params: Those of `updateSession`.
        is_known: Whether the client has opened it here; else its events come in replays only.

    Returns:
        Whether anything changed.

    Raises:
        RevisionConflict: the session has another revision than the host thinks.
        InvalidParams: an option or a state is refused.
        ProviderFailed: a provider could not switch its mode.
        CapabilityRequired: no provider of the session has modes, and one is asked for.
        StorageFailed: nothing was stored, nothing has changed.
    """
    return await asyncio.shield(_update(session, params, is_known=is_known))


async def _update(session: OpenSession, params: UpdateSessionParams, *, is_known: bool) -> bool:
    async with session.changing:
        return await _changed(session, params, is_known=is_known)


async def _changed(session: OpenSession, params: UpdateSessionParams, *, is_known: bool) -> bool:
    before = session.record
    if params.if_revision is not None and params.if_revision != before.revision:
        raise RevisionConflict(
            f"the session's revision is {before.revision}; read it again, then repeat the change", before.revision
        )
    fields = {name: value for name in ("title", "metadata", "archived") if (value := getattr(params, name)) is not None}
    fields |= _settings(params.config_options or {})
    puts, switched = _state_changes(session, params)
    if not puts and all(getattr(before, name) == value for name, value in fields.items()):
        return False
    record = before.model_copy(update={**fields, "updated_at": now(), "revision": before.revision + 1})
    changed: JsonObject = {"revision": record.revision, "keys": [put.key for put in puts]}
    drafts = [Draft("state.changed", changed), *switched] if puts else []
    try:
        await session.store_now(drafts, [*puts, record.put()], send=is_known)
    except StoreError as error:
        raise storage_error(error, session.session_id) from error
    session.record = record
    session.committed(puts)
    return True


def _settings(options: JsonObject) -> dict[str, Json]:
    fields: dict[str, Json] = {}
    for option, value in options.items():
        if option == MODE:
            continue  # it stands in its provider's state
        if option not in ("model", "reasoningEffort"):
            raise _refused(option, "there is no such option; configOptions of the session names them")
        if value is not None and not (isinstance(value, str) and 0 < len(value) <= MAX_SETTING_LENGTH):
            raise _refused(option, "must be a short text, or null for the agent's own")
        fields["model" if option == "model" else "reasoning_effort"] = value
    return fields


def _refused(option: str, why: str) -> InvalidParams:
    return InvalidParams(f"config option {option!r}: {why}", [{"path": f"configOptions.{option}", "message": why}])


def _state_changes(session: OpenSession, params: UpdateSessionParams) -> tuple[list[PutState], list[Draft]]:
    """The writes, and what tells of a mode that they switch."""
    options = params.config_options or {}
    if params.state_patch is None and MODE not in options:
        return [], []
    state = session.state()
    patched = state
    if params.state_patch is not None:
        patched = merge_patch(state, params.state_patch)
        check_state(patched, session.plan)
    if MODE in options:
        patched = with_mode(session.plan, patched, options[MODE], f"configOptions.{MODE}")
    try:
        return session.replacement(patched), told(session.plan, state, patched, "host")
    except ValueError as error:
        raise InvalidParams(str(error), [{"path": "statePatch", "message": str(error)}]) from None
