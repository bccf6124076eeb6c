"""What stock pygls does to messages, and what our engine around it must not: one test for each trap.

Each names what pygls 2.1 does. An update of pygls cannot bring a trap back, nor take away what we build on.
"""

import asyncio
import json
import logging
from typing import Any

import pytest
from lsprotocol import types
from pygls.lsp.server import LanguageServer

from sidecar.errors import InvalidParams, MethodNotFound, ServerCancelled, SidecarError
from sidecar.lsp import half
from sidecar.lsp.engine import Engine

URI = "file:///home/a%20b.py"
SECRET = "the user's own words"


@pytest.fixture
def sent() -> list[Any]:
    return []


@pytest.fixture
def engine(sent: list[Any]) -> Engine:
    engine = Engine(lambda body: sent.append(json.loads(body)))
    engine.initialize({})
    return engine


def open_document(engine: Engine, text: str, **fields: Any) -> None:
    item = {"uri": URI, "languageId": "python", "version": 1, "text": text, **fields}
    engine.notify("textDocument/didOpen", {"textDocument": item})


def change_document(engine: Engine, *changes: dict[str, Any], version: int = 2, uri: str = URI) -> None:
    document = {"uri": uri, "version": version}
    engine.notify("textDocument/didChange", {"textDocument": document, "contentChanges": list(changes)})


def edit(text: str, line: int, start: int, end: int) -> dict[str, Any]:
    span = {"start": {"line": line, "character": start}, "end": {"line": line, "character": end}}
    return {"range": span, "text": text}


# What enters.


@pytest.mark.parametrize("method", sorted(half.SYNCED))
def test_pygls_serves_every_notification_that_it_is_fed(method: str) -> None:
    """An unknown one would have its params turned into nested namedtuples."""
    assert method in LanguageServer("probe", "0").protocol.fm.builtin_features


@pytest.mark.parametrize("method", sorted(half.ACCEPTED))
def test_what_is_accepted_without_effect_has_none_in_pygls(method: str) -> None:
    assert method not in LanguageServer("probe", "0").protocol.fm.builtin_features
    assert method in types.METHOD_TO_TYPES


@pytest.mark.parametrize(
    "field",
    [
        {"text": None},
        {"text": 5},
        {"text": ["x"]},
        {"uri": None},
        {"version": "1"},
        {"version": True},
        {"version": 1.5},
    ],
    ids=str,
)
def test_a_value_of_the_wrong_type_is_refused_and_not_converted(engine: Engine, field: dict[str, Any]) -> None:
    """Stock: a text of null opens a document that says "None"."""
    with pytest.raises(InvalidParams) as caught:
        open_document(engine, **{"text": "x", **field})
    (name,) = field
    assert caught.value.wire()["data"]["errors"][0]["path"] == f"textDocument.{name}"
    assert engine.documents() == []


def test_an_integer_may_be_written_as_a_float(engine: Engine) -> None:
    open_document(engine, "x", version=3.0)
    assert engine.text(URI) == ("x", 3)


def test_enumerations_are_still_read(engine: Engine) -> None:
    engine.notify("$/setTrace", {"value": "verbose"})
    assert engine.server.protocol.trace is types.TraceValue.Verbose


@pytest.mark.parametrize("params", [{}, [], [1], "text", 7, {"textDocument": None}, {"textDocument": {"uri": URI}}])
def test_params_of_the_wrong_shape_are_named_by_path_and_never_repeated(engine: Engine, params: Any) -> None:
    with pytest.raises(InvalidParams, match="textDocument") as caught:
        engine.notify("textDocument/didOpen", params)
    assert all(problem["path"].startswith("textDocument") for problem in caught.value.fields["errors"])


def test_a_refused_change_says_where_it_is_wrong_without_saying_what_it_held(engine: Engine) -> None:
    open_document(engine, "x")
    with pytest.raises(InvalidParams) as caught:
        change_document(engine, {"text": "fine"}, {"text": SECRET, "range": {"start": {"line": SECRET}, "end": {}}})
    assert "contentChanges[1].range.start.line: must be of type int" in caught.value.message
    assert SECRET not in json.dumps(caught.value.wire())
    assert engine.text(URI) == ("x", 1)


async def test_free_form_arguments_arrive_as_they_were_sent(engine: Engine) -> None:
    """Stock: a nested `jsonrpc` key makes a message of it, and keys that are no identifiers are renamed."""
    argument = {
        "jsonrpc": "2.0",
        "method": "exit",
        "a b": {"class": [1.5, None, {"type_name": "T"}]},
        "": True,
        "1": "x",
    }

    @engine.server.command("echo")
    def echo(value: Any) -> Any:
        return value

    result = await engine.request("workspace/executeCommand", {"command": "echo", "arguments": [argument]})

    assert result == argument


# Text.


