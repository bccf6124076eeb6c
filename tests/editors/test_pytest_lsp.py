"""A whole conversation by pytest-lsp: pygls at the other end, which holds what it is sent against LSP's types."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from importlib.metadata import version
from typing import Any

import pytest
from lsprotocol import types

from tests.bench.clients_run import note
from tests.editors.conftest import BEGINNING, LOOKS_UP, STALLS, Workspace

pytest_lsp = pytest.importorskip("pytest_lsp", reason="no pytest-lsp here; .ci/run installs it")

TOKEN = "the client's own"


class Editor:
    """A pygls client that says what it takes, and one sidecar."""

    def __init__(self, client: Any) -> None:
        self.client = client
        self.process: asyncio.subprocess.Process = client._server
        self.events: list[Any] = []
        self._changed = asyncio.Event()
        client.progress_reports[TOKEN] = []

        @client.feature("run/event")
        def take(event: Any) -> None:
            self.events.append(event)
            self._changed.set()

        self.questions: list[str] = []

        @client.feature(types.WINDOW_SHOW_MESSAGE_REQUEST)
        def answer(params: types.ShowMessageRequestParams) -> types.MessageActionItem:
            self.questions.append(params.message)
            return next(action for action in params.actions or () if action.title == "Allow once")

        @client.feature("host/callTool")
        def call(params: Any) -> dict[str, Any]:
            return {"content": f"{params.arguments.key} is here"}

    async def end(self) -> None:
        """Let go of the process, whatever state it is in; pygls would wait for it."""
        if self.process.returncode is None:
            self.process.kill()
        await self.client.stop()

    async def initialize(self, workspace: Workspace) -> types.InitializeResult:
        """Say what an editor says of itself; nothing of the sidecar's own."""
        return await self.client.initialize_session(
            types.InitializeParams(
                capabilities=types.ClientCapabilities(
                    text_document=types.TextDocumentClientCapabilities(),
                    window=types.WindowClientCapabilities(
                        work_done_progress=True, show_message=types.ShowMessageRequestClientCapabilities()
                    ),
                ),
                workspace_folders=[types.WorkspaceFolder(workspace.root.as_uri(), "workspace")],
            )
        )

    async def ask(self, method: str, params: Any = None) -> Any:
        """A request of the sidecar's own."""
        return await self.client.protocol.send_request_async(method, params)

    async def until(self, condition: Callable[[], Any]) -> None:
        """Wait until something is true of the events."""
        async with asyncio.timeout(30):
            while not condition():
                self._changed.clear()
                await self._changed.wait()

    def text(self, run_id: str) -> str:
        """What was streamed of a run."""
        return "".join(event.data.text for event in self.events if event.runId == run_id and "delta" in event.type)

    def durable(self, session_id: str) -> list[Any]:
        """A session's events that a replay brings again."""
        events = (event for event in self.events if event.sessionId == session_id)
        return [event for event in events if not getattr(event, "ephemeral", False)]


@pytest.fixture
async def start(workspace: Workspace) -> AsyncIterator[Callable[[], Awaitable[Editor]]]:
    """Starts sidecars with a client each."""
    config = pytest_lsp.ClientServerConfig(workspace.command, server_env=workspace.environment)
    async with AsyncExitStack() as stack:

        async def start() -> Editor:
            editor = Editor(await config.start())
            stack.push_async_callback(editor.end)
            return editor

        yield start


async def test_a_whole_conversation_by_pytest_lsp(
    workspace: Workspace, start: Callable[[], Awaitable[Editor]], record_property: Any
) -> None:
    editor = await start()
    client = editor.client
    capabilities = (await editor.initialize(workspace)).capabilities
    assert capabilities.execute_command_provider is not None
    assert "sidecar.run" in capabilities.execute_command_provider.commands

    notes = (workspace.root / "notes.md").as_uri()
    client.text_document_did_open(
        types.DidOpenTextDocumentParams(types.TextDocumentItem(notes, types.LanguageKind.Markdown, 1, "as it was"))
    )
    client.text_document_did_change(
        types.DidChangeTextDocumentParams(
            types.VersionedTextDocumentIdentifier(uri=notes, version=2),
            [types.TextDocumentContentChangeWholeDocument("unsaved")],
        )
    )

    # As a host: our own methods.
    created = await editor.ask("createSession", {"sessionId": "s"})
    assert created.session.cwd == str(workspace.root)
    result = await editor.ask("run", {"sessionId": "s", "runId": "r1", "input": "hello"})
    assert result.text == editor.text("r1") == "You said: hello"
    story = asyncio.ensure_future(editor.ask("run", {"sessionId": "s", "runId": "r2", "input": STALLS}))
    await editor.until(lambda: editor.text("r2") == BEGINNING)
    assert (await editor.ask("getState", {"sessionId": "s"})).activeRun.runId == "r2"
    assert (await editor.ask("cancelRun", {"sessionId": "s"})).status == "cancelling"
    assert (await story).status == "cancelled"

    schema = {"type": "object", "properties": {"key": {"type": "string"}}}
    lookup = {"name": "lookup", "description": "Looks it up", "inputSchema": schema, "approvalMode": "always_require"}
    await editor.ask("createSession", {"sessionId": "tools", "tools": [lookup]})
    looked = await editor.ask("run", {"sessionId": "tools", "runId": "r1", "input": LOOKS_UP})
    assert looked.text == "It says: 饺子 is here"
    assert [question.splitlines()[0] for question in editor.questions] == ["Run lookup?"]

    # As a plain language client: commands. Their events are shown, not sent.
    events = len(editor.events)
    command = types.ExecuteCommandParams("sidecar.run", arguments=["hello"], work_done_token=TOKEN)
    assert (await client.workspace_execute_command_async(command))["text"] == "You said: hello"
    assert client.messages[-1].message == "You said: hello"
    kinds = [report.kind for report in client.progress_reports[TOKEN]]
    assert (kinds[0], kinds[-1]) == ("begin", "end")
    state = await client.workspace_execute_command_async(types.ExecuteCommandParams("sidecar.showState"))
    assert state["documents"] == [{"uri": notes, "version": 2, "languageId": "markdown"}]
    assert len(editor.events) == events

    # The process dies in the middle of a run; another one knows all of it.
    lost = asyncio.ensure_future(editor.ask("run", {"sessionId": "s", "runId": "r3", "input": STALLS}))
    await editor.until(lambda: editor.text("r3") == BEGINNING)
    before = [event.type for event in editor.durable("s")]
    editor.process.kill()
    with pytest.raises(RuntimeError, match="exited"):
        await lost
    editor = await start()
    await editor.initialize(workspace)
    resumed = await editor.ask("resumeSession", {"sessionId": "s", "replayFrom": {"type": "start"}})
    await editor.until(lambda: len(editor.events) >= resumed.lastSeq)
    assert resumed.recovered.interruptedRuns == ["r3"]
    assert [event.type for event in editor.durable("s")] == [*before, "run.completed"]
    assert editor.events[-1].data.status == "interrupted"
    assert (await editor.ask("run", {"sessionId": "s", "input": "again"})).text == "You said: again"

    await editor.client.shutdown_session()
    assert await editor.process.wait() == 0
    note(record_property, "pytest-lsp (pygls)", f"{version('pytest-lsp')} (pygls {version('pygls')})")
