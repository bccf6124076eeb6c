"""The base class of agents with a `run` of their own: in place of the loop that calls a model and its tools.

    class Greeter(CustomAgent):
        async def run(self, request):
            yield "Hello, "
            yield request.input_text

Everything around the loop stays: providers and histories before and after it, run middleware around it. The text is
streamed, kept as the run's message, and cut where the run is cancelled.
"""

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Awaitable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from protocol.agents import RunOptions
from protocol.base import JsonObject
from protocol.messages import Message

from .context import Response
from .ports import ChatRequest, ToolSpec
from .provider import ProviderConfig
from .run_context import RunContext
from .tool import FunctionTool

Said = str | Message
"""A piece of text, or a whole message of the assistant's."""

Answer = str | Message | Response | Sequence[Message] | None
"""An answer that is given whole."""


@dataclass(frozen=True, slots=True)
class AgentRequest:
    """What a run is about, after every provider has added to it."""

    run: RunContext
    """The run: its session, properties and kwargs; `run.agent.chat_client()` calls a model."""
    messages: Sequence[Message]
    """What a model would see: history, context and input, oldest first."""
    input_messages: Sequence[Message]
    """The input alone."""
    instructions: str = ""
    """The agent's, the providers' and the run's, one below the other."""
    options: RunOptions = field(default_factory=RunOptions)
    tools: Sequence[FunctionTool] = ()
    """What the agent and the providers offer."""
    response_schema: JsonObject | None = None
    """JSON Schema that the answer must follow."""
    client_kwargs: Mapping[str, Any] = field(default_factory=dict[str, Any])
    is_streaming: bool = True
    """Whether the host wants pieces."""

    @property
    def input_text(self) -> str:
        """The text of the input."""
        return "\n".join(message.text for message in self.input_messages if message.role == "user")

    def chat_request(self) -> ChatRequest:
        """What the loop would ask a model first."""
        tools: list[ToolSpec] = [tool.spec() for tool in self.tools]
        return ChatRequest(
            messages=self.messages,
            instructions=self.instructions,
            options=self.options,
            tools=tools,
            response_schema=self.response_schema,
            client_kwargs=self.client_kwargs,
        )


class CustomAgent(ABC):
    """What an agent does, in code. One object serves one open session, and may be made anew at any time.

    What must last belongs into the session's state (`request.run.session.state`).
    """

    config_type: ClassVar[type[ProviderConfig]] = ProviderConfig
    """What `implementation_config` of the agent may hold."""

    def __init__(self, name: str, config: ProviderConfig | None = None) -> None:
        """`name`: the agent's, as configured."""
        self.name = name
        self.config = config if config is not None else self.config_type()

    @abstractmethod
    def run(self, request: AgentRequest) -> AsyncIterator[Said] | Awaitable[Answer] | Answer:
        """Do the run.

        Write it as an async generator of pieces, as an async function, or as a plain function: that is called in a
        thread, and may block. Where it is cancelled, an async one gets a `CancelledError`; the thread is left behind.

        Raises:
            AgentError: the run failed, and the host may know why. Any other exception is told by its type only.
        """


class AgentError(Exception):
    """An agent cannot do its work. The text is told to the host: it must repeat no secret."""
