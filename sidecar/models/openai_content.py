"""Messages in the form of a chat completions request. Only what a model may see goes in.

Reasoning, usage, errors, approvals and unknown blocks are never sent; nor are raw arguments or partial messages.
"""

import json
from collections.abc import Sequence
from typing import Any, Final

from protocol.base import JsonObject
from protocol.messages import (
    Block,
    FunctionCallBlock,
    FunctionResultBlock,
    MediaBlock,
    Message,
    ResourceBlock,
    ResourceLinkBlock,
    TextBlock,
)

_AUDIO_FORMATS: Final = {"mpeg": "mp3", "mp3": "mp3", "wav": "wav", "x-wav": "wav", "wave": "wav"}


def chat_messages(instructions: str, messages: Sequence[Message]) -> list[JsonObject]:
    """The request's `messages`: the instructions as one system message, then the conversation.

    Raises:
        UnpairedCallsError: a call and its result do not stand together.
    """
    sent: list[JsonObject] = [{"role": "system", "content": instructions}] if instructions else []
    for message in messages:
        if not message.partial:
            sent.extend(_messages_of(message))
    check_pairs(sent)
    return sent


class UnpairedCallsError(RuntimeError):
    """A request would hold a call without its result, or a result without its call: a fault of ours."""


def check_pairs(messages: Sequence[JsonObject]) -> None:
    """Hold that every call is answered right after it, once, and that every result has its call.

    Raises:
        UnpairedCallsError: they do not.
    """
    pending: set[str] = set()
    for message in messages:
        if message["role"] == "tool":
            if message["tool_call_id"] not in pending:
                raise UnpairedCallsError("a tool result without its call")
            pending.remove(message["tool_call_id"])
            continue
        if pending:
            raise UnpairedCallsError("a tool call without its result")
        calls = message.get("tool_calls", ())
        pending = {call["id"] for call in calls}
        if len(pending) != len(calls):
            raise UnpairedCallsError("two tool calls of one message share an id")
    if pending:
        raise UnpairedCallsError("a tool call without its result")


def _messages_of(message: Message) -> list[JsonObject]:
    results = [_result(block) for block in message.content if isinstance(block, FunctionResultBlock)]
    match message.role:
        case "tool":
            return results
        case "assistant":
            return [*_assistant(message), *results]
        case role:
            content = _content(message.content)
            return results if content is None else [*results, {"role": role, "content": content}]


def _assistant(message: Message) -> list[JsonObject]:
    text = message.text
    calls = [_call(block) for block in message.content if isinstance(block, FunctionCallBlock)]
    if calls:
        return [{"role": "assistant", "content": text or None, "tool_calls": calls}]
    return [{"role": "assistant", "content": text}] if text else []


def _call(block: FunctionCallBlock) -> JsonObject:
    arguments = json.dumps(block.arguments, ensure_ascii=False)
    return {"id": block.call_id, "type": "function", "function": {"name": block.name, "arguments": arguments}}


def _result(block: FunctionResultBlock) -> JsonObject:
    text = "".join(_as_text(part) for part in block.content)
    if not text and block.structured_content is not None:
        text = json.dumps(block.structured_content, ensure_ascii=False)
    if not text and block.is_error:
        text = "Error"
    return {"role": "tool", "tool_call_id": block.call_id, "content": text}


def _content(blocks: Sequence[Block]) -> str | list[JsonObject] | None:
    """A plain string where all is text, else content parts; `None` where nothing may be sent."""
    parts = [part for block in blocks if (part := _part(block)) is not None]
    if not parts:
        return None
    if all(part["type"] == "text" for part in parts):
        return "".join(part["text"] for part in parts)
    return parts


def _part(block: Block) -> JsonObject | None:
    match block:
        case MediaBlock():
            return _media(block.mime_type, block.data)
        case ResourceBlock() if block.resource.blob is not None and _is_media(block.resource.mime_type):
            return _media(block.resource.mime_type or "", block.resource.blob)
        case TextBlock() | ResourceLinkBlock() | ResourceBlock():
            return {"type": "text", "text": _as_text(block)}
        case _:
            return None


def _media(mime_type: str, data: str) -> JsonObject:
    kind, _, subtype = mime_type.partition("/")
    if kind == "audio":
        return {"type": "input_audio", "input_audio": {"data": data, "format": _AUDIO_FORMATS.get(subtype, subtype)}}
    return {"type": "image_url", "image_url": {"url": f"data:{mime_type};base64,{data}"}}


def _is_media(mime_type: str | None) -> bool:
    return (mime_type or "").startswith(("image/", "audio/"))


def _as_text(block: Any) -> str:
    """A block in the middle of text; what has no text is named."""
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
