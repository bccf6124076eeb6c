"""A session whose host carries out gated tools, and counts how often each ran: for tests of approvals."""

from collections import Counter
from typing import Any, Literal

from tests.bench.fake_model import F, FakeModel, T
from tests.bench.host import FakeHost, HostRun, HostSession
from tests.bench.wanted_calls import wants
from tests.bench.wire import Json

APPROVALS: Json = {"initializationOptions": {"sidecar": {"protocolVersions": [1], "features": {"approvals": {}}}}}
"""`initialize` of a host that can be asked for consent."""
SILENT: Json = {}
"""Of one that cannot."""

Manner = Literal["live", "parked"]
"""Whether a question is asked at once, or the run ends with it."""
LEFT_OPEN: Json = {"approvals": {"mode": "inputRequired"}}
"""An agent whose runs end with their questions."""


def tool(name: str, *, gated: bool) -> Json:
    """A tool of one free argument object."""
    mode = "always_require" if gated else "never_require"
    schema: Json = {"type": "object", "properties": {"a": {}}}
    return {"name": name, "description": f"Do {name}.", "inputSchema": schema, "approvalMode": mode}


TOOLS = [tool("delete", gated=True), tool("send", gated=True), tool("look", gated=False)]


def select(option: str, message: str | None = None) -> Json:
    """What a person answers."""
    outcome = {"outcome": "selected", "optionId": option}
    return outcome if message is None else {**outcome, "message": message}


ALLOW = select("allowOnce")
REJECT = select("rejectOnce")


def response(request_id: str, *, approved: Any, **fields: Any) -> list[Json]:
    """The same as a run's input."""
    block = {"type": "approvalResponse", "requestId": request_id, "approved": approved, **fields}
    return [{"role": "user", "content": [block]}]


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
        host.serves["host/callTool"] = self.call
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

    def call(self, params: Json) -> Json:
        """Carry a call out: `host/callTool`."""
        self.ran[f"{params['name']}{params['arguments']}"] += 1
        return {"content": f"{params['name']} done"}


class Question:
    """One question about one call, asked at once or left open by a run that has ended."""

    def __init__(self, model: FakeModel, run: HostRun, request_id: str, asked: Json | None) -> None:
        self.session = run.session
        self.run = run
        self.id = request_id
        self._model = model
        self._asked = asked
        """The reverse request; `None`: it was left open."""

    @property
    def outcomes(self) -> list[str]:
        """How it was resolved, by the events so far."""
        resolved = (event["data"] for event in self.session.events("request.resolved"))
        return [data["outcome"] for data in resolved if data["requestId"] == self.id]

    async def is_pending(self) -> bool:
        """Whether it can still be answered."""
        pending = (await self.session.state())["pendingRequests"]
        return self.id in [request["requestId"] for request in pending]

    def reply(self, result: Any) -> None:
        """Answer the reverse request, if there is one."""
        if self._asked is not None:
            self.session.host.reply(self._asked, result)

    async def resolve(self, result: Any, **params: Any) -> Json:
        """`resolveRequest`."""
        params = {"sessionId": self.session.id, "requestId": self.id, "result": result, **params}
        return await self.session.host.request("resolveRequest", params)

    async def settle(self, result: Any, **params: Any) -> None:
        """Answer it as it is meant to be answered, and wait for the end of what follows from that."""
        if self._asked is not None:
            self.reply(result)
            await self.run.result()
            return
        resolved = await self.resolve(result, **params)
        await self.session.host.until(lambda: ended(self.session, resolved["runId"]))


async def question(
    model: FakeModel, session: HostSession, *calls: tuple[str, Json], manner: Manner = "live", **params: Any
) -> Question:
    """A run that wants one gated call, up to its question. What the model says in the end is scripted already."""
    wants(model, *(calls or (("delete", {"a": 1}),)))
    before = len(session.host.asked("host/requestApproval"))
    run = session.start("go", **params)
    if manner == "parked":
        (pending,) = (await run.result())["pendingRequests"]
        return Question(model, run, pending["requestId"], None)
    (request,) = (await asked(session, before + 1))[before:]
    return Question(model, run, request["params"]["requestId"], request)


def says(model: FakeModel, text: str) -> None:
    """The model's next answer is this text."""
    model.says(T(text), F())


def ended(session: HostSession, run_id: str) -> list[Json]:
    """The end of a run, once it is told."""
    return [event for event in session.events("run.completed") if event["runId"] == run_id]


async def asked(session: HostSession, count: int = 1) -> list[Json]:
    """The approvals that were asked for, once there are so many."""
    requests = session.host
    return await requests.until(
        lambda: found if len(found := requests.asked("host/requestApproval")) >= count else None
    )
