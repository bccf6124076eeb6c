"""A run's input: from what a host sends to new messages of the conversation."""

import binascii
from collections.abc import Collection, Sequence

from protocol.messages import (
    Block,
    FunctionCallBlock,
    FunctionResultBlock,
    MediaBlock,
    Message,
    ResourceBlock,
    text_message,
)
from protocol.runs import RunInput
from sidecar.agents.pairing import open_calls
from sidecar.errors import InvalidParams

_NEVER_INPUT = frozenset({"functionCall", "functionResult", "approvalRequest", "approvalResponse"})


def input_messages(given: RunInput) -> tuple[Message, ...]:
    """A run's input as messages, not yet compared with the transcript.

    Raises:
        InvalidParams: user input holds a block that only the sidecar makes, or media that are no base64.
    """
    if isinstance(given, str):
        return (text_message("user", given),)
    if not given:
        return ()
    if isinstance(given[0], Message):
        return tuple(message for message in given if isinstance(message, Message))
    blocks = tuple(block for block in given if not isinstance(block, Message))
    _check_blocks(blocks, "input", _NEVER_INPUT - {"approvalResponse"})  # `run` takes those out before all is checked
    return (Message(role="user", content=blocks),)


def new_messages(
    messages: Sequence[Message], transcript: Sequence[Message], held: Collection[str] = ()
) -> tuple[Message, ...]:
    """The messages that the conversation does not have yet.

    A message whose id is in the transcript is skipped. A tool message answers calls that the transcript has open: those
    of tools that the host carries out itself. A list without ids whose head is the whole transcript (same
    roles and content, an assistant message among them) is a replay: only its tail is new.

    Args:
        messages: What a host sends.
        transcript: What the session has.
        held: Ids of messages whose calls wait for consent: a decision answers those, no result does.

    Raises:
        InvalidParams: what is left holds a message or a block that only the sidecar makes: a host cannot put words
            into a model's mouth, nor answer a call that was not made. Or media in it are no base64.
    """
    start = _replayed(messages, transcript)
    known = {message.message_id for message in transcript}
    seen: set[str] = set()
    asked = _unanswered(transcript, held) if any(message.role == "tool" for message in messages[start:]) else set[str]()
    found: list[Message] = []
    for index, message in enumerate(messages[start:], start):
        if message.message_id is not None:
            if message.message_id in known or message.message_id in seen:
                continue
            seen.add(message.message_id)
        _check(message, index, asked)
        found.append(message)
    return tuple(found)


def _replayed(messages: Sequence[Message], transcript: Sequence[Message]) -> int:
    """How many messages at the head of the list repeat the transcript: all of it, or none."""
    if any(message.message_id is not None for message in messages):
        return 0
    if not transcript or len(messages) < len(transcript) or all(m.role != "assistant" for m in transcript):
        return 0
    same = all(
        ours.role == theirs.role and ours.content == theirs.content
        for ours, theirs in zip(transcript, messages, strict=False)
    )
    return len(transcript) if same else 0


def _unanswered(transcript: Sequence[Message], held: Collection[str]) -> set[str]:
    """The calls that a host may answer itself."""
    waiting = [message for message in transcript if message.message_id in held]
    return open_calls(transcript) - {
        block.call_id for message in waiting for block in message.content if isinstance(block, FunctionCallBlock)
    }


def _check(message: Message, index: int, asked: set[str]) -> None:
    """`asked`: ids of open calls; those that the message answers are taken out."""
    path = f"input.{index}"
    if message.role == "tool" and message.content and all(_answers(block, asked) for block in message.content):
        return
    if message.role in ("assistant", "tool"):
        fault = {"path": f"{path}.role", "message": f"no {message.role} message can be given here"}
        raise InvalidParams("run.input takes user and system messages; the transcript is kept by the session", [fault])
    _check_blocks(message.content, f"{path}.content")


def _answers(block: Block, asked: set[str]) -> bool:
    if not isinstance(block, FunctionResultBlock) or block.call_id not in asked:
        return False
    asked.remove(block.call_id)
    return True


def _check_blocks(blocks: Sequence[Block], path: str, refused: Collection[str] = _NEVER_INPUT) -> None:
    for place, block in enumerate(blocks):
        if block.type in refused:
            fault = {"path": f"{path}.{place}", "message": f"no recorded call or request for {block.type!r}"}
            raise InvalidParams("run.input holds a call, a result or an approval that nothing asked for", [fault])
        if isinstance(block, MediaBlock) and not _is_base64(block.data):
            raise _no_base64(f"{path}.{place}.data")
        if isinstance(block, ResourceBlock) and not _is_base64(block.resource.blob or ""):
            raise _no_base64(f"{path}.{place}.resource.blob")


def _is_base64(text: str) -> bool:
    try:
        binascii.a2b_base64(text, strict_mode=True)
    except ValueError:
        return False
    return True


def _no_base64(path: str) -> InvalidParams:
    return InvalidParams(f"{path}: no base64", [{"path": path, "message": "no base64"}])