def test_changes_are_counted_in_utf_16_with_surrogate_pairs(engine: Engine) -> None:
    open_document(engine, "a😋b😋c\n漢😋字\n")
    change_document(engine, edit("X", 0, 3, 6), edit("", 1, 1, 3))
    assert engine.text(URI) == ("a😋Xc\n漢字\n", 2)


def test_changes_are_counted_in_the_encoding_that_was_negotiated(sent: list[Any]) -> None:
    engine = Engine(sent.append)
    engine.initialize({"capabilities": {"general": {"positionEncodings": ["utf-8"]}}})
    open_document(engine, "é😋b")
    change_document(engine, edit("X", 0, 2, 6))
    assert engine.text(URI) == ("éXb", 2)


@pytest.mark.parametrize("separator", ["\x0b", "\x0c", "\x1c", "\x85", "\u2028", "\u2029"])
def test_lines_end_only_where_the_editor_ends_them(engine: Engine, separator: str) -> None:
    """Stock: a form feed counts as a line end, and every change below it lands in the wrong line."""
    open_document(engine, f"a{separator}b\nc\n")
    change_document(engine, edit("Z", 1, 0, 1))
    assert engine.text(URI) == (f"a{separator}b\nZ\n", 2)


def test_a_position_behind_the_last_line_is_its_end(engine: Engine) -> None:
    """Stock: one place too early, if the line has no newline."""
    open_document(engine, "abc")
    change_document(engine, edit("d", 0, 99, 99))
    assert engine.text(URI) == ("abcd", 2)


def test_a_change_without_content_still_moves_the_version(engine: Engine) -> None:
    open_document(engine, "abc")
    change_document(engine, version=7)
    assert engine.text(URI) == ("abc", 7)


def test_documents_are_found_however_their_uri_is_escaped(engine: Engine) -> None:
    open_document(engine, "abc")
    assert engine.text("file:///home/a b.py") == ("abc", 1)


def test_an_unopened_document_is_not_read_from_the_disk(engine: Engine, tmp_path: Any) -> None:
    """Stock: its look-up falls back to the file."""
    (tmp_path / "on_disk.py").write_text(SECRET)
    assert engine.text((tmp_path / "on_disk.py").as_uri()) is None


def test_a_change_of_an_unopened_document_is_refused(engine: Engine, sent: list[Any]) -> None:
    """Stock: shows the user "Error in server: KeyError"."""
    with pytest.raises(InvalidParams):
        change_document(engine, {"text": "x"}, uri="file:///elsewhere")
    assert sent == []


# Folders.


def test_a_renamed_folder_stays(engine: Engine) -> None:
    """Stock: adds before it removes, so that the folder is gone."""
    old, new, other = (
        {"uri": uri, "name": name} for uri, name in [("file:///w", "old"), ("file:///w", "new"), ("file:///o", "o")]
    )
    for event in ({"added": [old], "removed": []}, {"added": [new, other], "removed": [old]}):
        engine.notify("workspace/didChangeWorkspaceFolders", {"event": event})
    assert engine.workspace_folders() == ["file:///w", "file:///o"]


@pytest.mark.parametrize(
    ("params", "folders"),
    [
        ({}, []),
        ({"rootUri": "file:///r"}, ["file:///r"]),
        ({"rootUri": "file:///r", "workspaceFolders": []}, []),
        ({"rootUri": "file:///r", "workspaceFolders": [{"uri": "file:///w", "name": "w"}]}, ["file:///w"]),
        ({"capabilities": {"textDocument": {"completion": 7}}, "rootUri": "file:///r"}, ["file:///r"]),
        ({"processId": "seven", "rootUri": "file:///r"}, ["file:///r"]),
        ({"rootUri": "http://[", "workspaceFolders": 5}, []),
        ({"rootUri": "http://["}, []),
    ],
    ids=str,
)
def test_initialize_of_any_quality_starts_the_workspace(
    sent: list[Any], params: dict[str, Any], folders: list[str]
) -> None:
    """Stock: `initialize {}` is invalid, and one malformed capability refuses the whole."""
    engine = Engine(sent.append)
    engine.initialize(params)
    open_document(engine, "x")
    assert engine.workspace_folders() == folders
    assert engine.text(URI) == ("x", 1)
    assert sent == []


def test_secrets_of_initialize_do_not_enter_pygls(sent: list[Any], caplog: pytest.LogCaptureFixture) -> None:
    engine = Engine(sent.append)
    seen: list[types.InitializeParams] = []

    @engine.server.feature(types.INITIALIZE)
    def look(params: types.InitializeParams) -> None:
        seen.append(params)

    with caplog.at_level(logging.DEBUG):
        engine.initialize({"initializationOptions": {"sidecar": {"secrets": {"key": SECRET}}}})
    assert [params.initialization_options for params in seen] == [None]
    assert SECRET not in caplog.text


# What leaves.


def test_nothing_is_sent_for_what_comes_in(engine: Engine, sent: list[Any]) -> None:
    open_document(engine, "x")
    change_document(engine, {"text": "y"})
    engine.notify("$/setTrace", {"value": "verbose"})
    engine.notify("textDocument/didClose", {"textDocument": {"uri": URI}})
    assert engine.documents() == []
    assert sent == []


