"""Changes that a host makes to an open session: title, labels, settings, state. One unit, whole or absent."""

from protocol.base import Json, JsonObject
from protocol.sessions import UpdateSessionParams
from sidecar.agents.plan import check_state
from sidecar.agents.sink import Draft
from sidecar.errors import CapabilityRequired, InvalidParams, RevisionConflict
from sidecar.sessions.ids import now
from sidecar.sessions.merge_patch import merge_patch
from sidecar.sessions.open_session import OpenSession
from sidecar.sessions.storage_errors import storage_error
from sidecar.stores.base import Put, PutState, StoreError


async def update(session: OpenSession, params: UpdateSessionParams) -> bool:
    """Apply what the params ask for.

    Returns:
        Whether anything changed.

    Raises:
        RevisionConflict: the session has another revision than the host thinks.
        InvalidParams: an option or a state is refused.
        StorageFailed: nothing was stored, nothing has changed.
    """
    if params.if_revision is not None and params.if_revision != session.record.revision:
        raise RevisionConflict(
            f"the session's revision is {session.record.revision}; read it again, then repeat the change",
            session.record.revision,
        )
    fields = {name: value for name in ("title", "metadata", "archived") if (value := getattr(params, name)) is not None}
    fields |= _settings(params.config_options or {})
    puts = _state_changes(session, params.state_patch)
    if not puts and all(getattr(session.record, name) == value for name, value in fields.items()):
        return False
    before = session.record
    changed = {"revision": before.revision + 1, "keys": [put.key for put in puts]}
    drafts = [Draft("state.changed", changed)] if puts else []

    def writes(last_seq: int) -> list[Put]:
        record = session.record  # a run that ends now may have changed it
        session.record = record.model_copy(update={**fields, "updated_at": now(), "revision": record.revision + 1})
        return [*puts, session.record.put()]

    try:
        await session.log.append(drafts, writes, keep=False)
    except StoreError as error:
        session.record = before
        raise storage_error(error, session.session_id) from error
    session.committed(puts)
    return True


def _settings(options: JsonObject) -> dict[str, Json]:
    fields: dict[str, Json] = {}
    for option, value in options.items():
        if option == "mode":
            raise CapabilityRequired("modes", "config option 'mode'")
        if option not in ("model", "reasoningEffort"):
            raise _refused(option, "there is no such option; configOptions of the session names them")
        if value is not None and not (isinstance(value, str) and value):
            raise _refused(option, "must be a text, or null for the agent's own")
        fields["model" if option == "model" else "reasoning_effort"] = value
    return fields


def _refused(option: str, why: str) -> InvalidParams:
    return InvalidParams(f"config option {option!r}: {why}", [{"path": f"configOptions.{option}", "message": why}])


def _state_changes(session: OpenSession, patch: JsonObject | None) -> list[PutState]:
    if patch is None:
        return []
    state = session.state()
    patched = merge_patch(state, patch)
    check_state(patched, session.plan)
    try:
        return session.changes(patched, state)
    except ValueError as error:
        raise InvalidParams(str(error), [{"path": "statePatch", "message": str(error)}]) from None
