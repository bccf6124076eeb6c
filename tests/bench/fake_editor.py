"""A plain editor at the other end of a fake host: keeps documents, makes edits as LSP says, presses buttons."""

from collections.abc import Callable
from typing import Any

from tests.bench.host import FakeHost
from tests.bench.wire import Json

APPLY_EDIT = "workspace/applyEdit"
MESSAGE_REQUEST = "window/showMessageRequest"
SHOW_DOCUMENT = "window/showDocument"

PLAIN: Json = {
    "capabilities": {
        "general": {"positionEncodings": ["utf-16"]},
        "textDocument": {"codeAction": {"codeActionLiteralSupport": {"codeActionKind": {"valueSet": ["quickfix"]}}}},
        "window": {"showMessage": {}, "showDocument": {"support": True}},
        "workspace": {"applyEdit": True, "workspaceEdit": {"documentChanges": True}},
    }
}
"""The params of its `initialize`."""


def without(*path: str) -> Json:
    """The same, with one capability missing."""

    def copied(value: Any, names: tuple[str, ...]) -> Any:
        if not isinstance(value, dict):
            return value
        first, rest = (names[0], names[1:]) if names else (None, ())
        return {
            name: copied(item, rest if name == first else ()) for name, item in value.items() if name != first or rest
        }

    return copied(PLAIN, ("capabilities", *path))


class FakeEditor:
    """Its documents, as they are on the user's screen; positions are in UTF-16."""

    def __init__(self, host: FakeHost) -> None:
        self.host = host
        self.texts: dict[str, str] = {}
        self.versions: dict[str, int] = {}
        self.presses = "Allow once"
        """The button that is pressed when it asks; empty: the message is closed."""
        self.before_press: Callable[[], None] = lambda: None
        """What its user does while it asks."""
        host.serves[MESSAGE_REQUEST] = self._press
        host.serves[APPLY_EDIT] = self.apply
        host.serves[SHOW_DOCUMENT] = lambda params: {"success": True}

    def opens(self, uri: str, text: str, version: int = 1) -> None:
        """The user opens a document."""
        self.texts[uri], self.versions[uri] = text, version
        document = {"uri": uri, "languageId": "python", "version": version, "text": text}
        self.host.notify("textDocument/didOpen", {"textDocument": document})

    def types(self, uri: str, text: str) -> None:
        """The user changes a document, all of it."""
        self.texts[uri] = text
        self.versions[uri] += 1
        identifier = {"uri": uri, "version": self.versions[uri]}
        self.host.notify("textDocument/didChange", {"textDocument": identifier, "contentChanges": [{"text": text}]})

    def closes(self, uri: str) -> None:
        """The user closes a document."""
        del self.texts[uri], self.versions[uri]
        self.host.notify("textDocument/didClose", {"textDocument": {"uri": uri}})

    def apply(self, params: Json) -> Json:
        """`workspace/applyEdit`: refused where a version is not the document's."""
        edit = params["edit"]
        by_document = {uri: (None, edits) for uri, edits in edit.get("changes", {}).items()}
        for one in edit.get("documentChanges", ()):
            by_document[one["textDocument"]["uri"]] = one["textDocument"]["version"], one["edits"]
        for uri, (version, edits) in by_document.items():
            if version not in (None, self.versions[uri]):
                return {"applied": False, "failureReason": "the buffer is newer"}
            self.types(uri, edited(self.texts[uri], edits))
        return {"applied": True}

    def _press(self, params: Json) -> Json | None:
        self.before_press()
        titles = [action["title"] for action in params["actions"]]
        return {"title": self.presses} if self.presses in titles else None


def edited(text: str, edits: list[Json]) -> str:
    """The text with LSP's `TextEdit`s made; positions count UTF-16 code units."""
    spans = [(_at(text, edit["range"]["start"]), _at(text, edit["range"]["end"]), edit["newText"]) for edit in edits]
    for start, end, new in sorted(spans, reverse=True):
        text = text[:start] + new + text[end:]
    return text


def _at(text: str, position: Json) -> int:
    line, begin = 0, 0
    while line < position["line"]:
        begin = min(found for end in "\r\n" if (found := text.find(end, begin)) >= 0)
        begin += 2 if text.startswith("\r\n", begin) else 1
        line += 1
    rest = text[begin:].encode("utf-16-le")[: 2 * position["character"]].decode("utf-16-le")
    assert "\n" not in rest
    return begin + len(rest)
