"""A driver of the Python client: every operation by the method that its users call, every event by its listeners.

agent-sidecar conformance -- python tests/conformance/python_driver.py
"""

import asyncio
import json
import os
import sys
from collections.abc import Awaitable, Callable
from typing import Any

from sidecar_client import RpcError, SidecarClient, SidecarDied

Json = dict[str, Any]
ASKS = ("host/callTool", "host/beforeRun", "host/afterRun", "host/requestApproval", "host/elicit")


def say(**line: Any) -> None:
    """Tell the examiner what has come."""
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()


class Driver:
    """The client, and what is under way in it."""

    def __init__(self) -> None:
        self.client: SidecarClient | None = None
        self.life: asyncio.Task[None] | None = None
        self.end = asyncio.Event()
        self.calls: dict[int, asyncio.Task[Any]] = {}
        self.runs: dict[int, Any] = {}
        self.asked: list[asyncio.Future[Any]] = []

    async def do(self, todo: Json) -> None:
        """One line of stdin."""
        match todo:
            case {"call": number, "method": "initialize"}:
                await self.open(number, todo.get("params") or {})
            case {"call": number, "method": method}:
                work = self.work(number, method, todo.get("params") or {})
                self.calls[number] = asyncio.create_task(self.answer(number, work))
            case {"reply": number, "result": result}:
                self.settle(number, lambda asked: asked.set_result(result))
            case {"reply": number, "error": error}:
                failure = RpcError(error["code"], error["message"], error.get("data"))
                self.settle(number, lambda asked: asked.set_exception(failure))
            case {"cancel": number}:
                self.runs[number].cancel() if number in self.runs else self.calls[number].cancel()
            case {"end": _}:
                self.end.set()
            case _:
                pass  # `start` waits for `initialize`; `initialized` is sent by the client itself

    def settle(self, number: int, answer: Callable[["asyncio.Future[Any]"], None]) -> None:
        """Answer a request of the sidecar's, unless it was taken back."""
        asked = self.asked[number - 1]
        if not asked.done():
            answer(asked)

    async def open(self, number: int, params: Json) -> None:
        """Start a sidecar; the client initializes it, with the conversation's features."""
        block = (params.get("initializationOptions") or {}).get("sidecar", {})
        opened = asyncio.Event()
        self.end.clear()
        self.life = asyncio.create_task(self.live(number, {"features": {}, **block}, opened))
        await opened.wait()

    async def live(self, number: int, options: Json, opened: asyncio.Event) -> None:
        """One sidecar's life."""
        command = [os.environ["AGENT_SIDECAR"], "serve"]
        handlers = {method: self.handler(method) for method in ASKS}
        async with SidecarClient.start(command=command, options=options, handlers=handlers) as client:
            client.on_event(lambda event: say(event=event))
            for method in ("session/updated", "session/closed"):
                client.on_notification(method, lambda params, method=method: say(notified=method, params=params))
            self.client = client
            say(answer=number, result=client.server)
            opened.set()
            ends = [asyncio.create_task(end) for end in (client.wait_ended(), self.end.wait())]
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
            for end in ends:
                end.cancel()
        say(ended=client.returncode)

    def handler(self, method: str) -> Callable[[Any], Awaitable[Any]]:
        """Answers requests of one method with what the examiner says."""

        async def handle(params: Any) -> Any:
            asked = asyncio.get_running_loop().create_future()
            self.asked.append(asked)
            say(asked=len(self.asked), method=method, params=params)
            return await asked

        return handle

    async def work(self, number: int, method: str, params: Json) -> Any:
        """One call, by the method that a user would take."""
        assert self.client is not None
        match method:
            case "createSession":
                return (await self.client.create_session(**params)).opened
            case "resumeSession":
                return (await self.client.resume_session(params.pop("sessionId"), **params)).opened
            case "run" if params.get("wait") != "accepted":
                self.runs[number] = run = self.client.start_run(params)
                return await run.result()
            case _:
                return await self.client.request(method, params)

    async def answer(self, number: int, work: Awaitable[Any]) -> None:
        try:
            say(answer=number, result=await work)
        except RpcError as error:
            say(answer=number, error={"code": error.code, "message": error.message, "data": error.data})
        except SidecarDied:
            pass  # `live` says so


async def main() -> None:
    """Do what stdin says, until it ends."""
    stdin = asyncio.StreamReader(limit=1 << 26)
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(stdin), sys.stdin)
    driver = Driver()
    while line := await stdin.readline():
        await driver.do(json.loads(line))
    if driver.life is not None:
        await driver.life


asyncio.run(main())
