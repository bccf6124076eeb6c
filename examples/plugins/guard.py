"""Middleware of one's own: some words never reach the model, and never come back from it."""

import re

from protocol.messages import Message, TextBlock
from providers.api.middleware import CallNext, ChatContext, ChatMiddleware
from providers.api.ports import ChatAnswer
from providers.api.provider import ProviderConfig


class RedactConfig(ProviderConfig):
    """What is hidden."""

    words: tuple[str, ...] = ()
    """These words, in any case."""


class Redact(ChatMiddleware):
    """Stands around every model call."""

    config_type = RedactConfig

    def __init__(self, config: RedactConfig) -> None:
        words = "|".join(map(re.escape, config.words))
        self._hidden = re.compile(rf"\b({words})\b" if words else r"(?!)", re.IGNORECASE)

    async def process(self, context: ChatContext, call_next: CallNext) -> None:
        """Hide the words in what is sent, and in what comes back before anyone has seen it."""
        context.messages[:] = map(self._redacted, context.messages)
        context.hold_text = True
        await call_next()
        if context.result is not None:
            text = self._hidden.sub("[…]", context.result.text)
            context.result = ChatAnswer(text, context.result.finish, context.result.calls)

    def _redacted(self, message: Message) -> Message:
        content = tuple(
            TextBlock(text=self._hidden.sub("[…]", block.text)) if isinstance(block, TextBlock) else block
            for block in message.content
        )
        return message.model_copy(update={"content": content})
