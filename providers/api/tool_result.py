"""What a tool returned, as the model and the host see it: content blocks, and JSON where it is some. Calls no tool."""

import dataclasses
import json
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any, Final, cast

from pydantic import BaseModel

from protocol.base import Json
from protocol.messages import Block, MediaBlock, ResourceBlock, ResourceLinkBlock, TextBlock

from .clean_text import clean_text

_MAX_DEPTH: Final = 100
"""Nested objects and arrays of a structured value; half of what the wire takes, for what it is sent in."""


class _SkipParsing:
    """Only one object, `SKIP_PARSING`, is of this class."""

    def __repr__(self) -> str:
        return "SKIP_PARSING"


SKIP_PARSING: Final = _SkipParsing()
"""As a tool's `result_parser`: what is neither text nor blocks is shown by `str`, and not as JSON."""

ResultParser = Callable[[Any], Any] | _SkipParsing

_CONTENT: Final = (TextBlock, MediaBlock, ResourceLinkBlock, ResourceBlock)
"""What may stand in a result. A call or an approval that a tool returns is data, and is not acted on."""


@dataclass(slots=True)
class ToolResult:
    """The outcome of a tool call. A tool that returns one has the last word on what the model sees."""

    content: tuple[Block, ...]
    structured: Json = None
    """The value as JSON, where it is an object or an array."""
    is_error: bool = False


def tool_result(value: Any, parser: ResultParser | None = None) -> ToolResult:
    """What a function returned, for the model. Text and blocks stay as they are; the rest becomes JSON, else `str`.

    Lone surrogates and NUL become U+FFFD, numbers that are not finite become null. The time grows with the value.

    Args:
        value: what the function returned.
        parser: the tool's own `result_parser`.

    Raises:
        Exception: the tool's own parser failed.
    """
    if parser is not None and not isinstance(parser, _SkipParsing):
        value = parser(value)
    match value:
        case ToolResult():
            content = tuple(map(cleaned_block, value.content))
            return replace(value, content=content, structured=_json(value.structured).structured)
        case None:
            return _text("")
        case str():
            return _text(str.__str__(value))  # a str that is an Enum shows itself otherwise
        case bytes() | bytearray():
            return _text(value.decode("utf-8", "replace"))
        case TextBlock() | MediaBlock() | ResourceLinkBlock() | ResourceBlock():
            return ToolResult((cleaned_block(value),))
        case list() | tuple() if any(isinstance(item, _CONTENT) for item in cast("Sequence[Any]", value)):
            parts = [tool_result(item) for item in cast("Sequence[Any]", value)]
            return ToolResult(tuple(block for part in parts for block in part.content))
        case _:
            return _text(_shown(value)) if parser is SKIP_PARSING else _json(value)


def error_result(text: str) -> ToolResult:
    """A failed call, told to the model as `text`."""
    return replace(_text(text), is_error=True)


def cut(result: ToolResult, max_bytes: int) -> ToolResult:
    """The result with at most `max_bytes` of UTF-8 in its blocks; notes, which come on top, say what was left out.

    Text is cut between characters; any other block stays whole or goes. With a cut the structured value goes too: it
    is as large as what it stands for.
    """
    left = max_bytes
    for index, block in enumerate(result.content):
        size = _size(block, left)
        if size > left:
            kept = [*result.content[:index], _shortened(block, left, size)]
            if more := len(result.content) - len(kept):
                kept.append(TextBlock(text=f"[{more} more blocks were left out]"))
            return replace(result, content=tuple(kept), structured=None)
        left -= size
    if _fits(result.structured, max_bytes):
        return result
    note = TextBlock(text=f"[the structured value, of more than {max_bytes} bytes, was left out]")
    return replace(result, content=(*result.content, note), structured=None)


def _shortened(block: Block, left: int, size: int) -> TextBlock:
    if not isinstance(block, TextBlock):
        return TextBlock(text=f"[a block of type {block.type}, of {size} bytes, was left out]")
    text = block.text[:left].encode()[:left].decode("utf-8", "ignore")
    note = f"[{len(block.text) - len(text)} more characters were left out]"
    return TextBlock(text=f"{text}\n{note}" if text else note)


def _size(block: Block, left: int) -> int:
    """Its bytes. Text that cannot fit is not encoded to find out by how much."""
    if isinstance(block, TextBlock):
        return len(block.text) if block.text.isascii() or len(block.text) > left else len(block.text.encode())
    return len(block.data) if isinstance(block, MediaBlock) else len(block.model_dump_json().encode())


def _fits(structured: Json, max_bytes: int) -> bool:
    return structured is None or len(json.dumps(structured, ensure_ascii=False).encode()) <= max_bytes


def _text(text: str) -> ToolResult:
    return ToolResult((TextBlock(text=clean_text(text)),))


def _json(value: Any) -> ToolResult:
    try:
        text, plain = _as_json(value)
    except Exception:  # no JSON, or code of the value's own failed
        return _text(_shown(value))
    return ToolResult((TextBlock(text=text),), structured=_structured(plain))


def _as_json(value: Any) -> tuple[str, Json]:
    text = json.dumps(value, ensure_ascii=False, default=_plain)
    plain = json.loads(text, parse_constant=_null)
    if "\\u0000" in text or "NaN" in text or "Infinity" in text or clean_text(text) is not text:
        plain = _cleaned(plain)
        text = json.dumps(plain, ensure_ascii=False)
    return text, plain


def _structured(plain: Json) -> Json:
    """The value, if it is an object or an array that can be sent inside of something."""
    return plain if _is_container(plain) and _travels(plain, _MAX_DEPTH) else None


def _travels(value: Json, levels: int) -> bool:
    """Whether it is nested no deeper than so many levels, and its integers have 64 bits."""
    if not _is_container(value):
        return not isinstance(value, int) or -(1 << 63) <= value < 1 << 63
    items: Any = cast("Json", value.values() if isinstance(value, dict) else value)
    return levels > 0 and all(_travels(item, levels - 1) for item in items)


def _is_container(value: Json) -> bool:
    return isinstance(value, dict | list)


def _plain(value: Any) -> Any:
    """What `json` cannot say, as something that it can."""
    match value:
        case BaseModel():
            return value.model_dump(mode="json")
        case Enum():
            return value.value
        case Mapping():
            return dict(cast("Mapping[Any, Any]", value))
        case AbstractSet():
            return list(cast("AbstractSet[Any]", value))
        case _ if isinstance(value, type):
            return str(cast("object", value))
        case _ if callable(getattr(value, "to_dict", None)):
            return value.to_dict()
        case _ if dataclasses.is_dataclass(value):
            return {one.name: getattr(value, one.name) for one in dataclasses.fields(value)}
        case _:
            return str(value)


def _shown(value: Any) -> str:
    try:
        return str(value)
    except Exception:  # nothing else can be said of it
        return f"a {type(value).__name__}"


def _null(_constant: str) -> None:
    return None


def _cleaned(value: Json) -> Json:
    match value:
        case str():
            return clean_text(value)
        case list():
            return [_cleaned(item) for item in cast("list[Json]", value)]
        case dict():
            return {clean_text(key): _cleaned(item) for key, item in cast("dict[str, Json]", value).items()}
        case _:
            return value


def cleaned_block(block: Block) -> Block:
    """The block, with what cannot be sent replaced in its texts; the same object, if there is nothing to replace."""
    if isinstance(block, TextBlock):
        text = clean_text(block.text)
        return block if text is block.text else TextBlock(text=text)
    plain = block.model_dump(by_alias=True)
    cleaned = _cleaned(plain)
    return block if cleaned == plain else type(block).model_validate(cleaned)
