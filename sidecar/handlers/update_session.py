"""`updateSession`: change a session's labels, settings or state; open here or not."""

from protocol.methods import SESSION_UPDATED
from protocol.sessions import SessionUpdated, UpdateSessionParams, UpdateSessionResult
from sidecar.sessions.update import update

from .services import Call, Services


async def update_session(params: UpdateSessionParams, call: Call, services: Services) -> UpdateSessionResult:
    """One change, whole or absent; works while a run is under way."""
    stays_open = services.sessions.find_open(params.session_id) is not None
    async with services.sessions.borrowed(params.session_id) as session:
        changed = await update(session, params, is_known=stays_open)
        info = session.info().model_copy(update={"open": stays_open})
        if changed:
            services.sessions.outlet.notify(SESSION_UPDATED, SessionUpdated(session=info).wire())
        models = await services.model_names(session)
        return UpdateSessionResult(session=info, config_options=session.config_options(models))
