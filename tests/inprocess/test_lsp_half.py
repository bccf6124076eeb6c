"""The language-server half: cheap until it is needed, in order from the first message on, silent towards the client."""

import asyncio
import gc
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from sidecar.errors import CapabilityRequired, InvalidParams, MethodNotFound, NotInitialized, ServerCancelled
from sidecar.lsp.client_capabilities import ClientCapabilities
from sidecar.lsp.code_actions import CodeActions
from sidecar.lsp.documents import DocumentInfo
from sidecar.lsp.half import LspHalf

URI = "file:///home/notes.md"
NO_ACTIONS = CodeActions(lambda uri: None, ClientCapabilities())
OPEN = {"textDocument": {"uri": URI, "languageId": "markdown", "version": 1, "text": "one\ntwo\n"}}
SECRET = "the user's own words"


def edit(text: str, line: int, start: int, end: int, version: int) -> dict[str, Any]:
    span = {"start": {"line": line, "character": start}, "end": {"line": line, "character": end}}
    return {"textDocument": {"uri": URI, "version": version}, "contentChanges": [{"range": span, "text": text}]}


@pytest.fixture(autouse=True)
def no_import_outlives_its_test() -> Iterator[None]:
    yield
    for thread in importing_threads():
        thread.join(timeout=60)


def importing_threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "lsp-import"]


@pytest.fixture
def sent() -> list[bytes]:
    return []


@pytest.fixture
def half(sent: list[bytes]) -> LspHalf:
    half = LspHalf(sent.append)
    half.initialize({})
    return half


@pytest.fixture
async def loaded(half: LspHalf) -> AsyncIterator[LspHalf]:
    await half.loaded()
    yield half
    half.shutdown()


def in_a_fresh_process(code: str) -> None:
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_nothing_heavy_is_imported_before_loading() -> None:
    in_a_fresh_process(
        "import sys\n"
        "from sidecar.lsp.half import LspHalf\n"
        "half = LspHalf(print)\n"
        "half.initialize({'capabilities': {}})\n"
        "half.handles('textDocument/didOpen')\n"
        "heavy = {'pygls', 'lsprotocol', 'cattrs', 'attrs'} & set(sys.modules)\n"
        "sys.exit(f'imported: {heavy}' if heavy else 0)\n"
    )


def test_positions_need_nothing_but_the_standard_library() -> None:
    in_a_fresh_process(
        "import sys\n"
        "import sidecar.lsp.position\n"
        "sys.exit('pydantic is imported' if 'pydantic' in sys.modules else 0)\n"
    )


def test_the_loop_goes_on_while_the_language_server_is_imported() -> None:
    in_a_fresh_process(
        "import asyncio, sys\n"
        "from sidecar.lsp.half import LspHalf\n"
        "async def main():\n"
        "    half = LspHalf(print)\n"
        "    half.initialize({})\n"
        "    half.start_loading()\n"
        "    waiting, turns = asyncio.ensure_future(half.loaded()), 0\n"
        "    while not waiting.done():\n"
        "        turns += 1\n"
        "        await asyncio.sleep(0.001)\n"
        "    assert 'pygls' in sys.modules\n"
        "    assert turns >= 5, turns\n"
        "asyncio.run(main())\n"
    )


async def test_what_comes_before_loading_is_there_afterwards_and_in_order(half: LspHalf, sent: list[bytes]) -> None:
    half.notify("textDocument/didOpen", OPEN)
    half.notify("textDocument/didChange", edit("1", 0, 0, 3, version=2))
    half.notify("textDocument/didChange", edit("", 0, 0, 1, version=3))
    assert half.documents() == []

    await half.loaded()
    half.notify("textDocument/didChange", edit("2", 1, 0, 3, version=4))

    assert half.documents() == [DocumentInfo(URI, 4, "markdown")]
    assert half.text(URI) == ("\n2\n", 4)
    assert sent == []


async def test_an_unsaved_document_is_followed_until_it_is_closed(loaded: LspHalf, sent: list[bytes]) -> None:
    loaded.notify("textDocument/didOpen", OPEN)
    loaded.notify("textDocument/didChange", edit("😋", 1, 3, 3, version=2))
    loaded.notify("textDocument/didChange", edit("!", 1, 5, 5, version=3))
    loaded.notify("textDocument/didSave", {"textDocument": {"uri": URI}})
    assert loaded.text(URI) == ("one\ntwo😋!\n", 3)

    loaded.notify("textDocument/didClose", {"textDocument": {"uri": URI}})

    assert loaded.text(URI) is None
    assert loaded.documents() == []
    assert sent == []


