"""A chat client of one's own: for a model that is reached as only this program knows. This one is a few rules."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from protocol.messages import FunctionCallBlock, FunctionResultBlock, Message, TextBlock
from providers.api.chat_client import ChatClientError, ChatOptions, GetResponseClient
from providers.api.invocation import FunctionInvocationContext
from providers.api.ports import ChatAnswer, Finished
from providers.api.tool import tool


class HouseModel(GetResponseClient):
    """Greets, and sends email when it is asked to."""

    async def get_response(
        self,
        messages: Sequence[Message],
        *,
        options: ChatOptions | None = None,
        client_kwargs: Mapping[str, Any] | None = None,
        **kwargs: Any,
    ) -> str | ChatAnswer:
        """Answer the last message; `client_kwargs` are this client's alone, and no tool ever sees them."""
        region = (client_kwargs or {}).get("region", "home")
        if region == "nowhere":
            raise ChatClientError("modelUnavailable", "there is no model in this region")
        last = messages[-1]
        if last.role == "tool":
            return f"[{self.model} in {region}] Done: {_result(last)}"
        if (options or {}).get("tools") and (found := re.search(r"\S+@\S+", last.text)):
            call = FunctionCallBlock(call_id="call-1", name="send_email", arguments={"address": found[0]})
            return ChatAnswer("", Finished("toolCalls"), (call,))
        return f"[{self.model} in {region}] You said: {last.text}"


@tool
def send_email(address: str, ctx: FunctionInvocationContext) -> str:
    """Send an email."""
    return f"sent to {address}, knowing of {', '.join(ctx.kwargs)}"


def _result(message: Message) -> str:
    results = [block for block in message.content if isinstance(block, FunctionResultBlock)]
    return "".join(part.text for block in results for part in block.content if isinstance(part, TextBlock))
