"""One serving process from its first message to its exit code: end of input, signals, a dead parent, one way out."""

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Final

from protocol.base import JsonObject
from sidecar.agents.onion import contained
from sidecar.config.limits import Limits
from sidecar.descendants import kill_descendants
from sidecar.errors import SidecarError, new_error_id
from sidecar.handlers.reload_config import reload
from sidecar.handlers.services import Documents, Services
from sidecar.lsp.client_capabilities import ClientCapabilities
from sidecar.lsp.code_actions import CodeActions
from sidecar.lsp.commands import Commands
from sidecar.lsp.editor_tasks import EditorTasks
from sidecar.lsp.half import LspHalf
from sidecar.lsp.position import negotiate_position_encoding
from sidecar.options import ServeOptions
from sidecar.server.attached_editor import AttachedEditor
from sidecar.server.editor import Editor, SidecarCalls
from sidecar.server.event_routes import EventRoutes
from sidecar.server.server import Server
from sidecar.sessions.outlet import Ask
from sidecar.stores.base import StoreError
from sidecar.telemetry import LOGGER, log_failure
from sidecar.transport import signals
from sidecar.transport.connection import Connection
from sidecar.transport.parent import ParentWatch

PERSIST_S: Final = 5.0
"""At the end runs get this long to be stored."""
CLOSE_S: Final = 2.0
"""Then sessions and stores get this long to be closed, """
MODELS_S: Final = 0.5
"""models this long, """
FLUSH_S: Final = 2.0
"""and what is written this long to be read. All together it stays below the 10 s after which hosts kill."""


@dataclass(frozen=True, slots=True)
class Started:
    """What `initialize` brought about."""

    result: JsonObject
    services: Services
    events: EventRoutes
    process_id: int | None
    is_editor: bool
    """The client is a language client: its documents will be synced."""
    max_message_bytes: int
    """Longest message that the client takes."""


@dataclass(frozen=True, slots=True)
class _Exit:
    code: int
    why: str
    client_reads: bool = True