def test_what_a_feature_sends_goes_out_as_strict_json(sent: list[Any]) -> None:
    """Stock: NaN is written as `NaN`."""
    engine = Engine(sent.append)
    engine.server.protocol.notify("telemetry/event", {"share": float("nan")})
    assert json.loads(sent[0], parse_constant=pytest.fail)["params"] == {"share": None}


async def test_a_failing_notification_handler_stays_in_the_log(
    engine: Engine, sent: list[Any], caplog: pytest.LogCaptureFixture
) -> None:
    """Stock: `window/showMessage` with the exception's text."""

    @engine.server.feature("textDocument/didOpen")
    def fail(_: Any) -> None:
        raise ValueError(SECRET)

    open_document(engine, SECRET)

    assert sent == []
    assert "ValueError" in caplog.text
    assert SECRET not in caplog.text


async def test_a_failing_command_answers_with_an_error_id_and_no_trace(
    engine: Engine, sent: list[Any], caplog: pytest.LogCaptureFixture
) -> None:
    """Stock: the traceback, with its paths, goes to the client."""

    @engine.server.command("fail")
    async def fail() -> None:
        raise ValueError(SECRET)

    with pytest.raises(SidecarError) as caught:
        await engine.request("workspace/executeCommand", {"command": "fail"})

    wire = caught.value.wire()
    assert wire["code"] == -32603
    assert set(wire["data"]) == {"kind", "retryable", "errorId"}
    assert SECRET not in wire["message"]
    assert wire["data"]["errorId"] in caplog.text
    assert "test_pygls_contract.py" in caplog.text
    assert SECRET not in caplog.text
    assert sent == []


@pytest.mark.parametrize("asynchronous", [False, True])
async def test_a_result_that_is_no_json_is_answered_with_an_error(engine: Engine, asynchronous: bool) -> None:
    """Stock: no answer at all."""

    def unserialisable() -> Any:
        return object()

    async def later() -> Any:
        return object()

    engine.server.command("odd")(later if asynchronous else unserialisable)

    async with asyncio.timeout(5):
        with pytest.raises(SidecarError, match="internal error"):
            await engine.request("workspace/executeCommand", {"command": "odd"})


@pytest.mark.parametrize(
    "params", [{}, {"command": 5}, {"command": "no such"}, {"command": "one", "arguments": [1, 2]}]
)
async def test_bad_params_of_a_request_are_answered(engine: Engine, params: dict[str, Any]) -> None:
    """Stock: no answer at all to the first two."""

    @engine.server.command("one")
    def one(value: int) -> int:
        return value

    with pytest.raises(InvalidParams):
        await engine.request("workspace/executeCommand", params)


async def test_a_request_without_a_handler_is_answered(engine: Engine) -> None:
    params = {"textDocument": {"uri": URI}, "position": {"line": 0, "character": 0}}
    with pytest.raises(MethodNotFound):
        await engine.request("textDocument/hover", params)


async def test_a_cancelled_request_is_let_go_of_and_its_late_result_dropped(
    engine: Engine, sent: list[Any], caplog: pytest.LogCaptureFixture
) -> None:
    """Stock: cancelling does not reach a command's coroutine."""
    begun, go_on, done = asyncio.Event(), asyncio.Event(), asyncio.Event()

    @engine.server.command("wait")
    async def wait() -> str:
        begun.set()
        await go_on.wait()
        asyncio.get_running_loop().call_soon(done.set)
        return "late"

    request = asyncio.ensure_future(engine.request("workspace/executeCommand", {"command": "wait"}))
    await begun.wait()
    request.cancel()
    go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await request
    await done.wait()

    assert sent == []
    assert caplog.text == ""


async def test_shutdown_ends_every_request_under_way(engine: Engine) -> None:
    """Stock: changes the table of requests while it walks it."""
    begun, go_on = asyncio.Event(), asyncio.Event()

    @engine.server.command("wait")
    async def wait() -> None:
        begun.set()
        await go_on.wait()

    params = {"command": "wait"}
    requests = [asyncio.ensure_future(engine.request("workspace/executeCommand", params)) for _ in range(3)]
    await begun.wait()
    engine.shutdown()

    assert [type(error) for error in await asyncio.gather(*requests, return_exceptions=True)] == [ServerCancelled] * 3
    go_on.set()


def test_no_body_is_logged_at_any_level(engine: Engine, caplog: pytest.LogCaptureFixture) -> None:
    """Stock: INFO logs every body."""
    with caplog.at_level(logging.DEBUG):
        open_document(engine, SECRET)
        change_document(engine, edit(SECRET, 0, 0, 1))
        with pytest.raises(InvalidParams):
            engine.notify("textDocument/didOpen", {"textDocument": SECRET})
        engine.server.protocol.notify("telemetry/event", {"text": SECRET})
    assert SECRET not in caplog.text
