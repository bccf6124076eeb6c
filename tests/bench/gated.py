"""A session whose host carries out gated tools, and counts how often each ran: for tests of approvals."""

from collections import Counter
from typing import Any

from tests.bench.fake_model import FakeModel
from tests.bench.host import FakeHost, HostSession
from tests.bench.wire import Json

APPROVALS = {"initializationOptions": {"sidecar": {"protocolVersions": [1], "features": {"approvals": {}}}}}
"""`initialize` of a host that can be asked for consent."""
SILENT: Json = {}
"""Of one that cannot."""


def tool(name: str, *, gated: bool) -> Json:
    """A tool of one free argument object."""
    mode = "always_require" if gated else "never_require"
    schema = {"type": "object", "properties": {"a": {}}}
    return {"name": name, "description": f"Do {name}.", "inputSchema": schema, "approvalMode": mode}


TOOLS = [tool("delete", gated=True), tool("send", gated=True), tool("look", gated=False)]


def select(option: str, message: str | None = None) -> Json:
    """What a person answers."""
    outcome = {"outcome": "selected", "optionId": option}
    return outcome if message is None else {**outcome, "message": message}


class Gated:
    """One host with such tools, over as many sidecars as it takes."""

    def __init__(self, start_host: Any, model: FakeModel, store: str) -> None:
        self._start = start_host
        self._model = model
        self._store = store
        self.ran: Counter[str] = Counter()
        """How often each call ran: `name{arguments}`."""

    async def start(self, initialize: Json = APPROVALS, **options: Any) -> FakeHost:
        """A sidecar."""
        env = {**self._model.environment, **options.pop("env", {})}
        host: FakeHost = await self._start(store=self._store, initialize=initialize, env=env, **options)
        host.serves["host/callTool"] = self._call
        return host

    async def session(self, initialize: Json = APPROVALS, **params: Any) -> HostSession:
        """A sidecar, and a session of it."""
        host = await self.start(initialize)
        return await host.create_session(**({"sessionId": "s", "tools": TOOLS} | params))

    async def again(self, session: HostSession, initialize: Json = APPROVALS, **options: Any) -> HostSession:
        """The session, resumed in a new sidecar after the old one was killed."""
        session.host.kill()
        await session.host.wait()
        host = await self.start(initialize, **options)
        return await host.resume_session(session.id, tools=TOOLS)

    def _call(self, params: Json) -> Json:
        self.ran[f"{params['name']}{params['arguments']}"] += 1
        return {"content": f"{params['name']} done"}


async def asked(session: HostSession, count: int = 1) -> list[Json]:
    """The approvals that were asked for, once there are so many."""
    requests = session.host
    return await requests.until(
        lambda: found if len(found := requests.asked("host/requestApproval")) >= count else None
    )