async def test_documents_are_listed_in_the_order_of_their_opening(loaded: LspHalf) -> None:
    for name in ("b", "a"):
        item = {**OPEN["textDocument"], "uri": f"file:///{name}"}
        loaded.notify("textDocument/didOpen", {"textDocument": item})
    assert [document.uri for document in loaded.documents()] == ["file:///b", "file:///a"]


async def test_workspace_folders_follow_the_editor(sent: list[bytes]) -> None:
    half = LspHalf(sent.append)
    half.initialize({"workspaceFolders": [{"uri": "file:///a", "name": "a"}]})
    event = {"added": [{"uri": "file:///b", "name": "b"}], "removed": [{"uri": "file:///a", "name": "a"}]}
    half.notify("workspace/didChangeWorkspaceFolders", {"event": event})
    await half.loaded()
    assert half.workspace_folders() == ["file:///b"]


@pytest.mark.parametrize(
    "params", [None, {}, [], 7, "text", {"textDocument": None}, {"textDocument": {"text": SECRET}}]
)
@pytest.mark.parametrize("method", ["textDocument/didOpen", "textDocument/didChange", "textDocument/didClose"])
async def test_bad_params_are_logged_without_their_text_and_change_nothing(
    loaded: LspHalf, sent: list[bytes], caplog: pytest.LogCaptureFixture, method: str, params: Any
) -> None:
    loaded.notify("textDocument/didOpen", OPEN)

    loaded.notify(method, params)

    assert loaded.text(URI) == ("one\ntwo\n", 1)
    assert method in caplog.text
    assert SECRET not in caplog.text
    assert sent == []


async def test_a_change_that_is_wrong_in_part_is_not_applied_in_part(loaded: LspHalf) -> None:
    loaded.notify("textDocument/didOpen", OPEN)
    change = edit("X", 0, 0, 3, version=2)
    change["contentChanges"].append({"text": None})
    loaded.notify("textDocument/didChange", change)
    assert loaded.text(URI) == ("one\ntwo\n", 1)


async def test_a_bad_message_before_loading_does_not_take_the_others_with_it(half: LspHalf) -> None:
    half.notify(
        "textDocument/didOpen", {"textDocument": {"uri": "http://[", "languageId": "", "version": 1, "text": ""}}
    )
    half.notify("textDocument/didOpen", OPEN)
    await half.loaded()
    assert [document.uri for document in half.documents()] == [URI]


async def test_notifications_without_a_use_are_accepted_in_silence(
    loaded: LspHalf, sent: list[bytes], caplog: pytest.LogCaptureFixture
) -> None:
    settings = {"settings": {"a b": {"jsonrpc": "2.0", "method": "exit"}, "type_name": 1}}
    for method in ("workspace/didChangeConfiguration", "workspace/didChangeWatchedFiles", "textDocument/willSave"):
        assert loaded.handles(method)
        loaded.notify(method, settings)
    assert sent == []
    assert caplog.text == ""


@pytest.mark.parametrize("method", ["initialize", "initialized", "shutdown", "exit", "$/cancelRequest", "run", ""])
def test_the_dispatchers_own_methods_are_not_handled_here(half: LspHalf, method: str) -> None:
    assert not half.handles(method)


async def test_a_command_that_does_not_exist_is_answered(loaded: LspHalf, sent: list[bytes]) -> None:
    with pytest.raises(InvalidParams):
        await loaded.request("workspace/executeCommand", {"command": "sidecar.nothing"}, asyncio.Event())
    with pytest.raises(InvalidParams, match="command: missing"):
        await loaded.request("workspace/executeCommand", None, asyncio.Event())
    assert sent == []


async def test_a_request_waits_for_loading(half: LspHalf) -> None:
    with pytest.raises(InvalidParams):
        await half.request("workspace/executeCommand", {"command": "sidecar.nothing"}, asyncio.Event())


async def test_a_notification_sent_as_a_request_is_an_unknown_method(loaded: LspHalf) -> None:
    with pytest.raises(MethodNotFound):
        await loaded.request("textDocument/didOpen", OPEN, asyncio.Event())
    assert loaded.documents() == []


async def test_a_request_sent_as_a_notification_is_ignored(loaded: LspHalf, sent: list[bytes]) -> None:
    loaded.notify("workspace/executeCommand", {"command": "sidecar.nothing"})
    assert sent == []


