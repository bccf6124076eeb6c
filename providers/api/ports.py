"""What a provider is given: Protocols and the plain values they speak in. Nothing here does anything."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from protocol.agents import RunOptions
from protocol.base import JsonObject
from protocol.messages import FunctionCallBlock, Message, Usage

FinishReason = Literal["stop", "length", "toolCalls", "contentFilter", "refusal"]
HostedTool = Literal["web_search"]
"""What a model's service may do by itself during a call."""


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """A tool as a model is told of it."""

    name: str
    description: str
    input_schema: JsonObject
    hosted: HostedTool | None = None
    """A tool that the model's service runs by itself; it is named, not called."""


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """One model call. `messages` hold no system instructions: those are `instructions`."""

    messages: Sequence[Message]
    instructions: str = ""
    options: RunOptions = field(default_factory=RunOptions)
    tools: Sequence[ToolSpec] = ()
    response_schema: JsonObject | None = None
    """JSON Schema that the answer must follow."""
    client_kwargs: Mapping[str, Any] = field(default_factory=dict[str, Any])
    conversation_id: str | None = None
    """The conversation, or the earlier answer, at the model's service that this call goes on from."""


@dataclass(frozen=True, slots=True)
class TextDelta:
    """Some more text of the answer."""

    text: str


@dataclass(frozen=True, slots=True)
class ReasoningDelta:
    """Some more of the model's reasoning."""

    text: str


@dataclass(frozen=True, slots=True)
class CallRequested:
    """A tool call, whole: sent only after its last fragment."""

    call: FunctionCallBlock


@dataclass(frozen=True, slots=True)
class RetryNotice:
    """The client will try again; nothing of the failed attempt was handed on."""

    message: str
    attempt: int


@dataclass(frozen=True, slots=True)
class Finished:
    """The end of a call: always the last update, exactly one."""

    reason: FinishReason
    usage: Usage | None = None
    """`None` where the endpoint did not say."""
    model: str | None = None
    conversation_id: str | None = None
    """Where the service keeps the conversation now; `None` where it keeps none."""


ChatUpdate = TextDelta | ReasoningDelta | CallRequested | RetryNotice | Finished


@dataclass(frozen=True, slots=True)
class ModelTraits:
    """What a model can do, as far as it is known."""

    tools: bool | None = None
    images: bool | None = None
    context_size: int | None = None
    """Tokens."""
    single_field_extraction: bool = False
    """So small that structured extraction works only with one field a call."""
    keeps_conversations: bool = False
    """Whether its service can keep the conversation, and go on from it."""
    stores_by_default: bool = False
    """Whether its service keeps the conversation unless `options.store` is false."""
    hosted_tools: frozenset[HostedTool] = frozenset()
    """What its service can do by itself."""


class ChatClient(Protocol):
    """One model behind one endpoint. `chat_client.py` has base classes for one of your own."""

    @property
    def name(self) -> str:
        """`endpoint:model`."""
        ...

    @property
    def traits(self) -> ModelTraits:
        """What it can do."""
        ...

    def stream(self, request: ChatRequest) -> AsyncGenerator[ChatUpdate, None]:
        """Make the call. Closing the generator ends it and frees its connection.

        Raises:
            Exception: the call failed, or ended without an ending; what was already handed on stands.
        """
        ...


@dataclass(frozen=True, slots=True)
class ChatAnswer:
    """A call's answer, joined."""

    text: str
    finish: Finished = Finished("stop")
    calls: tuple[FunctionCallBlock, ...] = ()


async def ask(client: ChatClient, request: ChatRequest) -> ChatAnswer:
    """Make a call and join its answer.

    Raises:
        ValueError: the answer has no ending.
        Exception: what `ChatClient.stream` raises.
    """
    text: list[str] = []
    calls: list[FunctionCallBlock] = []
    finish: Finished | None = None
    async with aclosing(client.stream(request)) as updates:
        async for update in updates:
            match update:
                case TextDelta():
                    text.append(update.text)
                case CallRequested():
                    calls.append(update.call)
                case Finished():
                    finish = update
                case _:
                    pass
    if finish is None:
        raise ValueError("the answer ended without an ending")
    return ChatAnswer("".join(text), finish, tuple(calls))


class ChatClients(Protocol):
    """Finds the client of a model by name."""

    def get(self, model: str) -> ChatClient:
        """The client of `endpoint:model`. Raises if there is no such endpoint."""
        ...


class AgentView(Protocol):
    """What a provider may know of the agent that runs."""

    @property
    def name(self) -> str:
        """The agent's name."""
        ...

    @property
    def instructions(self) -> str:
        """The agent's own instructions."""
        ...

    def chat_client(self, model: str | None = None) -> ChatClient:
        """The run's own client, or that of another model. Its calls count in the run's usage."""
        ...


class HistoryStore(Protocol):
    """The transcript that the sidecar keeps for every session."""

    async def load(self, session_id: str) -> Sequence[Message]:
        """All messages of the transcript, oldest first, frozen and shared: never copied."""
        ...
