"""The body of a Responses request. Messages are `openai_responses_content`'s.

An option that this API does not have is refused by name: left out silently, the answer would not be the one that was
asked for. Encrypted reasoning is not asked for: nothing here can carry it to the next call.
"""

from typing import Final

from protocol.agents import NamedToolChoice, RunOptions
from protocol.base import JsonObject
from providers.api.ports import ChatRequest, ToolSpec
from sidecar.errors import InvalidParams

from .openai_extras import with_extra_body
from .openai_responses_content import input_items
from .structured_schema import qualifies_as_strict

_OURS: Final = frozenset({"input", "stream", "background", "conversation", "previous_response_id"})
"""Fields that `extraBody` may not touch: the history, its pairing and the reader depend on them."""


def responses_body(model: str, request: ChatRequest) -> JsonObject:
    """The JSON body.

    Args:
        model: the model's name at the endpoint.
        request: the call.

    Raises:
        InvalidParams: an option is not this API's; `clientKwargs.extraBody` is no object, or names a field that is not
            the host's to set.
        UnpairedCallsError: the messages hold a call without its result.
    """
    goes_on = request.conversation_id is not None
    body: JsonObject = {
        "model": model,
        "input": input_items(request.messages, goes_on=goes_on),
        "stream": True,
    }
    if request.instructions:
        body["instructions"] = request.instructions
    if request.conversation_id is not None:
        is_conversation = request.conversation_id.startswith("conv_")
        body["conversation" if is_conversation else "previous_response_id"] = request.conversation_id
    body.update(_options(request.options))
    if request.tools:
        body.update(_tools(request))
    if request.response_schema is not None:
        body["text"] = {"format": text_format(request.response_schema)}
    return with_extra_body(body, request.client_kwargs, _OURS)


def text_format(schema: JsonObject) -> JsonObject:
    """The answer must follow this schema; strictly, where the schema qualifies."""
    return {"type": "json_schema", "name": "answer", "schema": schema, "strict": qualifies_as_strict(schema)}


def _options(options: RunOptions) -> JsonObject:
    for name, value in (("seed", options.seed), ("stop", options.stop)):
        if value is not None:
            raise InvalidParams(
                f"the Responses API has no option {name!r}; leave it out, or use an endpoint of type openai"
            )
    fields: JsonObject = {
        "temperature": options.temperature,
        "top_p": options.top_p,
        "max_output_tokens": options.max_output_tokens,
        "reasoning": {"effort": options.reasoning_effort} if options.reasoning_effort is not None else None,
        "store": options.store,
    }
    return {name: value for name, value in fields.items() if value is not None}


def _tools(request: ChatRequest) -> JsonObject:
    fields: JsonObject = {"tools": [_tool(tool) for tool in request.tools]}
    choice = request.options.tool_choice
    if isinstance(choice, NamedToolChoice):
        chosen = next((tool for tool in request.tools if tool.name == choice.name and tool.hosted), None)
        fields["tool_choice"] = _only(chosen) if chosen else {"type": "function", "name": choice.name}
    elif choice is not None:
        fields["tool_choice"] = choice
    if request.options.parallel_tool_calls is not None:
        fields["parallel_tool_calls"] = request.options.parallel_tool_calls
    return fields


def _only(hosted: ToolSpec) -> JsonObject:
    """Only a function can be chosen by name; any other tool as the only one that is allowed."""
    return {"type": "allowed_tools", "mode": "required", "tools": [_tool(hosted)]}


def _tool(tool: ToolSpec) -> JsonObject:
    if tool.hosted is not None:
        return {"type": tool.hosted}
    return {
        "type": "function",
        "name": tool.name,
        "description": tool.description,
        "parameters": tool.input_schema,
        "strict": False,  # this API's default is true, which refuses most schemas
    }
