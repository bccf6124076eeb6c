"""Answers of a model that call tools with arguments, and what came of the calls. Tests only."""

import itertools
from collections.abc import Sequence
from typing import Any

from protocol.messages import FunctionCallBlock, FunctionResultBlock, Message, TextBlock
from providers.api.ports import CallRequested, Finished, FinishReason
from sidecar.agents.runner import Execution
from tests.bench.fake_client import Step

_numbers = itertools.count(1)


def call(name: str, call_id: str = "", **arguments: Any) -> FunctionCallBlock:
    """A call; without an id it gets a fresh one."""
    return FunctionCallBlock(call_id=call_id or f"call-{next(_numbers)}", name=name, arguments=arguments)


def asks(*wanted: FunctionCallBlock | str, reason: FinishReason = "toolCalls") -> list[Step]:
    """An answer that calls tools, by name or with arguments."""
    blocks = [call(each) if isinstance(each, str) else each for each in wanted]
    return [*map(CallRequested, blocks), Finished(reason)]


def text_of(block: FunctionResultBlock) -> str:
    """The text of a result."""
    return "".join(part.text for part in block.content if isinstance(part, TextBlock))


def result_blocks(messages: Sequence[Message]) -> list[FunctionResultBlock]:
    """Every result, in order."""
    return [block for message in messages for block in message.content if isinstance(block, FunctionResultBlock)]


def told(execution: Execution) -> list[str]:
    """What the model was told of the run's calls, in order."""
    return [text_of(block) for block in result_blocks(execution.progress.messages)]
