"""Messages as the input items of a Responses request. Only what a model may see goes in.

Items carry no ids of the service: an id there stands for what the service stored, reasoning included, and would have to
come with it. Reasoning itself is not sent: what the service keeps it has, and what it does not keep it gave as text.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

from protocol.base import JsonObject
from protocol.messages import Block, FunctionCallBlock, FunctionResultBlock, Message

from .block_text import as_text, media_of, result_text, text_of
from .call_pairs import Step, check_pairs


def input_items(messages: Iterable[Message], *, goes_on: bool) -> list[JsonObject]:
    """The request's `input`.

    Args:
        messages: what is sent of the conversation.
        goes_on: the service keeps what came before, calls among it.

    Raises:
        UnpairedCallsError: a call and its result do not stand together.
    """
    items = [item for message in messages if not message.partial for item in _items_of(message)]
    check_pairs(_steps(items), calls_elsewhere=goes_on)
    return items


def _items_of(message: Message) -> Iterator[JsonObject]:
    if message.role == "assistant":
        yield from _assistant(message)
    results = [block for block in message.content if isinstance(block, FunctionResultBlock)]
    for block in results:
        yield {"type": "function_call_output", "call_id": block.call_id, "output": _output(block)}
    if message.role in {"user", "system"} and (content := _content(message.content)) is not None:
        yield {"role": message.role, "content": content}


def _assistant(message: Message) -> Iterator[JsonObject]:
    if text := message.text:
        yield {"role": "assistant", "content": text}
    for block in message.content:
        if isinstance(block, FunctionCallBlock):
            arguments = json.dumps(block.arguments, ensure_ascii=False)
            yield {"type": "function_call", "call_id": block.call_id, "name": block.name, "arguments": arguments}


def _output(block: FunctionResultBlock) -> str | list[JsonObject]:
    """One text, or parts where the result shows images."""
    parts = [_part(part) or {"type": "input_text", "text": as_text(part)} for part in block.content]
    return parts if any(part["type"] == "input_image" for part in parts) else result_text(block)


def _content(blocks: Sequence[Block]) -> str | list[JsonObject] | None:
    """A plain string where all is text, else content parts; `None` where nothing may be sent."""
    parts = [part for block in blocks if (part := _part(block)) is not None]
    if not parts:
        return None
    if all(part["type"] == "input_text" for part in parts):
        return "".join(part["text"] for part in parts)
    return parts


def _part(block: Block) -> JsonObject | None:
    media = media_of(block)
    if media is None:
        text = text_of(block)
    elif media.mime_type.startswith("image/"):
        return {"type": "input_image", "image_url": media.url, "detail": "auto"}
    else:
        text = as_text(block)  # this API takes no sounds: they are named
    return None if text is None else {"type": "input_text", "text": text}


def _steps(items: Iterable[JsonObject]) -> Iterator[Step]:
    """Calls that follow each other were made together; results and others stand alone."""
    for kind, group in groupby(items, key=lambda item: item.get("type")):
        match kind:
            case "function_call":
                yield Step(calls=[item["call_id"] for item in group])
            case "function_call_output":
                yield from (Step(result=item["call_id"]) for item in group)
            case _:
                yield from (Step() for _ in group)
