"""Code actions and edits by pytest-lsp: pygls at the other end holds what it is sent against LSP's types."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from lsprotocol import types
from pygls.workspace import PositionCodec

from tests.editors.conftest import Workspace

pytest_lsp = pytest.importorskip("pytest_lsp", reason="no pytest-lsp here; .ci/run installs it")

TEXT = "def half(n):\r\n    return '😋' / n\r\n"
FIXED = "def half(n):\r\n    return n / 2  # 😋\r\n"

_MODEL = """
[[reply]]
when_tool = "edit_document"
text = "{{result}}"

[[reply]]
when = "Find and fix"
calls = [{{ name = "edit_document", arguments = {{ uri = "{uri}", version = 1, edits = [
  {{ old_string = "'😋' / n\\n", new_string = "n / 2  # 😋\\n" }},
] }} }}]
"""


class Editor:
    """A pygls client with one document, whose user allows what it is asked."""

    def __init__(self, client: Any, uri: str) -> None:
        self.client = client
        self.uri = uri
        self.document = types.TextDocumentItem(uri, types.LanguageKind.Python, 1, TEXT)
        self.questions: list[types.ShowMessageRequestParams] = []
        # lsprotocol 2025.0.0 takes whatever has a command for a `Command`, as a code action may.
        converter = client.protocol._converter
        converter.register_structure_hook(
            types.Command | types.CodeAction,
            lambda value, _: converter.structure(value, types.CodeAction if "kind" in value else types.Command),
        )
        client.feature(types.WINDOW_SHOW_MESSAGE_REQUEST)(lambda params: self.answer(params))
        client.feature(types.WORKSPACE_APPLY_EDIT)(lambda params: self.apply(params))

    def answer(self, params: types.ShowMessageRequestParams) -> types.MessageActionItem:
        self.questions.append(params)
        assert params.actions is not None
        return next(action for action in params.actions if action.title == "Allow once")

    def apply(self, params: types.ApplyWorkspaceEditParams) -> types.ApplyWorkspaceEditResult:
        (change,) = params.edit.document_changes or ()
        assert isinstance(change, types.TextDocumentEdit)
        assert change.text_document == types.OptionalVersionedTextDocumentIdentifier(self.uri, self.document.version)
        (edit,) = change.edits
        lines = self.document.text.splitlines(keepends=True)
        span = PositionCodec(types.PositionEncodingKind.Utf16).range_from_client_units(lines, edit.range)
        before = "".join(lines[: span.start.line]) + lines[span.start.line][: span.start.character]
        behind = [*lines, ""][span.end.line][span.end.character :] + "".join(lines[span.end.line + 1 :])
        self.document.text, self.document.version = before + edit.new_text + behind, self.document.version + 1
        self.client.text_document_did_change(
            types.DidChangeTextDocumentParams(
                types.VersionedTextDocumentIdentifier(self.document.version, self.uri),
                [types.TextDocumentContentChangeWholeDocument(self.document.text)],
            )
        )
        return types.ApplyWorkspaceEditResult(applied=True)


@pytest.fixture
async def editor(workspace: Workspace, tmp_path: Path) -> AsyncIterator[Editor]:
    """An editor with an open document."""
    uri = (workspace.root / "half.py").as_uri()
    (tmp_path / "model.toml").write_text(_MODEL.format(uri=uri), "utf-8")
    config = pytest_lsp.ClientServerConfig(workspace.command, server_env=workspace.environment)
    client = await config.start()
    try:
        yield Editor(client, uri)
        await client.shutdown_session()
        assert await client._server.wait() == 0
    finally:
        if client._server.returncode is None:
            client._server.kill()
        await client.stop()


async def test_a_diagnostic_is_fixed_by_the_code_action_that_carries_it(editor: Editor, workspace: Workspace) -> None:
    client = editor.client
    answer = await client.initialize_session(
        types.InitializeParams(
            capabilities=types.ClientCapabilities(
                text_document=types.TextDocumentClientCapabilities(
                    code_action=types.CodeActionClientCapabilities(
                        code_action_literal_support=types.ClientCodeActionLiteralOptions(
                            types.ClientCodeActionKindOptions([types.CodeActionKind.QuickFix])
                        )
                    )
                ),
                window=types.WindowClientCapabilities(show_message=types.ShowMessageRequestClientCapabilities()),
                workspace=types.WorkspaceClientCapabilities(
                    apply_edit=True, workspace_edit=types.WorkspaceEditClientCapabilities(document_changes=True)
                ),
            ),
            workspace_folders=[types.WorkspaceFolder(workspace.root.as_uri(), "workspace")],
        )
    )
    assert isinstance(answer.capabilities.code_action_provider, types.CodeActionOptions)
    client.text_document_did_open(types.DidOpenTextDocumentParams(editor.document))
    place = types.Range(types.Position(1, 11), types.Position(1, 19))
    diagnostic = types.Diagnostic(place, "str / int", severity=types.DiagnosticSeverity.Error, source="pyright")
    asked = types.CodeActionParams(
        types.TextDocumentIdentifier(editor.uri),
        place,
        types.CodeActionContext([diagnostic], only=[types.CodeActionKind.QuickFix]),
    )

    (fix,) = await client.text_document_code_action_async(asked)

    assert isinstance(fix, types.CodeAction)
    assert (fix.title, fix.kind) == ("Fix with agent", types.CodeActionKind.QuickFix)
    assert list(fix.diagnostics or ()) == [diagnostic]
    assert fix.command is not None
    result = await client.workspace_execute_command_async(
        types.ExecuteCommandParams(fix.command.command, fix.command.arguments)
    )
    assert result["text"] == f"Edited {editor.uri}: 1 place(s). It has version 2 now."
    assert editor.document.text == FIXED
    (question,) = editor.questions
    assert question.message.endswith("-     return '😋' / n\n+     return n / 2  # 😋")
