"""One request that the fake model received, with the questions that tests ask of it."""

import asyncio
import json
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Recorded:
    """A request, as it arrived."""

    method: str
    path: str
    headers: dict[str, str]
    """Names in lower case."""
    raw: bytes
    gone: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when the answer is over, or the client hung up."""
    hung_up: bool = False
    """Whether the client closed its connection before the answer was over."""

    @property
    def body(self) -> Any:
        """The JSON body."""
        return json.loads(self.raw)

    @property
    def messages(self) -> list[dict[str, Any]]:
        """The messages that the model is shown."""
        return self.body["messages"]

    @property
    def roles(self) -> list[str]:
        """The messages' roles."""
        return [message["role"] for message in self.messages]

    @property
    def system(self) -> str:
        """The system messages, joined."""
        return "\n".join(as_text(message) for message in self.messages if message["role"] == "system")

    @property
    def last_user_text(self) -> str:
        """The text of the last user message; empty if there is none."""
        return next((as_text(message) for message in reversed(self.messages) if message["role"] == "user"), "")

    @property
    def text(self) -> str:
        """Everything that the model is shown, joined: for asking what is (not) in it."""
        return "\n".join(as_text(message) for message in self.messages)

    @property
    def tool_results(self) -> dict[str, str]:
        """Call id → result text."""
        return {message["tool_call_id"]: as_text(message) for message in self.messages if message["role"] == "tool"}

    @property
    def tool_names(self) -> list[str]:
        """The tools on offer."""
        return [tool["function"]["name"] for tool in self.body.get("tools", [])]

    def is_well_paired(self) -> bool:
        """Whether each call is answered right after it, exactly once, and each result has its call."""
        open_calls: list[str] = []
        for message in self.messages:
            if message["role"] == "tool":
                if message["tool_call_id"] not in open_calls:
                    return False
                open_calls.remove(message["tool_call_id"])
                continue
            if open_calls:
                return False
            open_calls = [call["id"] for call in message.get("tool_calls") or ()]
        return not open_calls


def as_text(message: dict[str, Any]) -> str:
    """The text of a message in the endpoint's form."""
    content = message.get("content") or ""
    return content if isinstance(content, str) else "".join(part.get("text", "") for part in content)
