"""Content blocks as models are shown them, in whatever form an endpoint wants: what is text, and what is media.

Reasoning, usage, errors, approvals and unknown blocks have no text for a model.
"""

import json
from typing import Any, NamedTuple

from protocol.messages import Block, FunctionResultBlock, MediaBlock, ResourceBlock, ResourceLinkBlock, TextBlock


class Media(NamedTuple):
    """An image or a sound."""

    mime_type: str
    data: str
    """Base64."""

    @property
    def url(self) -> str:
        """The same as a `data:` URL."""
        return f"data:{self.mime_type};base64,{self.data}"


def media_of(block: Block) -> Media | None:
    """The image or sound that a block holds, inline or as a resource."""
    match block:
        case MediaBlock():
            return Media(block.mime_type, block.data)
        case ResourceBlock() if block.resource.blob is not None and _is_media(block.resource.mime_type):
            return Media(block.resource.mime_type or "", block.resource.blob)
        case _:
            return None


def text_of(block: Block) -> str | None:
    """The text of a block that is shown as text; `None` for any other."""
    return as_text(block) if isinstance(block, TextBlock | ResourceLinkBlock | ResourceBlock) else None


def as_text(block: Any) -> str:
    """A block in the middle of text; media and binary resources are named."""
    match block:
        case TextBlock():
            return block.text
        case ResourceLinkBlock():
            return f"[{block.title or block.name}]({block.uri})"
        case ResourceBlock() if block.resource.text is not None:
            return f'\n<resource uri="{block.resource.uri}">\n{block.resource.text}\n</resource>\n'
        case ResourceBlock():
            return f"[{block.resource.uri}: {block.resource.mime_type or 'binary'}, not shown]"
        case MediaBlock():
            return f"[{block.type}: {block.mime_type}, not shown]"
        case _:
            return ""


def result_text(block: FunctionResultBlock) -> str:
    """A tool's result as one text: its content, else its structured content, else that it failed."""
    text = "".join(as_text(part) for part in block.content)
    if not text and block.structured_content is not None:
        text = json.dumps(block.structured_content, ensure_ascii=False)
    if not text and block.is_error:
        text = "Error"
    return text


def _is_media(mime_type: str | None) -> bool:
    return (mime_type or "").startswith(("image/", "audio/"))
