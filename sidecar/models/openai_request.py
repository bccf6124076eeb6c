"""The body of a chat completions request. Messages are `openai_content`'s.

Usage is asked for with `stream_options.include_usage`: OpenAI, vLLM, llama.cpp and Ollama send it then, and servers
that do not know the option pass it over. For one that refuses it, `extraBody: {"stream_options": null}` leaves it out,
as a null there does with any field: a refused request is never sent again in another shape.
"""

from typing import Final

from protocol.agents import NamedToolChoice, RunOptions
from protocol.base import JsonObject
from providers.api.ports import ChatRequest, ToolSpec

from .openai_content import chat_messages
from .openai_extras import with_extra_body
from .structured_schema import qualifies_as_strict

_OURS: Final = frozenset({"messages", "stream", "n"})
"""Fields that `extraBody` may not touch: the history's pairing and the reader depend on them."""


def chat_body(model: str, request: ChatRequest, *, is_openai: bool) -> JsonObject:
    """The JSON body, without `model`'s endpoint.

    Args:
        model: the model's name at the endpoint.
        request: the call.
        is_openai: OpenAI's own service, which has replaced `max_tokens` by another name.

    Raises:
        InvalidParams: `clientKwargs.extraBody` is no object, or names a field that is not the host's to set.
    """
    body: JsonObject = {
        "model": model,
        "messages": chat_messages(request.instructions, request.messages),
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    body.update(_options(request.options, is_openai=is_openai))
    if request.tools:
        body.update(_tools(request))
    if request.response_schema is not None:
        body["response_format"] = response_format(request.response_schema)
    return with_extra_body(body, request.client_kwargs, _OURS)


def response_format(schema: JsonObject) -> JsonObject:
    """The answer must follow this schema; strictly, where the schema qualifies."""
    named: JsonObject = {"name": "answer", "schema": schema}
    if qualifies_as_strict(schema):
        named["strict"] = True
    return {"type": "json_schema", "json_schema": named}


def _options(options: RunOptions, *, is_openai: bool) -> JsonObject:
    fields: JsonObject = {
        "temperature": options.temperature,
        "top_p": options.top_p,
        "max_completion_tokens" if is_openai else "max_tokens": options.max_output_tokens,
        "reasoning_effort": options.reasoning_effort,
        "seed": options.seed,
        "stop": list(options.stop) if options.stop else None,
        "store": options.store,
    }
    return {name: value for name, value in fields.items() if value is not None}


def _tools(request: ChatRequest) -> JsonObject:
    fields: JsonObject = {"tools": [_tool(tool) for tool in request.tools]}
    choice = request.options.tool_choice
    if isinstance(choice, NamedToolChoice):
        fields["tool_choice"] = {"type": "function", "function": {"name": choice.name}}
    elif choice is not None:
        fields["tool_choice"] = choice
    if request.options.parallel_tool_calls is not None:
        fields["parallel_tool_calls"] = request.options.parallel_tool_calls
    return fields


def _tool(tool: ToolSpec) -> JsonObject:
    function = {"name": tool.name, "description": tool.description, "parameters": tool.input_schema}
    return {"type": "function", "function": function}