class Process:
    """Serves one client. `run` is called once."""

    def __init__(
        self,
        connection: Connection,
        options: ServeOptions,
        start_services: Callable[[JsonObject, Documents, Ask], Started],
        *,
        limits: Limits,
    ) -> None:
        self._connection = connection
        self._options = options
        self._start_services = start_services
        self._half = LspHalf(connection.send)
        self._server = Server(connection, self._half, self, limits=limits)
        self._services: Services | None = None
        self._exit: asyncio.Future[_Exit] = asyncio.get_running_loop().create_future()
        self._parent = ParentWatch(self.client_gone)
        self._background: set[asyncio.Task[None]] = set()
        self._reload_is_waiting = False

    async def run(self, answered: JsonObject | None) -> int:
        """Serve until something ends it.

        Args:
            answered: The params of an `initialize` that was answered before this process had its parts.

        Returns:
            The exit code.
        """
        restore = signals.install(self._on_signal)
        self._parent.watch_parent()
        if self._options.client_process_id is not None:
            self._parent.watch(self._options.client_process_id)
        try:
            if answered is not None:
                self._server.already_initialized(answered, self._start(answered).services)
            await self._connection.start(self._server)
            ended = await self._exit
            LOGGER.info("ending: %s", ended.why)
            await self._close(ended)
        finally:
            kill_descendants()
            self._parent.close()
            restore()
        return ended.code

    # ---- what the server asks for ---------------------------------------------------------------------------------

    def initialize(self, params: JsonObject) -> tuple[JsonObject, Services]:
        """Start the sidecar's parts."""
        started = self._start(params)
        return started.result, started.services

    def exit(self, *, after_shutdown: bool) -> None:
        """The client wants the process to end."""
        self._end(_Exit(0 if after_shutdown else 1, "exit"))

    def end_of_input(self, *, after_shutdown: bool) -> None:
        """A script's input may end before its answers are read; a language client's end is the end."""
        is_script = self._connection.framing != "header"
        policy = self._options.on_eof or ("finish" if is_script else "cancel")
        code = 0 if after_shutdown or is_script or policy == "finish" else 1
        if policy == "cancel" or after_shutdown:
            self._end(_Exit(code, "end of input"))
        else:
            self._spawn(self._finish(code))

    def client_gone(self, why: str) -> None:
        """Nobody reads any more."""
        self._end(_Exit(1, why, client_reads=False))

    def configuration_changed(self) -> None:
        """Read the configuration again; requests for it that come meanwhile are one."""
        if self._services is not None and not self._reload_is_waiting:
            self._reload_is_waiting = True
            self._spawn(self._reload(self._services))

    async def _reload(self, services: Services) -> None:
        self._reload_is_waiting = False
        try:
            for warning in (await reload(services)).warnings:
                LOGGER.warning("%s", warning.message)
        except SidecarError as error:
            LOGGER.warning("the configuration stays as it was: %s", error.message)

    # ---- the one way out ------------------------------------------------------------------------------------------

    def _on_signal(self, number: int) -> None:
        self._end(_Exit(128 + number, f"signal {number}"))

    def _end(self, how: _Exit) -> None:
        if not self._exit.done():
            self._exit.set_result(how)

    async def _finish(self, code: int) -> None:
        grace = self._options.eof_grace
        try:
            async with asyncio.timeout(grace):
                await self._server.idle()
                if not await self._connection.flush(grace):  # a script's reader may be slow, but not gone
                    self.client_gone("the answers were not read")
        except TimeoutError:
            LOGGER.warning("what was asked for took longer than --eof-grace after the end of input")
        self._end(_Exit(code, "end of input"))

    async def _close(self, ended: _Exit) -> None:
        self._server.stop_accepting()
        self._half.shutdown()
        try:
            await self._step("not everything could be stored", PERSIST_S, self._server.settle(PERSIST_S))
            if self._services is not None:
                sessions, workspaces = self._services.sessions, self._services.workspaces
                await self._step("not every session could be closed", CLOSE_S, sessions.close_all())
                await self._step("not every model could be closed", MODELS_S, workspaces.aclose())
        finally:
            if ended.client_reads:
                await self._connection.flush(FLUSH_S)
            await self._connection.aclose()

    async def _step(self, failure: str, timeout: float, work: Coroutine[None, None, None]) -> None:
        """One step of the way out, in so many seconds: whatever becomes of it, the next one is due, and the answers."""
        try:
            async with asyncio.timeout(timeout):
                await contained(work)
        except TimeoutError:
            LOGGER.warning("%s within %s seconds", failure, timeout)
        except (SidecarError, StoreError) as error:
            LOGGER.warning("%s: %s", failure, error)
        except Exception as error:
            log_failure(failure, error, new_error_id())

    # ---- starting -------------------------------------------------------------------------------------------------

    def _start(self, params: JsonObject) -> Started:
        ask = self._server.reverse.request
        started = self._start_services(params, AttachedEditor(self._half, ask, params), ask)
        self._services = started.services
        self._server.max_outbound_bytes = self._server.reverse.max_bytes = started.max_message_bytes
        self._half.initialize(params)
        calls = SidecarCalls(self._server.inside.call, started.events)
        editor = Editor(self._connection.send, self._server.reverse)
        can = ClientCapabilities.of(params)
        tasks = EditorTasks(self._half.text, negotiate_position_encoding(params), can_edit=can.apply_edit)
        self._half.serve(Commands(calls, editor, can, tasks), CodeActions(self._half.text, can))
        if started.is_editor:
            self._half.start_loading()
        if started.process_id is not None:
            self._parent.watch(started.process_id)
        if started.services.config_error is None:
            self._spawn(started.services.sessions.stores.prepare())
        return started

    def _spawn(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.create_task(work)
        self._background.add(task)
        task.add_done_callback(self._background.discard)
