"""The memory of `user_info_memory` in the style of 2025: `invoking`, `invoked`, `serialize`, and fields of its own."""

from collections.abc import MutableSequence, Sequence
from typing import Any

from pydantic import BaseModel

from protocol.base import Json
from providers.api.invoking import Context, InvokingAdapter, InvokingProvider
from providers.api.invoking_chat import ChatClientProtocol, ChatMessage, ChatOptions, Role, RunChatClient
from providers.api.provider import ProviderConfig, Surroundings


class UserInfo(BaseModel):
    """What is to be known of the user."""

    name: str | None = None
    age: int | None = None


class UserInfoMemory(InvokingProvider):
    """Knows one user. It may keep that on itself, because the adapter makes one for each session."""

    def __init__(self, chat_client: ChatClientProtocol, user_info: UserInfo) -> None:
        self._chat_client = chat_client
        self.user_info = user_info

    async def invoking(self, messages: ChatMessage | MutableSequence[ChatMessage], **kwargs: Any) -> Context:
        """Have the agent ask for what is missing, and use what is known."""
        lines = [
            f"The user's {fact}: {value}." if value is not None else f"Ask for the user's {fact} before anything else."
            for fact, value in self.user_info
        ]
        return Context(instructions="\n".join(lines))

    async def invoked(
        self,
        request_messages: ChatMessage | Sequence[ChatMessage],
        response_messages: ChatMessage | Sequence[ChatMessage] | None = None,
        invoke_exception: Exception | None = None,
        **kwargs: Any,
    ) -> None:
        """Look for what is missing in what the user said. An error here costs a warning, and not the run."""
        messages = [request_messages] if isinstance(request_messages, ChatMessage) else request_messages
        said = [message for message in messages if message.role == Role.USER]
        known = self.user_info
        if invoke_exception is not None or not said or None not in (known.name, known.age):
            return
        options = ChatOptions(instructions="Find the user's name and age; null if not said.", response_format=UserInfo)
        found = (await self._chat_client.get_response(said, chat_options=options)).value
        if isinstance(found, UserInfo):
            known.name = known.name or found.name
            known.age = known.age or found.age

    def serialize(self) -> str:
        """What is stored with the session."""
        return self.user_info.model_dump_json()


def remembered(state: Json) -> UserInfoMemory:
    """A session's memory as it was stored, or a new one."""
    return UserInfoMemory(RunChatClient(), UserInfo.model_validate_json(state) if state else UserInfo())


class UserInfoMemories(InvokingAdapter):
    """What the configuration names: it has each session's memory made, and takes part in runs for it."""

    def __init__(
        self, source_id: str, config: ProviderConfig | None = None, surroundings: Surroundings | None = None
    ) -> None:
        super().__init__(source_id, remembered, config, surroundings)
