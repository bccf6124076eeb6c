"""Edits of open documents: only of the version that they were made for, and waited for until the text is in step."""

import asyncio
from typing import Any

import pytest

from providers.api.editor import EditFailed, OpenDocument, TextChange
from sidecar.lsp.half import LspHalf
from sidecar.server import attached_editor
from sidecar.server.attached_editor import AttachedEditor
from sidecar.sessions.outlet import AskFailed

URI = "file:///a%20b.py"
CAPABLE = {"capabilities": {"workspace": {"applyEdit": True}, "window": {"showDocument": {"support": True}}}}
CHANGES = [TextChange(0, 1, "b")]


class Scene:
    """An editor with one document, and what it does when it is asked."""

    def __init__(self) -> None:
        self.half = LspHalf(lambda body: None)
        self.half.initialize({})
        self.editor = AttachedEditor(self.half, self.ask, CAPABLE)
        self.asked: list[str] = []
        self.answers: dict[str, Any] = {"workspace/applyEdit": {"applied": True}, "window/showDocument": None}
        self.before_answer: list[tuple[str, int]] = []

    async def ask(self, method: str, params: Any, *, timeout: float | None = None, answered: Any = None) -> Any:
        self.asked.append(method)
        if method == "workspace/applyEdit":
            for text, version in self.before_answer:
                self.change(text, version)
        answer = self.answers[method]
        if isinstance(answer, Exception):
            raise answer
        return answer

    def change(self, text: str, version: int) -> None:
        params = {"textDocument": {"uri": URI, "version": version}, "contentChanges": [{"text": text}]}
        self.half.notify("textDocument/didChange", params)

    async def opened(self, text: str) -> OpenDocument:
        document = {"uri": URI, "languageId": "python", "version": 1, "text": text}
        self.half.notify("textDocument/didOpen", {"textDocument": document})
        (found,) = await self.editor.open_documents()
        return found


@pytest.fixture
def scene() -> Scene:
    return Scene()


async def test_a_document_that_has_moved_on_is_not_edited(scene: Scene) -> None:
    document = await scene.opened("a")
    scene.change("a", 2)
    with pytest.raises(EditFailed, match="another version"):
        await scene.editor.edit(document, CHANGES)
    assert scene.asked == []


async def test_changes_that_come_one_by_one_and_late_are_waited_for(scene: Scene) -> None:
    document = await scene.opened("a")
    edit = asyncio.create_task(scene.editor.edit(document, CHANGES))
    await asyncio.sleep(0)
    scene.change("ab", 2)
    await asyncio.sleep(0)
    assert not edit.done()
    scene.change("b", 3)
    async with asyncio.timeout(10):
        assert await edit == OpenDocument(URI, "python", 3, "b")
    await asyncio.sleep(0)
    assert scene.asked == ["workspace/applyEdit", "window/showDocument"]


async def test_changes_that_come_before_the_answer_are_seen(scene: Scene) -> None:
    document = await scene.opened("a")
    scene.before_answer = [("b", 2)]
    async with asyncio.timeout(10):
        assert (await scene.editor.edit(document, CHANGES)).version == 2


async def test_a_document_that_the_editor_closes_meanwhile_is_not_said_to_be_edited(scene: Scene) -> None:
    document = await scene.opened("a")
    edit = asyncio.create_task(scene.editor.edit(document, CHANGES))
    await asyncio.sleep(0)
    scene.half.notify("textDocument/didClose", {"textDocument": {"uri": URI}})
    with pytest.raises(EditFailed, match="closed"):
        await edit


async def test_what_else_has_changed_is_told_when_the_time_is_over(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(attached_editor, "IN_STEP_S", 0.01)
    document = await scene.opened("a")
    scene.before_answer = [("b and more", 2)]
    assert (await scene.editor.edit(document, CHANGES)).text == "b and more"
    assert scene.asked == ["workspace/applyEdit"]


async def test_an_editor_that_has_gone_has_made_nothing(scene: Scene) -> None:
    document = await scene.opened("a")
    scene.answers["workspace/applyEdit"] = AskFailed(0, "gone")
    with pytest.raises(EditFailed, match="the editor has gone"):
        await scene.editor.edit(document, CHANGES)


async def test_an_editor_that_shows_nothing_has_edited_all_the_same(scene: Scene) -> None:
    document = await scene.opened("a")
    scene.before_answer = [("b", 2)]
    scene.answers["window/showDocument"] = AskFailed(-32601, "no")
    assert (await scene.editor.edit(document, CHANGES)).text == "b"
    await asyncio.sleep(0)
    assert scene.asked[-1] == "window/showDocument"
