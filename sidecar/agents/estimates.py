"""How large what a model sees is, in tokens by estimate, and what of it is text to show. Calls no model."""

from protocol.messages import (
    EmbeddedResource,
    FunctionCallBlock,
    FunctionResultBlock,
    Message,
    ResourceBlock,
    TextBlock,
)
from providers.api.ports import ToolSpec

from .metering import tokens_of


def message_tokens(message: Message) -> int:
    """Of what is text in a message: words, calls, results, documents."""
    content = message.content
    if len(content) == 1 and isinstance(content[0], TextBlock):
        return tokens_of(len(content[0].text))
    return tokens_of(sum(map(_characters, content)))


def tool_tokens(tool: ToolSpec) -> int:
    """Of a tool as a model is told of it."""
    return tokens_of(len(tool.name) + len(tool.description) + len(str(tool.input_schema)))


def shown_text(message: Message) -> str:
    """A message's text, that of its documents included."""
    documents = (block.resource.text or "" for block in message.content if isinstance(block, ResourceBlock))
    return "\n".join(filter(None, (message.text, *documents)))


def _characters(block: object) -> int:
    match block:
        case TextBlock(text=text) | ResourceBlock(resource=EmbeddedResource(text=str(text))):
            return len(text)
        case FunctionCallBlock(name=name, arguments=arguments):
            return len(name) + len(str(arguments))
        case FunctionResultBlock(content=content):
            return sum(map(_characters, content))
        case _:
            return 0
