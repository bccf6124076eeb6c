"""What a test holds of a fake host: a request under way, a session, a run. `host` makes them."""

import asyncio
import secrets
from typing import TYPE_CHECKING, Any

from tests.bench.wire import Json

if TYPE_CHECKING:
    from tests.bench.host import FakeHost

PATIENCE_S = 30
"""How long a test waits for something that must come."""


class RpcError(Exception):
    """The sidecar answered with an error."""

    def __init__(self, error: Json) -> None:
        super().__init__(f"{error['code']} {error['data']['kind']}: {error['message']}")
        self.code: int = error["code"]
        self.message: str = error["message"]
        self.data: Json = error["data"]

    @property
    def kind(self) -> str:
        """The stable discriminator."""
        return self.data["kind"]


class Asked:
    """A request that was sent."""

    def __init__(self, host: "FakeHost", request_id: int | str, answer: asyncio.Future[Json]) -> None:
        self.id = request_id
        self._host = host
        self._answer = answer

    @property
    def answered(self) -> bool:
        """Whether its answer has come."""
        return self._answer.done()

    @property
    def succeeded(self) -> bool:
        """Whether its result has come."""
        return self._answer.done() and self._answer.exception() is None and "result" in self._answer.result()

    async def message(self) -> Json:
        """The whole answer."""
        async with asyncio.timeout(PATIENCE_S):
            return await asyncio.shield(self._answer)

    async def result(self) -> Any:
        """The result. An error raises `RpcError`."""
        message = await self.message()
        if "error" in message:
            raise RpcError(message["error"])
        return message["result"]

    def cancel(self) -> None:
        """`$/cancelRequest`."""
        self._host.notify("$/cancelRequest", {"id": self.id})


class HostSession:
    """A session, as its host sees it."""

    def __init__(self, host: "FakeHost", session_id: str, opened: Json) -> None:
        self.host = host
        self.id = session_id
        self.opened = opened
        """What `createSession` or `resumeSession` answered."""

    def start(self, input: Any, **params: Any) -> "HostRun":  # noqa: A002
        """Begin a run."""
        params = {"sessionId": self.id, "input": input, "runId": f"run-{secrets.token_hex(4)}", **params}
        return HostRun(self, params["runId"], self.host.ask("run", params))

    async def run(self, input: Any, **params: Any) -> Json:  # noqa: A002
        """Run to the end."""
        return await self.start(input, **params).result()

    async def cancel(self, **params: Any) -> str:
        """`cancelRun`."""
        return (await self.host.request("cancelRun", {"sessionId": self.id, **params}))["status"]

    async def state(self, **params: Any) -> Json:
        """`getState`."""
        return await self.host.request("getState", {"sessionId": self.id, **params})

    async def history(self) -> list[tuple[str, str]]:
        """The transcript: role and text of each message."""
        found = await self.host.request("getHistory", {"sessionId": self.id, "limit": 1000})
        return [
            (message["role"], "".join(block.get("text", "") for block in message["content"]))
            for message in found["messages"]
        ]

    def events(self, *types: str) -> list[Json]:
        """The session's events so far."""
        return self.host.events(self.id, *types)

    def durable(self) -> list[Json]:
        """The session's durable events so far."""
        return [event for event in self.events() if not event.get("ephemeral")]


class HostRun:
    """A run under way."""

    def __init__(self, session: HostSession, run_id: str, asked: Asked) -> None:
        self.session = session
        self.id = run_id
        self.asked = asked

    def events(self, *types: str) -> list[Json]:
        """The run's events so far."""
        return [event for event in self.session.events(*types) if event.get("runId") == self.id]

    def text(self) -> str:
        """The text that was streamed so far."""
        return "".join(event["data"]["text"] for event in self.events("message.delta"))

    async def text_contains(self, text: str) -> None:
        """Wait for some text."""
        await self.session.host.until(lambda: text in self.text())

    async def event(self, kind: str) -> Json:
        """Wait for the first event of a type."""
        return (await self.session.host.until(lambda: self.events(kind)))[0]

    async def result(self) -> Json:
        """The answer. An error raises `RpcError`."""
        return await self.asked.result()
