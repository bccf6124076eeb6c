"""Messages in the form of a chat completions request. Only what a model may see goes in.

Reasoning, usage, errors, approvals and unknown blocks are never sent; nor are raw arguments or partial messages.
"""

import json
from collections.abc import Sequence
from typing import Final

from protocol.base import JsonObject
from protocol.messages import Block, FunctionCallBlock, FunctionResultBlock, Message

from .block_text import Media, media_of, result_text, text_of
from .call_pairs import Step, check_pairs

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
    check_pairs(map(_step, sent))
    return sent


def _step(message: JsonObject) -> Step:
    if message["role"] == "tool":
        return Step(result=message["tool_call_id"])
    return Step(calls=[call["id"] for call in message.get("tool_calls", ())])


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
    return {"role": "tool", "tool_call_id": block.call_id, "content": result_text(block)}


def _content(blocks: Sequence[Block]) -> str | list[JsonObject] | None:
    """A plain string where all is text, else content parts; `None` where nothing may be sent."""
    parts = [part for block in blocks if (part := _part(block)) is not None]
    if not parts:
        return None
    if all(part["type"] == "text" for part in parts):
        return "".join(part["text"] for part in parts)
    return parts


def _part(block: Block) -> JsonObject | None:
    if media := media_of(block):
        return _media(media)
    text = text_of(block)
    return None if text is None else {"type": "text", "text": text}


def _media(media: Media) -> JsonObject:
    kind, _, subtype = media.mime_type.partition("/")
    if kind == "audio":
        sound = {"data": media.data, "format": _AUDIO_FORMATS.get(subtype, subtype)}
        return {"type": "input_audio", "input_audio": sound}
    return {"type": "image_url", "image_url": {"url": media.url}}
