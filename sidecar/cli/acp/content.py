"""ACP's content blocks and ours, which have the same form: what passes in either direction. Sends nothing."""

from collections.abc import Iterable
from typing import Final

from protocol.base import JsonObject

_SHARED: Final = frozenset({"text", "image", "audio", "resource_link", "resource"})
"""Types that both sides know; ours has more, for what stands inside messages."""
_FIELDS: Final = frozenset(
    {"type", "text", "data", "mimeType", "uri", "name", "title", "description", "size", "resource", "annotations"}
)


def shown(blocks: Iterable[JsonObject]) -> list[JsonObject]:
    """Those of our blocks that an ACP client can show."""
    return [
        {key: value for key, value in block.items() if key in _FIELDS and value is not None}
        for block in blocks
        if block.get("type") in _SHARED
    ]


def text_block(text: str) -> JsonObject:
    """A block of text."""
    return {"type": "text", "text": text}


def tool_content(blocks: Iterable[JsonObject]) -> list[JsonObject]:
    """Blocks as the content of a tool's call."""
    return [{"type": "content", "content": block} for block in shown(blocks)]
