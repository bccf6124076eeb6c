"""The documents that a host names for a run: text that it sends, or what its editor keeps open. Reads no files."""

import re
from collections.abc import Sequence
from typing import Final

from protocol.base import JsonObject
from protocol.messages import EmbeddedResource, Message, ResourceBlock, Source
from protocol.runs import ContextItem
from sidecar.errors import InvalidParams, RevisionConflict

from .services import Documents

_LINE: Final = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")
"""A line as LSP counts them; Python's own `splitlines` breaks at more than that."""


async def context_messages(items: Sequence[ContextItem], documents: Documents) -> tuple[Message, ...]:
    """One user message that holds the documents, each as a resource.

    Raises:
        InvalidParams: a document without text is not open in the editor, or a range is no range.
        RevisionConflict: the editor has another version of it by now.
    """
    if not items:
        return ()
    if any(item.text is None for item in items):
        await documents.settled()
    blocks = tuple(
        ResourceBlock(resource=EmbeddedResource(uri=item.uri, text=_text(item, index, documents)))
        for index, item in enumerate(items)
    )
    return (Message(role="user", content=blocks, source=Source(type="run")),)


def _text(item: ContextItem, index: int, documents: Documents) -> str:
    text = item.text
    if text is None:
        synced = documents.text(item.uri)
        if synced is None:
            fault = {"path": f"context.{index}.text", "message": "missing, and the document is not open in the editor"}
            raise InvalidParams(f"context.{index}: send its text, or open the document first", [fault])
        text, version = synced
        if item.version is not None and item.version != version:
            raise RevisionConflict(
                f"{item.uri} has version {version} by now, not {item.version}; read it again", version
            )
    return text if item.range is None else _cut(text, item.range, index)


def _cut(text: str, span: JsonObject, index: int) -> str:
    """The part of a text between two LSP positions, counted in UTF-16 code units as LSP does by default."""
    try:
        (start_line, start), (end_line, end) = (
            (int(span[edge]["line"]), int(span[edge]["character"])) for edge in ("start", "end")
        )
    except (KeyError, TypeError, ValueError):
        fault = {"path": f"context.{index}.range", "message": "not an LSP range"}
        raise InvalidParams("a range is {start: {line, character}, end: {line, character}}", [fault]) from None
    lines = _LINE.findall(text)
    chosen = lines[max(start_line, 0) : end_line + 1]
    if not chosen or end_line < start_line:
        return ""
    if end_line < len(lines):
        chosen[-1] = _utf16(chosen[-1], 0, end)
    chosen[0] = _utf16(chosen[0], start, None)
    return "".join(chosen)


def _utf16(line: str, start: int, end: int | None) -> str:
    units = line.encode("utf-16-le")
    return units[2 * max(start, 0) : None if end is None else 2 * max(end, 0)].decode("utf-16-le", errors="ignore")
