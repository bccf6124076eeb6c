"""The base classes of chat clients of one's own: models that are reached in a way that the sidecar does not know.

    class Shout(GetResponseClient):
        async def get_response(self, messages, *, options=None, client_kwargs=None, **kwargs):
            return messages[-1].text.upper()

A configuration names the class: `[endpoints.mine] type = "module:Shout"`. Its models are then `mine:ANYTHING`. A
class need not inherit from these: it is enough to have `stream` or `get_response`, and to be made alike.
"""

import inspect
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from typing import Any, ClassVar, Final, Literal, TypedDict

from protocol.base import JsonObject
from protocol.messages import Message
from providers.import_thread import off_loop

from .ports import CallRequested, ChatAnswer, ChatRequest, ChatUpdate, ModelTraits, TextDelta, ToolSpec
from .provider import ProviderConfig

ChatErrorKind = Literal[
    "modelAuth",
    "modelRateLimited",
    "modelQuota",
    "contextWindowExceeded",
    "contentFiltered",
    "modelBadRequest",
    "modelUnavailable",
    "modelTimeout",
    "modelBadStream",
    "modelNotFound",
]


class ChatClientError(Exception):
    """A call failed in a way that the host is to know. Its text is told to the host: it must repeat no secret.

    Any other exception becomes a `modelUnavailable` that names its type only.
    """

    def __init__(self, kind: ChatErrorKind, message: str, *, retry_after_ms: int | None = None) -> None:
        super().__init__(message)
        self.kind: Final = kind
        self.message: Final = message
        self.retry_after_ms: Final = retry_after_ms
        """When the service wants to be asked again, where it said so."""


class CustomChatClient(ABC):
    """One model behind one endpoint. It is made at its first call, once, and serves every session at the same time.

    One that holds something open may have a method `aclose`, async or not: it is called once, when no session has the
    endpoint any more, or the process ends.
    """

    config_type: ClassVar[type[ProviderConfig]] = ProviderConfig
    """What `config` of the endpoint may hold."""

    def __init__(self, endpoint: str, model: str, config: ProviderConfig | None = None) -> None:
        """`endpoint` and `model`: the two halves of `endpoint:model`."""
        self.endpoint = endpoint
        self.model = model
        self.config = config if config is not None else self.config_type()

    @property
    def name(self) -> str:
        """`endpoint:model`."""
        return f"{self.endpoint}:{self.model}"

    @property
    def traits(self) -> ModelTraits:
        """What the model can do; nothing is known of it by default."""
        return ModelTraits()

    @abstractmethod
    def stream(self, request: ChatRequest) -> AsyncGenerator[ChatUpdate, None]:
        """Make the call: see `ChatClient.stream`. Written as an async generator; it must never block.

        Raises:
            ChatClientError: the call failed, and the host may know why.
        """


class ChatOptions(TypedDict, total=False):
    """What `get_response` is given as `options`. What is not set is not there."""

    instructions: str
    """The system instructions; `messages` hold none."""
    tools: Sequence[ToolSpec]
    response_schema: JsonObject
    conversation_id: str
    temperature: float
    top_p: float
    max_output_tokens: int
    tool_choice: Any
    reasoning_effort: str
    seed: int
    stop: Sequence[str]
    store: bool
    parallel_tool_calls: bool


class GetResponseClient(CustomChatClient):
    """A client that gives its answer whole."""

    @abstractmethod
    def get_response(
        self,
        messages: Sequence[Message],
        *,
        options: ChatOptions | None = None,
        client_kwargs: Mapping[str, Any] | None = None,
        **kwargs: Any,
    ) -> Awaitable[str | ChatAnswer] | str | ChatAnswer:
        """The answer to messages: its text, or a `ChatAnswer` where there are tool calls, usage or another ending.

        It may be async, or a plain function: that is called in a thread, and may block.

        Args:
            messages: The conversation, oldest first.
            options: How the call is made.
            client_kwargs: The run's `clientKwargs`.
            kwargs: Nothing yet.

        Raises:
            ChatClientError: the call failed, and the host may know why.
        """

    async def stream(self, request: ChatRequest) -> AsyncGenerator[ChatUpdate, None]:
        """The answer as a stream of one piece."""
        for update in await whole_answer(self.get_response, request):
            yield update


async def whole_answer(get_response: Callable[..., Any], request: ChatRequest) -> list[ChatUpdate]:
    """Ask for an answer, in a thread where the function is not async, and give it as a stream's updates.

    Raises:
        TypeError: the answer is neither text nor a `ChatAnswer`.
        Exception: what the function raises.
    """

    def ask() -> Any:
        kwargs = dict(request.client_kwargs)
        return get_response(request.messages, options=chat_options(request), client_kwargs=kwargs)

    answer = ask() if inspect.iscoroutinefunction(get_response) else await off_loop(ask)
    if inspect.isawaitable(answer):
        answer = await answer
    if isinstance(answer, str):
        answer = ChatAnswer(answer)
    if not isinstance(answer, ChatAnswer):
        raise TypeError(f"get_response gave a {type(answer).__name__}, not a str or a ChatAnswer")
    said = [TextDelta(answer.text)] if answer.text else []
    return [*said, *map(CallRequested, answer.calls), answer.finish]


def chat_options(request: ChatRequest) -> ChatOptions:
    """A request's options as `get_response` takes them."""
    elsewhere = {"instructions", "max_turns", "model"}
    given: Any = request.options.model_dump(by_alias=False, exclude_none=True, exclude=elsewhere)
    more = {
        "instructions": request.instructions,
        "tools": request.tools,
        "response_schema": request.response_schema,
        "conversation_id": request.conversation_id,
    }
    given.update((key, value) for key, value in more.items() if value)
    return given
