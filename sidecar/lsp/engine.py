"""The pygls language server, fed message by message. The only module that imports pygls and lsprotocol: load it late.

It keeps what is good in pygls (the types, the workspace, capabilities, commands) away from what is not: nothing
reaches the wire except what a feature sends on purpose, and no message enters that pygls would misread.
"""

import asyncio
import logging
import sys
from collections.abc import Callable
from concurrent.futures import Future
from itertools import count
from typing import Any, Final, NoReturn, cast
from urllib.parse import unquote

from cattrs import Converter, transform_error
from lsprotocol import types
from pydantic.alias_generators import to_camel
from pydantic_core import from_json, to_json
from pygls.exceptions import FeatureRequestError, JsonRpcException
from pygls.lsp.server import LanguageServer
from pygls.protocol import default_converter

from protocol.base import Json, JsonObject
from protocol.version import VERSION
from sidecar.errors import InvalidParams, MethodNotFound, ServerCancelled, SidecarError
from sidecar.telemetry import LOGGER, log_failure

from .documents import DocumentInfo
from .position import Position, negotiate_position_encoding, replace

# It logs whole bodies, at every level; what goes wrong is logged here, without them.
logging.getLogger("pygls").setLevel(logging.CRITICAL + 1)

_FAILED: Final = "internal error; the sidecar's log has more under the errorId"


class Engine:
    """One language server: `initialize` first, then messages.

    Not thread-safe: one thread at a time.
    """

    def __init__(self, send: Callable[[bytes], None]) -> None:
        self._waiting: dict[int, Future[JsonObject]] = {}
        self.server: Final = _Server("agent-sidecar", VERSION, converter_factory=_strict_converter)
        """Where features and commands are registered. To ask the client something is the dispatcher's part."""
        self.server.waiting = self._waiting
        self._ids = count(1)
        self._encoding = ""
        self.server.protocol.set_writer(_Outlet(send, self._waiting), include_headers=False)

    def initialize(self, params: JsonObject) -> JsonObject:
        """Start the workspace.

        What lsprotocol does not take is left out, client capabilities last: a client with one malformed value
        still gets its documents synced.

        Args:
            params: LSP's, of any quality.

        Returns:
            The answer as pygls computes it, which is not sent.
        """
        self._encoding = negotiate_position_encoding(params)
        for attempt in _attempts(params, self._encoding):
            try:
                answer = self._begin("initialize", attempt)[1].result(timeout=0)
            except InvalidParams as error:
                LOGGER.warning("taken without a part of its params: %s", error.message)
                continue
            if "result" in answer:
                return answer["result"]
            LOGGER.warning("taken without a part of its params: initialize: a URI that does not parse")
        raise SidecarError("the language server does not start")

    def notify(self, method: str, params: Json) -> None:
        """Take a notification in.

        Raises:
            InvalidParams: if it has the wrong shape; nothing of it has been applied then.
        """
        message = self._structure({"jsonrpc": "2.0", "method": method, "params": params})
        if isinstance(message, types.DidChangeTextDocumentNotification):
            self._spell_out(message.params)
        elif isinstance(message, types.DidChangeWorkspaceFoldersNotification):
            # pygls adds before it removes: a folder that is renamed, being in both lists, would be lost.
            event = message.params.event
            removal = types.WorkspaceFoldersChangeEvent(added=(), removed=event.removed)
            self._handle(types.DidChangeWorkspaceFoldersNotification(types.DidChangeWorkspaceFoldersParams(removal)))
            event.removed = ()
        self._handle(message)

    async def request(self, method: str, params: Json) -> Json:
        """Have a request answered.

        To cancel it ends the waiting only: pygls does not reach the coroutine of a command.

        Raises:
            SidecarError: as the request failed; what the handler raised is in the log only.
        """
        request_id, answer = self._begin(method, params)
        try:
            message = await asyncio.wrap_future(answer)
        finally:
            self._waiting.pop(request_id, None)
        if "error" in message:
            _raise(method, message["error"])
        return message.get("result")

    def documents(self) -> list[DocumentInfo]:
        """The open documents, in the order of their opening."""
        return [
            DocumentInfo(document.uri, document.version or 0, document.language_id or "")
            for document in self.server.workspace.text_documents.values()
        ]

    def text(self, uri: str) -> tuple[str, int] | None:
        """Text and version of an open document; never a look at the disk, which pygls's own look-up would be."""
        document = self.server.workspace.text_documents.get(unquote(uri))
        return (document.source, document.version or 0) if document else None

    def workspace_folders(self) -> list[str]:
        """The URIs of the workspace's folders."""
        return [folder.uri for folder in self.server.workspace.folders.values()]

    def shutdown(self) -> None:
        """End the requests under way with `ServerCancelled`."""
        while self._waiting:
            _, answer = self._waiting.popitem()
            if not answer.cancelled():
                answer.set_exception(ServerCancelled())

    def _begin(self, method: str, params: Json) -> tuple[int, Future[JsonObject]]:
        request_id = next(self._ids)
        message = self._structure({"jsonrpc": "2.0", "id": request_id, "method": method, "params": params})
        answer: Future[JsonObject] = Future()
        self._waiting[request_id] = answer
        self._handle(message)
        return request_id, answer

    def _handle(self, message: Any) -> None:  # Any: pygls's own protocol type does not admit lsprotocol's classes
        self.server.protocol.handle_message(message)

    def _structure(self, message: JsonObject) -> Any:
        try:
            return self.server.protocol.structure_message(message)
        except JsonRpcException as error:
            lines = transform_error(error.__cause__ or error, format_exception=_describe)
            problems = [_problem(line) for line in lines]
            listed = ", ".join(f"{problem['path']}: {problem['message']}" for problem in problems)
            raise InvalidParams(f"{message['method']}: {listed}", problems) from error

    def _spell_out(self, params: types.DidChangeTextDocumentParams) -> None:
        """Turn ranged changes into one of the whole text, because pygls cuts lines where LSP does not."""
        current = self.text(params.text_document.uri)
        if current is None:
            problem = {"path": "textDocument.uri", "message": "not an open document"}
            raise InvalidParams("textDocument/didChange: the document is not open", [problem])
        text, _ = current
        for change in params.content_changes:
            if isinstance(change, types.TextDocumentContentChangePartial):
                start, end = change.range.start, change.range.end
                text = replace(
                    text,
                    Position(start.line, start.character),
                    Position(end.line, end.character),
                    change.text,
                    self._encoding,
                )
            else:
                text = change.text
        params.content_changes = (types.TextDocumentContentChangeWholeDocument(text=text),)