async def test_before_initialize_nothing_is_kept_and_nobody_waits(
    sent: list[bytes], caplog: pytest.LogCaptureFixture
) -> None:
    half = LspHalf(sent.append)
    half.start_loading()
    half.notify("textDocument/didOpen", OPEN)
    await half.loaded()
    with pytest.raises(NotInitialized):
        await half.request("workspace/executeCommand", {}, asyncio.Event())
    assert "came before initialize" in caplog.text
    assert importing_threads() == []

    half.initialize({})
    await half.loaded()
    assert half.documents() == []


async def test_a_language_server_that_cannot_be_loaded_is_missed_by_its_requests_only(
    half: LspHalf, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setitem(sys.modules, "sidecar.lsp.engine", None)
    half.notify("textDocument/didOpen", OPEN)

    await half.loaded()

    half.notify("textDocument/didOpen", OPEN)
    assert half.documents() == []
    assert half.text(URI) is None
    assert half.workspace_folders() == []
    assert "cannot be loaded: ModuleNotFoundError" in caplog.text
    with pytest.raises(CapabilityRequired):
        await half.request("workspace/executeCommand", {}, asyncio.Event())


async def test_shutdown_while_loading_lets_everybody_go(half: LspHalf) -> None:
    half.notify("textDocument/didOpen", OPEN)
    request = asyncio.ensure_future(half.request("workspace/executeCommand", {}, asyncio.Event()))
    waiting = asyncio.ensure_future(half.loaded())
    await asyncio.sleep(0)

    half.shutdown()

    await waiting
    with pytest.raises(ServerCancelled):
        await request
    half.notify("textDocument/didOpen", OPEN)
    assert half.documents() == []


async def test_after_shutdown_nothing_is_taken_in_and_what_is_open_can_be_read(loaded: LspHalf) -> None:
    loaded.notify("textDocument/didOpen", OPEN)
    loaded.shutdown()
    loaded.notify("textDocument/didClose", {"textDocument": {"uri": URI}})
    assert loaded.text(URI) == ("one\ntwo\n", 1)
    with pytest.raises(ServerCancelled):
        await loaded.request("workspace/executeCommand", {}, asyncio.Event())


def test_a_loop_that_ends_while_loading_is_no_error(half: LspHalf) -> None:
    async def begin() -> None:
        half.start_loading()

    asyncio.run(begin())
    for thread in importing_threads():
        thread.join(timeout=60)
    assert half.documents() == []


async def test_the_garbage_collector_is_left_as_it_was(half: LspHalf) -> None:
    assert gc.isenabled()
    await half.loaded()
    assert gc.isenabled()


class OneCommand:
    """Stands for the sidecar's commands."""

    def __init__(self) -> None:
        self.executed: list[Any] = []
        self.cancelled: list[Any] = []

    def takes(self, params: Any) -> bool:
        return params["command"] == "sidecar.run"

    async def execute(self, params: Any, stop: asyncio.Event) -> Any:
        self.executed.append(params)
        await stop.wait()
        return {"status": "cancelled"}

    def cancel_progress(self, params: Any) -> None:
        self.cancelled.append(params)


async def test_the_sidecars_commands_do_not_need_the_language_server(
    half: LspHalf, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "sidecar.lsp.engine", None)
    half.serve(OneCommand(), NO_ACTIONS)
    stop = asyncio.Event()
    stop.set()
    params = {"command": "sidecar.run"}
    assert await half.request("workspace/executeCommand", params, stop) == {"status": "cancelled"}
    with pytest.raises(CapabilityRequired):
        await half.request("workspace/executeCommand", {"command": "other"}, stop)


async def test_a_command_begins_after_the_documents_that_came_before_it(half: LspHalf) -> None:
    commands = OneCommand()
    half.serve(commands, NO_ACTIONS)
    half.notify("textDocument/didOpen", OPEN)
    stop = asyncio.Event()
    request = asyncio.create_task(half.request("workspace/executeCommand", {"command": "sidecar.run"}, stop))
    await asyncio.sleep(0)
    assert commands.executed == []
    await half.loaded()
    stop.set()
    await request
    assert half.documents() == [DocumentInfo(URI, 1, "markdown")]


def test_progress_is_cancelled_at_once_and_not_after_shutdown(half: LspHalf) -> None:
    half.notify("window/workDoneProgress/cancel", {"token": 0})
    commands = OneCommand()
    half.serve(commands, NO_ACTIONS)
    assert half.handles("window/workDoneProgress/cancel")
    half.notify("window/workDoneProgress/cancel", {"token": 1})
    half.shutdown()
    half.notify("window/workDoneProgress/cancel", {"token": 2})
    assert commands.cancelled == [{"token": 1}]
