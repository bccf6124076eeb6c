"""One serving process from its first message to its exit code: end of input, signals, a dead parent, one way out."""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from typing import Final

from protocol.base import JsonObject
from protocol.state import DocumentState
from providers.api.editor import OpenDocument
from sidecar.config.limits import Limits
from sidecar.descendants import kill_descendants
from sidecar.errors import SidecarError
from sidecar.handlers.reload_config import reload
from sidecar.handlers.services import Documents, Services
from sidecar.lsp.commands import Commands
from sidecar.lsp.half import LspHalf
from sidecar.options import ServeOptions
from sidecar.server.editor import Editor, SidecarCalls
from sidecar.server.event_routes import EventRoutes
from sidecar.server.server import Server
from sidecar.sessions.outlet import Ask
from sidecar.stores.base import StoreError
from sidecar.telemetry import LOGGER
from sidecar.transport import signals
from sidecar.transport.connection import Connection
from sidecar.transport.parent import ParentWatch

PERSIST_S: Final = 5.0
"""At the end runs get this long to be stored."""
FLUSH_S: Final = 2.0
"""And what is written this long to be read."""


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


class _OpenDocuments:
    """The documents that an editor keeps open, for `getState` and `run.context`."""

    def __init__(self, half: LspHalf) -> None:
        self._half = half

    async def settled(self) -> None:
        """Wait until everything that the editor has sent so far is taken in."""
        await self._half.loaded()

    def list(self) -> tuple[DocumentState, ...]:
        """All of them."""
        return tuple(
            DocumentState(uri=document.uri, version=document.version, language_id=document.language_id)
            for document in self._half.documents()
        )

    def text(self, uri: str) -> tuple[str, int] | None:
        """Text and version of one, unsaved changes included; `None` if it is not open."""
        return self._half.text(uri)

    async def open_documents(self) -> Sequence[OpenDocument]:
        """All of them with their texts, the one that was touched last first."""
        await self._half.loaded()
        known = sorted(self._half.documents(), key=lambda one: -self._half.last_touched(one.uri))
        found = ((one, self._half.text(one.uri)) for one in known)
        return [OpenDocument(one.uri, one.language_id, text[1], text[0]) for one, text in found if text is not None]


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
        self._half.shutdown()
        try:
            async with asyncio.timeout(PERSIST_S):
                await self._server.settle(PERSIST_S)
                if self._services is not None:
                    await self._services.sessions.close_all()
                    await self._services.workspaces.aclose()
        except TimeoutError:
            LOGGER.warning("not everything could be stored within %s seconds", PERSIST_S)
        except (SidecarError, StoreError) as error:
            LOGGER.warning("%s", error)
        if ended.client_reads:
            await self._connection.flush(FLUSH_S)
        await self._connection.aclose()

    # ---- starting -------------------------------------------------------------------------------------------------

    def _start(self, params: JsonObject) -> Started:
        started = self._start_services(params, _OpenDocuments(self._half), self._server.reverse.request)
        self._services = started.services
        self._server.max_outbound_bytes = self._server.reverse.max_bytes = started.max_message_bytes
        self._half.initialize(params)
        calls = SidecarCalls(self._server.inside.call, started.events)
        self._half.serve(Commands(calls, Editor(self._connection.send, self._server.reverse), params))
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