class _Server(LanguageServer):
    waiting: dict[int, Future[JsonObject]]

    def report_server_error(self, error: Exception, source: Any) -> None:
        """Log what has no answer to stand in; stock pygls shows it to the user, text and all."""
        if source is FeatureRequestError:
            return
        failure = SidecarError(_FAILED)
        log_failure("language server", sys.exception() or error, failure.error_id)
        # A result that is no JSON comes here, and pygls would leave its request without an answer.
        request_id = self.protocol.msg_id
        answer = self.waiting.pop(request_id, None) if isinstance(request_id, int) else None
        if answer and not answer.cancelled():
            answer.set_exception(failure)


class _Outlet:
    """What pygls takes for its writer: keeps the answers, and lets through what features send."""

    def __init__(self, send: Callable[[bytes], None], waiting: dict[int, Future[JsonObject]]) -> None:
        self._send = send
        self._waiting = waiting

    def write(self, data: bytes) -> None:
        message = cast("JsonObject", from_json(data))
        if "method" in message:
            self._send(to_json(message, inf_nan_mode="null"))
            return
        answer = self._waiting.pop(message["id"], None)
        if answer and not answer.cancelled():
            answer.set_result(message)

    def close(self) -> None:
        """Nothing to close: the wire is not ours."""


def _strict_converter() -> Converter:
    """The stock converter, except that a string must be a string: cattrs makes `null` the text "None"."""
    converter = default_converter()
    for kind in (str, int, bool):
        converter.register_structure_hook(kind, _exactly)
    return converter


def _exactly(value: Any, kind: type) -> Any:
    if kind not in (str, int, bool):  # an enumeration of lsprotocol's, dispatched here as a kind of str or int
        return kind(value)
    if kind is int and isinstance(value, float) and value.is_integer():  # some clients write 1.0
        return int(value)
    if type(value) is not kind:
        raise TypeError(kind.__name__)
    return value


def _attempts(params: JsonObject, encoding: str) -> list[JsonObject]:
    """What pygls reads of `initialize`, filled in, and then with less and less of it.

    `initializationOptions` stays out: it holds secrets, and pygls has no use for it.
    """
    root, folders = params.get("rootUri"), params.get("workspaceFolders")
    if folders is None and isinstance(root, str):
        folders = [{"uri": root, "name": root.rstrip("/").rpartition("/")[2]}]
    bare = {"capabilities": _with_encoding({}, encoding), "processId": None, "rootUri": None}
    placed = {**bare, "rootUri": root, "workspaceFolders": folders}
    whole = {
        **placed,
        "capabilities": _with_encoding(params.get("capabilities"), encoding),
        "processId": params.get("processId"),
        "clientInfo": params.get("clientInfo"),
    }
    return [whole, placed, bare]


def _with_encoding(capabilities: Json, encoding: str) -> JsonObject:
    """The client's capabilities with one encoding to choose from: the one that was advertised to it."""
    given = cast("JsonObject", capabilities) if isinstance(capabilities, dict) else {}
    general = given.get("general")
    kept = cast("JsonObject", general) if isinstance(general, dict) else {}
    return {**given, "general": {**kept, "positionEncodings": [encoding]}}


def _describe(error: BaseException, kind: type | None) -> str:
    """Say what is wrong without the value, which is the user's text."""
    if isinstance(error, KeyError):
        return "missing"
    return f"must be of type {kind.__name__}" if kind in (str, int, bool) else "has a wrong value"


def _problem(line: str) -> JsonObject:
    """Turn a line of cattrs (`WHAT @ $.params.text_document.uri`) into an entry of the contract's `data.errors`."""
    what, _, path = line.partition(" @ $.params")
    return {"path": ".".join(to_camel(name) for name in path.strip(".").split(".")), "message": what}


def _raise(method: str, error: JsonObject) -> NoReturn:
    match error["code"]:
        case -32602:
            raise InvalidParams(f"{method}: no such command, or arguments that do not fit it")
        case -32601:
            raise MethodNotFound(method)
        case _:
            failure = SidecarError(_FAILED)
            kind = str(error["message"]).partition(":")[0]
            data = cast("JsonObject", error.get("data") or {})
            trace = "".join(data.get("traceback", ()))
            LOGGER.warning("%s: %s errorId=%s at\n%s", method, kind, failure.error_id, trace)
            raise failure
