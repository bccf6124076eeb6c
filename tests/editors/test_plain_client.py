"""Commands over the wire, by a client that writes its own bytes: order, cancellation, and what must not be sent."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.bench.host import FakeHost
from tests.editors.conftest import BEGINNING, STALLS, Workspace

Json = dict[str, Any]
EDITOR = {"capabilities": {"textDocument": {}, "window": {"workDoneProgress": True}}}
HOST = {**EDITOR, "initializationOptions": {"sidecar": {"protocolVersions": [1]}}}


@pytest.fixture
def start(start_host: Callable[..., Any], workspace: Workspace) -> Callable[..., Any]:
    """Starts sidecars that speak as a language server does."""
    store = f"sqlite:{workspace.root.parent / 'sessions.db'}"

    async def start(initialize: Json = EDITOR) -> FakeHost:
        host: FakeHost = await start_host(
            framing="header", store=store, env=workspace.environment, cwd=workspace.root, initialize=initialize
        )
        return host

    return start


@pytest.fixture
async def editor(start: Callable[..., Any]) -> FakeHost:
    """A plain editor."""
    return await start()


def command(name: str, *arguments: Any, **params: Any) -> Json:
    return {"command": name, "arguments": list(arguments), **params}


def sent(host: FakeHost, method: str) -> list[Json]:
    """What the sidecar sent under a name."""
    return [message for message in host.messages if message.get("method") == method]


def shown(host: FakeHost) -> list[tuple[int, str]]:
    return [(message["params"]["type"], message["params"]["message"]) for message in sent(host, "window/showMessage")]


def kinds(host: FakeHost) -> list[str]:
    return [message["params"]["value"]["kind"] for message in sent(host, "$/progress")]


async def until_shown(host: FakeHost, text: str) -> None:
    """Wait until the progress says it."""
    await host.until(
        lambda: any(text in message["params"]["value"].get("message", "") for message in sent(host, "$/progress"))
    )


async def execute(host: FakeHost, name: str, *arguments: Any, **params: Any) -> Any:
    return await host.request("workspace/executeCommand", command(name, *arguments, **params))


async def test_the_session_of_the_commands_is_stored_and_reused(editor: FakeHost, start: Callable[..., Any]) -> None:
    first = await execute(editor, "sidecar.run", "one")
    second = await execute(editor, "sidecar.run", {"input": "two"})
    assert second["sessionId"] == first["sessionId"]
    assert (await execute(editor, "sidecar.newSession"))["session"]["sessionId"] != first["sessionId"]
    assert (await execute(editor, "sidecar.run", "three"))["sessionId"] != first["sessionId"]

    again = await start()
    history = await again.request("getHistory", {"sessionId": first["sessionId"]})
    texts = [block["text"] for message in history["messages"] for block in message["content"]]
    assert texts == ["one", "You said: one", "two", "You said: two"]


@pytest.mark.parametrize("initialize", [EDITOR, HOST], ids=["editor", "host"])
async def test_events_of_a_command_go_to_clients_that_know_them(start: Callable[..., Any], initialize: Json) -> None:
    host: FakeHost = await start(initialize)
    result = await execute(host, "sidecar.run", "hello", workDoneToken=1)
    assert kinds(host)[-1] == "end"
    methods = {message["method"] for message in host.messages if "method" in message}
    assert methods - {"$/progress", "window/showMessage"} == ({"run/event"} if initialize is HOST else set())

    # A run that the client asked for itself is its own, whichever client it is.
    asked = {"sessionId": result["sessionId"], "runId": "mine", "input": "hello"}
    assert (await host.request("run", asked))["lastSeq"] == host.events()[-1]["seq"]
    assert {event["runId"] for event in host.events()} - {"mine"} == (
        {result["runId"]} if initialize is HOST else set()
    )


async def test_a_cancel_right_behind_its_command_finds_it(editor: FakeHost) -> None:
    asked = editor.ask("workspace/executeCommand", command("sidecar.run", STALLS))
    asked.cancel()
    result = await asked.result()
    assert (result["status"], result["text"]) == ("cancelled", "")
    state = await execute(editor, "sidecar.showState")
    assert state["session"]["status"] == "idle"


async def test_a_command_is_cancelled_by_another_command(editor: FakeHost) -> None:
    asked = editor.ask("workspace/executeCommand", command("sidecar.run", STALLS, workDoneToken="t"))
    await until_shown(editor, BEGINNING)
    assert await execute(editor, "sidecar.cancel") == {"status": "cancelling"}
    assert (await asked.result())["text"] == BEGINNING
    assert await execute(editor, "sidecar.cancel") == {"status": "notRunning"}


async def test_a_second_run_on_a_busy_session_is_refused_and_the_first_goes_on(editor: FakeHost) -> None:
    first = editor.ask("workspace/executeCommand", command("sidecar.run", STALLS, workDoneToken="t"))
    await until_shown(editor, BEGINNING)
    refusal = await editor.refusal("workspace/executeCommand", command("sidecar.run", "hello"))
    assert refusal.kind == "sessionBusy"
    ((kind, told),) = shown(editor)
    assert (kind, "sidecar.cancel" in told) == (1, True)
    await execute(editor, "sidecar.cancel")
    assert (await first.result())["status"] == "cancelled"


async def test_shutdown_is_answered_while_a_command_runs_and_so_is_the_command(editor: FakeHost) -> None:
    asked = editor.ask("workspace/executeCommand", command("sidecar.run", STALLS, workDoneToken="t"))
    await until_shown(editor, BEGINNING)
    assert await editor.request("shutdown") is None
    assert (await asked.result())["status"] == "interrupted"
    assert kinds(editor)[-1] == "end"


async def test_progress_that_the_client_was_asked_for_begins_when_it_agrees(editor: FakeHost) -> None:
    asked = editor.ask("workspace/executeCommand", command("sidecar.run", STALLS))
    (create,) = await editor.until(lambda: sent(editor, "window/workDoneProgress/create"))
    assert kinds(editor) == []
    editor.send({"jsonrpc": "2.0", "id": create["id"], "result": None})
    await until_shown(editor, BEGINNING)
    editor.notify("window/workDoneProgress/cancel", create["params"])
    assert (await asked.result())["status"] == "cancelled"
    assert {message["params"]["token"] for message in sent(editor, "$/progress")} == {create["params"]["token"]}


async def test_a_refused_or_late_answer_costs_nothing_but_the_progress(editor: FakeHost) -> None:
    asked = editor.ask("workspace/executeCommand", command("sidecar.run", STALLS))
    (create,) = await editor.until(lambda: sent(editor, "window/workDoneProgress/create"))
    editor.send({"jsonrpc": "2.0", "id": create["id"], "error": {"code": -32601, "message": "no"}})
    editor.send({"jsonrpc": "2.0", "id": create["id"], "result": None})
    editor.send({"jsonrpc": "2.0", "id": 12345, "result": None})
    asked.cancel()
    assert (await asked.result())["status"] == "cancelled"
    assert kinds(editor) == []

    # Not answered at all: told that nobody waits any more.
    await execute(editor, "sidecar.run", "hello")
    create = sent(editor, "window/workDoneProgress/create")[-1]
    assert [message["params"] for message in sent(editor, "$/cancelRequest")] == [{"id": create["id"]}]


@pytest.mark.parametrize(
    "params",
    [
        None,
        {"command": "sidecar.unknown"},
        {"command": 5},
        {"command": "sidecar.run"},
        {"command": "sidecar.run", "arguments": {"input": "no list"}},
        {"command": "sidecar.run", "arguments": [{"input": {"no": "input"}}]},
        {"command": "sidecar.newSession", "arguments": [{"cwd": 5}]},
    ],
    ids=str,
)
async def test_what_does_not_fit_is_invalid_params(editor: FakeHost, params: Any) -> None:
    refusal = await editor.refusal("workspace/executeCommand", params)
    assert (refusal.code, refusal.kind) == (-32602, "invalidParams")


async def test_text_is_cleaned_as_at_the_wire(editor: FakeHost) -> None:
    assert (await execute(editor, "sidecar.run", "a\0b"))["text"] == "You said: a\ufffdb"


async def test_what_editors_send_unasked_is_taken_in_silence(editor: FakeHost) -> None:
    for method, params in (
        ("initialized", {}),
        ("$/setTrace", {"value": "off"}),
        ("workspace/didChangeConfiguration", {"settings": None}),
        ("workspace/didChangeWatchedFiles", {"changes": []}),
        ("textDocument/didSave", {"textDocument": {"uri": "file:///a"}}),
        ("window/workDoneProgress/cancel", {"token": "never heard of"}),
        ("$/unknown", None),
        ("of/noMethod", [1]),
    ):
        editor.notify(method, params)
    await execute(editor, "sidecar.showState")
    assert {message.get("method") for message in editor.messages} == {None, "window/showMessage"}
