"""The client: one sidecar process, its sessions, and where each event goes. Sessions and runs are in `session`."""

import asyncio
import os
import uuid
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any, Final, Unpack, cast

from sidecar_client.connection import Connection, NotificationHandler, RequestHandler, Tracer
from sidecar_client.errors import SidecarClientError
from sidecar_client.process import clean_environment, find_command
from sidecar_client.session import OnEvent, Run, Session, finish
from sidecar_client.types import (
    CreateSessionParams,
    GetStateParams,
    JsonObject,
    OneOffParams,
    ResumeSessionParams,
    RunEvent,
    RunInput,
    RunResult,
    State,
)

PROTOCOL_VERSIONS: Final = (1,)
CLIENT_ID: Final = "agent-sidecar-client"
CLOSE_SECONDS: Final = 5.0
"""How long `close` waits for an orderly end before it kills."""


class SidecarClient:
    """One sidecar process, ready for requests. Made by `start`.

    Attributes:
        server: The answer of `initialize`.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._runs: dict[str, Run] = {}
        self._listeners: list[OnEvent] = []
        self.server: JsonObject = {}
        connection.on_notification("run/event", self._on_event)

    @classmethod
    @asynccontextmanager
    async def start(
        cls,
        arguments: Sequence[str] = (),
        *,
        command: Sequence[str] | None = None,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        options: JsonObject | None = None,
        handlers: Mapping[str, RequestHandler] | None = None,
        on_stderr: Callable[[str], None] | None = None,
        trace: Tracer | None = None,
    ) -> "AsyncGenerator[SidecarClient, None]":
        """Start a sidecar, initialize it, and close it at the end.

        Args:
            arguments: What follows `agent-sidecar serve`.
            command: The whole command, in place of `agent-sidecar serve` and `arguments`.
            cwd: The sidecar's working directory; default: this process's.
            env: Environment variables, on top of this process's.
            options: Keys of `initializationOptions.sidecar`: `features`, `config`, `secrets`, …
            handlers: Method → what answers it, for requests that the sidecar sends.
            on_stderr: Called with each line that the sidecar writes to stderr.
            trace: Shown every message in both directions.

        Raises:
            SidecarDied: The sidecar cannot be started, or ended at once.
            RpcError: It refused `initialize`.
        """
        client = cls(Connection(handlers=handlers, on_stderr=on_stderr, trace=trace))
        try:
            await client._open(command or [*find_command(), "serve", *arguments], cwd, env, options or {})
            yield client
        finally:
            await client.close()

    @property
    def pid(self) -> int:
        """The sidecar's process id."""
        return self._connection.process.pid

    @property
    def returncode(self) -> int | None:
        """The sidecar's exit code, negative for a signal; None while it runs."""
        return self._connection.process.returncode

    async def request(self, method: str, params: JsonObject | None = None) -> Any:
        """Send any request of the contract, and wait for its result. Cancelling the wait cancels the request.

        Raises:
            RpcError: The sidecar answered with an error.
            SidecarDied: It ended before it answered.
        """
        return await self._connection.request(method, params)

    def on_notification(self, method: str, handler: NotificationHandler) -> None:
        """Have `handler` called with the params of such notifications. For `run/event` see `on_event`."""
        self._connection.on_notification(method, handler)

    def on_event(self, listener: OnEvent) -> None:
        """Have `listener` called with every event of every session, replayed ones included."""
        self._listeners.append(listener)

    async def create_session(self, **params: Unpack[CreateSessionParams]) -> Session:
        """Create a session. The keys are those of `createSession`.

        Raises:
            RpcError: It was refused.
        """
        return Session(self, await self.request("createSession", {**params}))

    async def resume_session(self, session_id: str, **params: Unpack[ResumeSessionParams]) -> Session:
        """Open a stored session. Replayed events go to the listeners of `on_event`.

        Raises:
            RpcError: There is no such session, or another process owns it.
        """
        return Session(self, await self.request("resumeSession", {**params, "sessionId": session_id}))

    def stream(self, run_input: RunInput, **params: Unpack[OneOffParams]) -> Run:
        """Start a one-off run, without a session; iterate over what this returns for the events.

        Raises:
            SidecarDied: The sidecar has ended.
        """
        return self.start_run({**params, "input": run_input})

    async def run(
        self, run_input: RunInput, on_event: OnEvent | None = None, **params: Unpack[OneOffParams]
    ) -> RunResult:
        """A one-off run, without a session. Cancelling it cancels the run.

        Raises:
            RpcError: The run failed, or was refused.
            SidecarDied: The sidecar ended first.
        """
        return await finish(self.stream(run_input, **params), on_event)

    async def get_state(self, **params: Unpack[GetStateParams]) -> State:
        """Look at the sidecar itself; a session has a `get_state` of its own."""
        return await self.request("getState", {**params})

    def start_run(self, params: JsonObject) -> Run:
        """Send `run` with these params; a `runId` is minted where there is none, because events are matched by it.

        Raises:
            SidecarDied: The sidecar has ended.
        """
        run_id: str = params.get("runId") or uuid.uuid4().hex
        call = self._connection.call("run", {**params, "runId": run_id})
        run = self._runs[run_id] = Run(run_id, call)
        call.answer.add_done_callback(lambda _: self._forget(run))
        return run

    def kill(self) -> None:
        """End the sidecar at once, by SIGKILL."""
        self._connection.process.kill()

    async def wait_ended(self) -> None:
        """Wait until the process has ended."""
        await self._connection.process.wait()

    async def close(self, timeout: float = CLOSE_SECONDS) -> None:
        """Shut the sidecar down in order; kill it if that takes longer than `timeout` seconds. May be called twice."""
        process = self._connection.process
        if not process.pid:
            return
        try:
            async with asyncio.timeout(timeout):
                with suppress(SidecarClientError):
                    await self.request("shutdown")
                    self._connection.notify("exit")
                process.close_stdin()
                await process.wait()
        except TimeoutError:
            pass
        finally:
            process.kill()
        await process.wait()

    async def _open(
        self, command: Sequence[str], cwd: str | None, env: Mapping[str, str] | None, options: JsonObject
    ) -> None:
        await self._connection.open(command, cwd=cwd, env=clean_environment(env))
        ours: JsonObject = {
            "protocolVersions": list(PROTOCOL_VERSIONS),
            "clientId": CLIENT_ID,
            "features": {},
            **options,
        }
        self.server = await self.request(
            "initialize",
            {
                "processId": os.getpid(),
                "rootUri": None,
                "capabilities": {},
                "clientInfo": {"name": CLIENT_ID},
                "initializationOptions": {"sidecar": ours | options},
            },
        )
        self._connection.notify("initialized")

    def _on_event(self, params: JsonObject) -> None:
        event = cast("RunEvent", params)
        run = self._run_of(event)
        if run is not None:
            run.push(event)
        for listener in self._listeners:
            listener(event)

    def _run_of(self, event: RunEvent) -> Run | None:
        """The run that an event belongs to; a delegated run's events belong to the run that began it all."""
        run_id = event.get("runId", "")
        run = self._runs.get(run_id)
        if run is None and (run := self._runs.get(event.get("parentRunId", ""))) is not None:
            self._runs[run_id] = run
        return run

    def _forget(self, run: Run) -> None:
        for run_id in [known for known, its_run in self._runs.items() if its_run is run]:
            del self._runs[run_id]
