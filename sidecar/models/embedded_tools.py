"""Tools for a model that knows none: a choice that is forced becomes a schema, calls in the history become text.

A small model under a schema always answers in its form; left to choose for itself whether to call, it calls at random.
So tools are offered only where the request forces a call.
"""

import json
import uuid
from collections.abc import Sequence
from typing import Any

from protocol.agents import NamedToolChoice
from protocol.base import JsonObject
from protocol.messages import FunctionCallBlock, FunctionResultBlock, Message, TextBlock, text_message
from providers.api.ports import ChatRequest, ToolSpec

from .json_text import parse_object


def forced_tools(request: ChatRequest) -> Sequence[ToolSpec]:
    """The tools of which the model must call one; none where it may choose for itself."""
    choice = request.options.tool_choice
    if isinstance(choice, NamedToolChoice):
        return [tool for tool in request.tools if tool.name == choice.name]
    return request.tools if choice == "required" else ()


def without_tools(request: ChatRequest) -> ChatRequest:
    """The request with nothing of tools in it: calls and results of the history stand there as text."""
    return ChatRequest(
        messages=[spoken for message in request.messages if (spoken := _spoken(message)) is not None],
        instructions=request.instructions,
        options=request.options.model_copy(update={"tool_choice": None, "parallel_tool_calls": None}),
        response_schema=request.response_schema,
        client_kwargs=request.client_kwargs,
    )


def as_schema(tools: Sequence[ToolSpec]) -> JsonObject:
    """The schema of an answer that calls one of these tools: one branch a tool."""
    return {"anyOf": [_branch(tool) for tool in tools]}


def as_instructions(tools: Sequence[ToolSpec]) -> str:
    """What the tools do, in words."""
    lines = [f"- {tool.name}: {tool.description}" for tool in tools]
    return "\n".join(["Answer with a call of one of these tools, as JSON:", *lines])


def as_call(text: str) -> FunctionCallBlock | None:
    """The call that an answer under `as_schema` holds; `None` if it was cut."""
    answer = parse_object(text) or {}
    name, arguments = answer.get("tool"), answer.get("arguments")
    if not isinstance(name, str) or not isinstance(arguments, dict):
        return None
    given: dict[str, Any] = {**arguments}
    return FunctionCallBlock(call_id=f"call_{uuid.uuid4().hex[:24]}", name=name, arguments=given)


def _branch(tool: ToolSpec) -> JsonObject:
    return {
        "type": "object",
        "properties": {"tool": {"const": tool.name}, "arguments": tool.input_schema or {"type": "object"}},
        "required": ["tool", "arguments"],
        "additionalProperties": False,
    }


def _spoken(message: Message) -> Message | None:
    if not any(isinstance(block, FunctionCallBlock | FunctionResultBlock) for block in message.content):
        return message
    text = "\n".join(line for block in message.content if (line := _line(block)))
    return text_message("user" if message.role == "tool" else message.role, text) if text else None


def _line(block: Any) -> str:
    match block:
        case TextBlock():
            return block.text
        case FunctionCallBlock():
            return json.dumps({"tool": block.name, "arguments": block.arguments}, ensure_ascii=False)
        case FunctionResultBlock():
            return "Tool result: " + "".join(part.text for part in block.content if isinstance(part, TextBlock))
        case _:
            return ""
