"""The client: one sidecar, its sessions, and where each event goes. Sessions and runs have files of their own."""

import asyncio
import logging
import uuid
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any, Final, Unpack, cast

from .connection import Call, NotificationHandler, Tracer
from .errors import SERVER_CANCELLED, RpcError, SidecarClientError, SidecarDied
from .handlers import RequestHandler
from .host import Host
from .host_requests import HostRequests, declarations
from .host_tools import AnyTool
from .intake import Intake
from .launch import Launch
from .process import find_command
from .reconnect import Attempts, OpenSessions
from .requests import Requests
from .run import OnEvent, Run, finish
from .runs import Runs
from .session import Session
from .types import (
    CreateKeywords,
    Handlers,
    HostTool,
    JsonObject,
    OneOffKeywords,
    ResumeKeywords,
    RunEvent,
    RunInput,
    RunResult,
)

CLOSE_SECONDS: Final = 5.0
"""How long `close` waits for an orderly end before it kills."""
_log = logging.getLogger(__name__)


class SidecarClient(Requests):
    """One sidecar, ready for requests. Made by `start`.

    Attributes:
        server: The answer of `initialize`.
    """

    def __init__(self, launch: Launch, host: HostRequests, *, reconnect: bool = False) -> None:
        self.server: JsonObject = {}
        self._launch = launch
        self._host = host
        self._reconnect = reconnect
        self._notified: dict[str, NotificationHandler] = {"run/event": self._on_event}
        self._connection = launch.connection(self._notified, self._on_end)
        self._intake = Intake(lambda reading: self._connection.process.set_reading(reading))
        self._sessions = OpenSessions()
        self._runs = Runs()
        self._attempts = Attempts()
        self._listeners: list[OnEvent] = []
        self._revival: asyncio.Task[SidecarDied | None] | None = None
        self._closing = False

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
        host: Host | None = None,
        handlers: Handlers | Mapping[str, RequestHandler] | None = None,
        reconnect: bool = False,
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
            host: What the sidecar may ask of this process: tools, context providers, approvals, questions.
            handlers: Method → what answers it, for requests that the sidecar sends; these come before the `host`.
            reconnect: Whether to start a new process where one dies, and to go on in it: sessions that were opened
                through this client are resumed, the events that were missed come once and in order, and an unanswered
                run of a session gets its answer, `interrupted` if it was under way; it is never run twice. Other
                requests that were under way, one-off runs among them, raise `SidecarDied` all the same.
            on_stderr: Called with each line that the sidecar writes to stderr.
            trace: Shown every message in both directions, without the values of `secrets`.

        Raises:
            SidecarDied: The sidecar cannot be started, or ended at once.
            SidecarIncompatible: What was started is no sidecar, or of a version that this client does not speak.
            RpcError: It refused `initialize`.
        """
        answers = HostRequests(host or Host(), cast("Mapping[str, RequestHandler]", handlers or {}))
        launch = Launch(
            command=command or [*find_command(), "serve", *arguments],
            cwd=cwd,
            env=env,
            options=options or {},
            handlers=answers.handlers,
            features=answers.features,
            on_stderr=on_stderr,
            trace=trace,
        )
        client = cls(launch, answers, reconnect=reconnect)
        try:
            client.server = await launch.open(client._connection)
            client._attempts.began()
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

        Sessions that are opened this way are not resumed by `reconnect`; those that are closed or deleted neither.

        Raises:
            RpcError: The sidecar answered with an error.
            SidecarDied: It ended before it answered.
        """
        if self._revival is not None:
            await asyncio.wait([self._revival])
        with self._intake.waited_for():
            result = await self._connection.request(method, params)
        if method in ("closeSession", "deleteSession"):
            self.session_closed((params or {}).get("sessionId", ""))
        return result

    def on_notification(self, method: str, handler: NotificationHandler) -> None:
        """Have `handler` called with the params of such notifications. For `run/event` see `on_event`."""
        self._notified[method] = handler

    def on_event(self, listener: OnEvent) -> None:
        """Have `listener` called with every event of every session, replayed ones included."""
        self._listeners.append(listener)

    async def create_session(
        self, *, tools: Sequence[AnyTool | HostTool] | None = None, **params: Unpack[CreateKeywords]
    ) -> Session:
        """Create a session. The keys are those of `createSession`.

        Args:
            tools: Tools of this host that the session's agent has besides its own.
            params: What else it is to be.

        Raises:
            RpcError: It was refused.
            ValueError: The sidecar was not told at its start that this host has tools.
        """
        return await self._open_session("createSession", {**params}, tools)

    async def resume_session(
        self, session_id: str, *, tools: Sequence[AnyTool | HostTool] | None = None, **params: Unpack[ResumeKeywords]
    ) -> Session:
        """Open a stored session. Replayed events go to the listeners of `on_event`.

        Args:
            session_id: The session.
            tools: The host's tools again, which are never stored; of a session that is open here they take the place
                of those that it has.
            params: What else is given.

        Raises:
            RpcError: There is no such session, or another process owns it.
            ValueError: The sidecar was not told at its start that this host has tools.
        """
        return await self._open_session("resumeSession", {**params, "sessionId": session_id}, tools)

    async def delete_session(self, session_id: str) -> None:
        """Remove a session and all that belongs to it; harmless if there is none."""
        await self.request("deleteSession", {"sessionId": session_id})

    def stream(self, run_input: RunInput, **params: Unpack[OneOffKeywords]) -> Run:
        """Start a one-off run, without a session; iterate over what this returns for the events.

        Raises:
            SidecarDied: The sidecar has ended.
        """
        return self.start_run({**params, "input": run_input})

    async def run(
        self, run_input: RunInput, on_event: OnEvent | None = None, **params: Unpack[OneOffKeywords]
    ) -> RunResult:
        """A one-off run, without a session. Cancelling it cancels the run.

        Raises:
            RpcError: The run failed, or was refused.
            SidecarDied: The sidecar ended first.
        """
        return await finish(self.stream(run_input, **params), on_event)

    def start_run(self, params: JsonObject) -> Run:
        """Send `run` with these params; a `runId` is minted where there is none, because events are matched by it.

        Raises:
            SidecarDied: The sidecar has ended.
        """
        run = Run({**params, "runId": params.get("runId") or uuid.uuid4().hex}, self._intake)
        if self._revival is None:
            self._send(run)
        self._runs.add(run)
        return run

    def session_closed(self, session_id: str) -> None:
        """A session is open here no longer: it is not to be resumed. For whoever learns of it in another way."""
        self._sessions.closed(session_id)
        self._host.closed(session_id)

    def kill(self) -> None:
        """End the sidecar and its process group at once, by SIGKILL."""
        self._connection.process.kill()

    async def wait_ended(self) -> None:
        """Wait until the process has ended."""
        await self._connection.process.wait()

    async def close(self, timeout: float = CLOSE_SECONDS) -> None:
        """Shut the sidecar down in order; kill it if that takes longer than `timeout` seconds. May be called twice."""
        self._closing = True
        if self._revival is not None:
            self._revival.cancel()
            await asyncio.wait([self._revival])
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

    async def _open_session(
        self, method: str, params: JsonObject, tools: Sequence[AnyTool | HostTool] | None
    ) -> Session:
        if tools is not None:
            params["tools"] = declarations(tools)
        with self._host.serving(params.get("sessionId"), tools) as served, self._sessions.opening(params) as opened:
            answer = await self.request(method, params)
            opened(answer)
            served(answer["session"]["sessionId"])
        return Session(self, answer)

    # ---- runs and their events ------------------------------------------------------------------------------------

    def _send(self, run: Run) -> None:
        call = self._connection.call("run", run.params)
        run.sent(call)
        call.answer.add_done_callback(lambda _: self._take_answer(run, call))

    def _take_answer(self, run: Run, call: Call) -> None:
        error = call.answer.exception()
        died = isinstance(error, SidecarDied)
        ends = isinstance(error, RpcError) and error.code == SERVER_CANCELLED
        if not (died or ends):
            self._attempts.answered()
        goes_on = self._revival is not None if died else ends and self._goes_on
        if goes_on and run.params.get("sessionId"):
            return  # the new process will answer
        self._settle(run, None if error else call.answer.result(), error)

    def _settle(self, run: Run, result: RunResult | None, error: BaseException | None) -> None:
        self._runs.remove(run)
        run.settle(result, error)

    def _on_event(self, params: JsonObject) -> None:
        event = cast("RunEvent", params)
        self._sessions.saw(event)
        if (run := self._runs.of(event)) is not None:
            run.push(event)
        for listener in self._listeners:
            listener(event)

    # ---- a new process --------------------------------------------------------------------------------------------

    @property
    def _goes_on(self) -> bool:
        return self._reconnect and bool(self.server) and not self._closing

    def _on_end(self) -> None:
        if self._revival is not None:
            return  # which learns of it from what it asks
        death = self._connection.process.death()
        if self._goes_on:
            self._attempts.ended()
            self._revival = asyncio.create_task(self._revive(death))
            self._revival.add_done_callback(self._revived)
        else:
            self._give_up(death)

    async def _revive(self, death: SidecarDied) -> SidecarDied | None:
        """Start processes until one goes on; gives the last one's death where none did, or too many died at once."""
        while (pause := self._attempts.next()) is not None:
            await asyncio.sleep(pause)
            _log.warning("%s; a new one is started", str(death).partition("\n")[0])
            try:
                with self._intake.waited_for():
                    await self._start_again()
            except SidecarDied as error:
                death = error
            except SidecarClientError as error:
                death = SidecarDied(f"a new sidecar cannot begin: {error}")
            else:
                self._attempts.began()
                return None
            self._connection.process.kill()
        return death

    def _revived(self, revival: "asyncio.Task[SidecarDied | None]") -> None:
        """Where no process could be had, every run that waits for one ends with the reason."""
        self._revival = None
        death: BaseException | None
        if revival.cancelled():
            death = SidecarDied("the client was closed while a new sidecar was started")
        elif (death := revival.exception()) is not None:
            _log.error("no new sidecar could be started", exc_info=death)
        else:
            death = revival.result()
        if death is not None:
            self._give_up(death)
        elif self._connection.ended:  # already again
            self._on_end()

    def _give_up(self, death: BaseException) -> None:
        for run in self._runs.unanswered:
            self._settle(run, None, death)

    async def _start_again(self) -> None:
        """Start, resume every session, and send again what has no answer.

        Raises:
            SidecarClientError: It did not come that far.
        """
        self._connection = self._launch.connection(self._notified, self._on_end)
        self.server = await self._launch.open(self._connection)
        refused: dict[str, RpcError] = {}
        for session_id, params in self._sessions.resumptions().items():
            try:
                await self._resume(session_id, params)
            except RpcError as error:
                refused[session_id] = error
                self._sessions.closed(session_id)
        for run in self._runs.unanswered:
            session_id = run.params.get("sessionId")
            if session_id in refused:
                self._settle(run, None, refused[session_id])
            elif session_id or not run.was_sent:
                self._send(run)

    async def _resume(self, session_id: str, params: JsonObject) -> None:
        try:
            await self._connection.request("resumeSession", params)
        except RpcError as error:
            if error.kind != "cursorExpired":
                raise
            params = {key: value for key, value in params.items() if key != "replayFrom"}
            self._sessions.skip_to(session_id, await self._connection.request("resumeSession", params))
