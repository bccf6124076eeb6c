"""The language-server half as the dispatcher sees it. It imports neither pygls nor lsprotocol: a thread does, later."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import threading
from collections import deque
from itertools import count
from typing import TYPE_CHECKING, Final, cast

from sidecar.errors import (
    CapabilityRequired,
    InvalidParams,
    MethodNotFound,
    NotInitialized,
    ServerCancelled,
    new_error_id,
)
from sidecar.telemetry import LOGGER, log_failure

if TYPE_CHECKING:
    from collections.abc import Callable

    from protocol.base import Json, JsonObject

    from .code_actions import CodeActions
    from .commands import Commands
    from .documents import DocumentInfo
    from .engine import Engine

_CODE_ACTION: Final = "textDocument/codeAction"

REQUESTS: Final = frozenset({"workspace/executeCommand", _CODE_ACTION})
"""Requests that are answered here."""

SYNCED: Final = frozenset(
    {
        "$/setTrace",
        "textDocument/didChange",
        "textDocument/didClose",
        "textDocument/didOpen",
        "workspace/didChangeWorkspaceFolders",
    }
)
"""Notifications that change what is known of the editor."""

ACCEPTED: Final = frozenset(
    {
        "textDocument/didSave",
        "textDocument/willSave",
        "workspace/didChangeConfiguration",
        "workspace/didChangeWatchedFiles",
        "workspace/didCreateFiles",
        "workspace/didDeleteFiles",
        "workspace/didRenameFiles",
    }
)
"""Notifications that an editor may send unasked, and that change nothing here."""

PROGRESS_CANCEL: Final = "window/workDoneProgress/cancel"
"""The notification by which a user stops a command."""


class LspHalf:
    """One editor's open documents and workspace, and the requests of LSP that are not the sidecar's own.

    Everything is called on the event loop's thread. Notifications that come before the language server is loaded
    wait, in order; what reads is empty until then, so a reader that must not miss a document awaits `loaded`.
    """

    def __init__(self, send: Callable[[bytes], None]) -> None:
        """Load nothing yet.

        Args:
            send: takes the body of a message to the client: requests and notifications of LSP, never answers.
        """
        self._send = send
        self._params: JsonObject | None = None
        self._engine: Engine | None = None
        self._commands: Commands | None = None
        self._code_actions: CodeActions | None = None
        self._queue: deque[tuple[str, Json]] = deque()
        self._loading = False
        self._settled = asyncio.Event()
        self._closed = False
        self._touches = count(1)
        self._touched: dict[str, int] = {}
        self._change = asyncio.Event()

    def initialize(self, params: JsonObject) -> None:
        """Remember the client's `initialize`, of any quality. The dispatcher answers it; nothing here does."""
        # Secrets may stand in initializationOptions, and nothing here has a use for it.
        self._params = {name: value for name, value in params.items() if name != "initializationOptions"}

    def serve(self, commands: Commands, code_actions: CodeActions) -> None:
        """Have these answer `workspace/executeCommand` and `textDocument/codeAction`, not the language server."""
        self._commands = commands
        self._code_actions = code_actions

    def start_loading(self) -> None:
        """Import the language server in a thread. Without effect before `initialize`, and the second time."""
        if self._params is None or self._loading or self._closed:
            return
        self._loading = True
        arguments = (asyncio.get_running_loop(), self._params)
        threading.Thread(target=self._load, args=arguments, name="lsp-import", daemon=True).start()

    async def loaded(self) -> None:
        """Wait until every notification so far has been taken in, or loading has failed.

        Returns at once where no client has sent `initialize`.
        """
        if self._params is not None:
            self.start_loading()
            await self._settled.wait()

    def handles(self, method: str) -> bool:
        """Whether requests or notifications of this name belong here."""
        return method in SYNCED or method in ACCEPTED or method in REQUESTS or method == PROGRESS_CANCEL

    def notify(self, method: str, params: Json) -> None:
        """Take a notification in. What cannot be applied is logged, without its text, and otherwise ignored."""
        if method in ACCEPTED or self._closed:
            return
        if method == PROGRESS_CANCEL:
            if self._commands is not None:
                self._commands.cancel_progress(params)
        elif method not in SYNCED or self._params is None:
            LOGGER.warning("notification ignored: %s is none, or came before initialize", method)
        elif not self._settled.is_set():
            self._queue.append((method, params))
            self.start_loading()
        elif self._engine is not None:
            self._take(self._engine, method, params)

    def _take(self, engine: Engine, method: str, params: Json) -> None:
        _apply(engine, method, params)
        uri = _document_uri(params)
        if method == "textDocument/didClose":
            self._touched.pop(uri, None)
        elif method in ("textDocument/didOpen", "textDocument/didChange"):
            self._touched[uri] = next(self._touches)
        self._change.set()
        self._change = asyncio.Event()

    async def request(self, method: str, params: Json, stop: asyncio.Event) -> Json:
        """Have a request answered, after everything that came before it.

        Args:
            method: one of `REQUESTS`.
            params: as they were sent.
            stop: set when the client cancels the request, which is answered all the same.

        Raises:
            MethodNotFound: if it is none of `REQUESTS`.
            NotInitialized: if no client has sent `initialize`.
            InvalidParams: if the params have the wrong shape.
            CapabilityRequired: if the language server could not be loaded.
            ServerCancelled: after `shutdown`.
            SidecarError: if what serves it refused or failed.
        """
        if method not in REQUESTS:
            raise MethodNotFound(method)
        if self._params is None:
            raise NotInitialized
        await self.loaded()
        if self._closed:
            raise ServerCancelled
        if self._code_actions is not None and method == _CODE_ACTION:
            return self._code_actions.offered(params)
        if self._commands is not None and self._commands.takes(params):
            return await self._commands.execute(params, stop)
        if self._engine is None:
            raise CapabilityRequired("languageServer", method)
        return await self._engine.request(method, _or_empty(params))

    def documents(self) -> list[DocumentInfo]:
        """The open documents, in the order of their opening."""
        return self._engine.documents() if self._engine else []

    def last_touched(self, uri: str) -> int:
        """How lately a document was opened or changed: a higher number is later."""
        return self._touched.get(uri, 0)

    async def next_change(self) -> None:
        """Wait until a document is opened, changed or closed."""
        await self._change.wait()

    def text(self, uri: str) -> tuple[str, int] | None:
        """Text and version of an open document, unsaved changes included; the disk is never read."""
        return self._engine.text(uri) if self._engine else None

    def workspace_folders(self) -> list[str]:
        """URIs of the workspace's folders; of the root, for a client that knows no folders."""
        return self._engine.workspace_folders() if self._engine else []

    def shutdown(self) -> None:
        """Take nothing more in, and end requests under way with `ServerCancelled`. What is open stays readable."""
        self._closed = True
        self._queue.clear()
        self._settled.set()
        if self._engine is not None:
            self._engine.shutdown()

    def _load(self, loop: asyncio.AbstractEventLoop, params: JsonObject) -> None:
        try:
            outcome = _build(self._send, params)
        except Exception as error:  # whatever it is, whoever waits must hear of it
            outcome = error
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits
            loop.call_soon_threadsafe(self._arrive, outcome)

    def _arrive(self, outcome: Engine | Exception) -> None:
        if isinstance(outcome, Exception):
            log_failure("the language server cannot be loaded", outcome, new_error_id())
        else:
            for method, params in self._queue:
                self._take(outcome, method, params)
            self._engine = outcome
        self._queue.clear()
        self._settled.set()


def _build(send: Callable[[bytes], None], params: JsonObject) -> Engine:
    """Import and start the language server; here, because its first message costs as much as its construction."""
    collecting = gc.isenabled()
    gc.disable()  # nothing of an import is garbage, and looking for it costs a tenth of the time
    try:
        from .engine import Engine

        engine = Engine(send)
        engine.initialize(params)
        gc.freeze()  # tens of thousands of objects that stay: no later collection need look at them
    finally:
        if collecting:
            gc.enable()
    return engine


def _apply(engine: Engine, method: str, params: Json) -> None:
    try:
        engine.notify(method, _or_empty(params))
    except InvalidParams as error:
        LOGGER.warning("notification ignored: %s", error.message)
    except Exception as error:  # a notification has no answer to put it in
        log_failure(method, error, new_error_id())


def _or_empty(params: Json) -> Json:
    """Params are always an object: missing or null is the empty one."""
    return {} if params is None else params


def _document_uri(params: Json) -> str:
    document: Json = cast("JsonObject", params).get("textDocument") if isinstance(params, dict) else None
    return str(cast("JsonObject", document).get("uri")) if isinstance(document, dict) else ""
