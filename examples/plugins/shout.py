"""A chat client of one's own: here it answers by itself; yours would ask a service."""

from collections.abc import Mapping, Sequence
from typing import Any, cast

from protocol.messages import Message
from providers.api.chat_client import ChatClientError, ChatOptions, GetResponseClient
from providers.api.ports import ChatAnswer
from providers.api.provider import ProviderConfig


class ShoutConfig(ProviderConfig):
    """How it shouts."""

    mark: str = "!"
    """What stands at the end."""


class ShoutClient(GetResponseClient):
    """Says what the user said, louder."""

    config_type = ShoutConfig

    async def get_response(
        self,
        messages: Sequence[Message],
        *,
        options: ChatOptions | None = None,
        client_kwargs: Mapping[str, Any] | None = None,
        **kwargs: Any,
    ) -> str | ChatAnswer:
        """The last message in capitals; the run's `clientKwargs` may ask for another language's."""
        if self.model != "loud":
            raise ChatClientError("modelNotFound", "the only model here is 'loud'")
        mark = cast("ShoutConfig", self.config).mark
        opening = "¡" if (client_kwargs or {}).get("language") == "es" else ""
        return f"{opening}{messages[-1].text.upper()}{mark}"
