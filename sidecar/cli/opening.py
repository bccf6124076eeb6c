"""Opens the session that `--session` names, for the commands that run in one. Runs nothing itself."""

from sidecar_client import RpcError, Session, SidecarClient
from sidecar_client.types import CreateSessionParams

from .command import CommandError


async def open_session(client: SidecarClient, session_id: str, new: CreateSessionParams) -> Session:
    """Go on with the session, or begin it as `new` says.

    Raises:
        CommandError: It is there already, with another agent than `new` names.
        RpcError: It cannot be opened.
    """
    try:
        session = await client.resume_session(session_id)
    except RpcError as error:
        if error.kind != "sessionNotFound":
            raise
        return await client.create_session(**{**new, "sessionId": session_id})
    its_agent = session.info["agent"]
    if new.get("agent", its_agent) != its_agent:
        raise CommandError(f"session {session_id!r} has the agent {its_agent!r}; leave --agent out", code=2)
    return session
