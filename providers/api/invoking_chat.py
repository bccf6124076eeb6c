"""Messages and a chat client as providers of the 2025 style know them. The model behind it is the run's own.

What such a provider imports stands here and in `invoking.py`, under the names that it knows, except that its base class
`ContextProvider` is `InvokingProvider`.
"""

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final, Protocol

from pydantic import BaseModel

from protocol.agents import RunOptions
from protocol.base import Json, JsonObject
from protocol.messages import Block, Message, TextBlock

from .json_value import parse_json
from .ports import AgentView, ChatRequest, ask


class Role(StrEnum):
    """Who says a message; it equals its plain string."""

    SYSTEM = "system"
    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"


class ChatMessage:
    """One message; a view of a `Message`, which is `message`."""

    def __init__(
        self,
        role: Role | str,
        *,
        text: str = "",
        contents: Sequence[Block | str] = (),
        author_name: str | None = None,
        message_id: str | None = None,
        additional_properties: JsonObject | None = None,
    ) -> None:
        """A new message: its text first, if there is any, then its contents."""
        pieces = (*((text,) if text else ()), *contents)
        self.message = Message(
            role=Role(role).value,
            content=tuple(TextBlock(text=piece) if isinstance(piece, str) else piece for piece in pieces),
            author_name=author_name,
            message_id=message_id,
            metadata=additional_properties,
        )

    @classmethod
    def of(cls, message: Message) -> "ChatMessage":
        """The view of a message."""
        view = cls.__new__(cls)
        view.message = message
        return view

    @property
    def role(self) -> Role:
        """Who says it."""
        return Role(self.message.role)

    @property
    def text(self) -> str:
        """Its text blocks, joined."""
        return self.message.text

    @property
    def contents(self) -> list[Block]:
        """Its blocks."""
        return list(self.message.content)

    @property
    def author_name(self) -> str | None:
        """The name of who says it."""
        return self.message.author_name

    @property
    def message_id(self) -> str | None:
        """Its id; `None` before the sidecar has given it one."""
        return self.message.message_id

    @property
    def additional_properties(self) -> JsonObject:
        """A copy of its metadata."""
        return dict(self.message.metadata or {})

    def __repr__(self) -> str:
        return f"ChatMessage({self.role.value!r}, text={self.text!r})"


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatOptions:
    """How a call is made."""

    instructions: str | None = None
    response_format: type[BaseModel] | JsonObject | None = None
    """What the answer is to be: a pydantic model, or a JSON Schema."""
    model_id: str | None = None
    """`endpoint:model`; default: the run's own."""
    temperature: float | None = None
    top_p: float | None = None
    max_tokens: int | None = None
    seed: int | None = None
    stop: Sequence[str] | None = None


@dataclass(frozen=True, slots=True)
class ChatResponse:
    """What the model answered."""

    messages: list[ChatMessage]
    value: Any = None
    """The answer as `response_format`; `None` where none was asked for, or the answer is not of that form."""
    text: str = field(default="", kw_only=True)


class ChatClientProtocol(Protocol):
    """What a provider calls a model with."""

    async def get_response(
        self, messages: str | ChatMessage | Sequence[ChatMessage], *, chat_options: ChatOptions | None = None
    ) -> ChatResponse:
        """Make one call.

        Raises:
            Exception: the call failed.
        """
        ...


class RunChatClient:
    """The model of whichever run is asking: a provider may keep it, and its calls count in the usage of that run."""

    async def get_response(
        self, messages: str | ChatMessage | Sequence[ChatMessage], *, chat_options: ChatOptions | None = None
    ) -> ChatResponse:
        """Make one call.

        Raises:
            RuntimeError: no run is asking.
            ValueError: the answer has no ending.
            Exception: the call failed.
        """
        agent = _asking.get()
        if agent is None:
            raise RuntimeError("this chat client works only while a run asks its provider")
        options = chat_options or _DEFAULTS
        answer = await ask(agent.chat_client(options.model_id), _request(messages, options))
        message = ChatMessage(Role.ASSISTANT, text=answer.text, contents=answer.calls)
        return ChatResponse([message], _value(answer.text, options.response_format), text=answer.text)


@contextmanager
def on_behalf_of(agent: AgentView) -> Generator[None]:
    """Inside, every `RunChatClient` calls the agent's model."""
    token = _asking.set(agent)
    try:
        yield
    finally:
        _asking.reset(token)


_asking: ContextVar[AgentView | None] = ContextVar("agent_sidecar_asking", default=None)
_DEFAULTS: Final = ChatOptions()


def _request(messages: str | ChatMessage | Sequence[ChatMessage], options: ChatOptions) -> ChatRequest:
    if isinstance(messages, str):
        messages = ChatMessage(Role.USER, text=messages)
    wanted = options.response_format
    set_options = {
        "temperature": options.temperature,
        "top_p": options.top_p,
        "max_output_tokens": options.max_tokens,
        "seed": options.seed,
        "stop": options.stop,
    }
    return ChatRequest(
        messages=[view.message for view in ([messages] if isinstance(messages, ChatMessage) else messages)],
        instructions=options.instructions or "",
        options=RunOptions.model_validate({name: value for name, value in set_options.items() if value is not None}),
        response_schema=wanted.model_json_schema() if isinstance(wanted, type) else wanted,
    )


def _value(text: str, wanted: type[BaseModel] | JsonObject | None) -> BaseModel | Json:
    if wanted is None:
        return None
    try:
        return wanted.model_validate_json(text) if isinstance(wanted, type) else parse_json(text)
    except ValueError:  # pydantic's own is one: what a model answers is its affair, not a fault of the call
        return None
