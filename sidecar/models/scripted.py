r"""A model that says what a file tells it to: for testing agents without a model. Public: see `docs/scripted-model.md`.

    [[reply]]
    when = "my name is (?P<name>\w+)"       # whenever the last user text says so
    text = "Hello, {name}!"

    [[reply]]                                 # first call of a conversation
    calls = [{ name = "weather", arguments = { city = "Ghent" } }]

    [[reply]]                                 # second call: one assistant message is in the request
    text = "{result}, so take a coat."

Replies with a condition (`when…`) come first, in the file's order; the others are taken in turn, by the number of
assistant messages in the request. Nothing is counted here: the same request always gets the same reply, whatever other
sessions do. `scripted:echo` needs no file and answers with the last user text.
"""

import asyncio
import json
import re
from collections.abc import AsyncGenerator, Mapping
from typing import Any, Final, cast

from protocol.base import JsonObject
from protocol.messages import FunctionCallBlock, Usage, text_length
from providers.api.ports import (
    CallRequested,
    ChatRequest,
    ChatUpdate,
    Finished,
    FinishReason,
    ModelTraits,
    ReasoningDelta,
    TextDelta,
)
from sidecar.errors import (
    ContentFiltered,
    ContextWindowExceeded,
    ModelAuth,
    ModelBadRequest,
    ModelBadStream,
    ModelNotFound,
    ModelQuota,
    ModelRateLimited,
    ModelTimeout,
    ModelUnavailable,
    SidecarError,
)

from .script_file import ErrorKind, Match, Script, ScriptedReply, read_script

ECHO: Final = "echo"

_ERRORS: Final[dict[ErrorKind, type[SidecarError]]] = {
    "modelAuth": ModelAuth,
    "modelRateLimited": ModelRateLimited,
    "modelQuota": ModelQuota,
    "contextWindowExceeded": ContextWindowExceeded,
    "contentFiltered": ContentFiltered,
    "modelBadRequest": ModelBadRequest,
    "modelUnavailable": ModelUnavailable,
    "modelTimeout": ModelTimeout,
    "modelBadStream": ModelBadStream,
    "modelNotFound": ModelNotFound,
}


YIELD_EVERY: Final = 16
"""Deltas between two steps of the event loop, where the script names no delay."""


class ScriptedChat:
    """One script. It is read at the first call, once."""

    def __init__(self, endpoint: str, model: str, *, context_size: int | None = None) -> None:
        """`model`: a script's path, or `echo`."""
        self._endpoint = endpoint
        self._model = model
        self._context_size = context_size
        self._script: Script | None = None

    @property
    def name(self) -> str:
        """`endpoint:model`."""
        return f"{self._endpoint}:{self._model}"

    @property
    def traits(self) -> ModelTraits:
        """Whatever the script makes of it."""
        return ModelTraits(tools=True, images=True, context_size=self._context_size)

    async def stream(self, request: ChatRequest) -> AsyncGenerator[ChatUpdate, None]:
        """Play the reply; see `ChatClient.stream`.

        Raises:
            ModelNotFound: there is no such script.
            ConfigInvalid: the script is damaged.
            ModelBadRequest: no reply of the script fits.
            ModelError: the script says so.
        """
        if self._model == ECHO:
            match: Match | None = Match(ScriptedReply(text="{input}"), {"input": _last_user_text(request)})
        else:
            if self._script is None:
                self._script = await asyncio.to_thread(read_script, self._model)
            match = self._script.match(request)
        if match is None:
            match = self._nothing(request)
        async for update in _play(match, request):
            yield update

    def _nothing(self, request: ChatRequest) -> Match:
        """The answer where the script is silent: "nothing found" to a request for data, else an error."""
        if request.response_schema is not None:
            fields = cast(JsonObject, request.response_schema.get("properties") or {})
            return Match(ScriptedReply(data=dict.fromkeys(fields)), {})
        raise ModelBadRequest(
            f"the script {self._model!r} has no reply for this request (turn {_turn(request)}, counted from 0)"
        )


async def _play(match: Match, request: ChatRequest) -> AsyncGenerator[ChatUpdate, None]:
    reply, values = match.reply, match.values
    if reply.delay_ms:
        await asyncio.sleep(reply.delay_ms / 1000)
    if reply.reasoning:
        yield ReasoningDelta(_filled(reply.reasoning, values))
    deltas = _deltas(reply, values)
    for number, text in enumerate(deltas):
        if number and (reply.delta_delay_ms or number % YIELD_EVERY == 0):
            await asyncio.sleep(reply.delta_delay_ms / 1000)  # 0 lets others work, as a real stream would
        yield TextDelta(text)
    if reply.stall:
        await asyncio.Event().wait()
    if reply.error:
        raise _ERRORS[reply.error](
            "the script says so", retry_after_ms=reply.retry_after_ms, http_status=reply.http_status
        )
    turn = _turn(request) if reply.calls else 0
    for number, call in enumerate(reply.calls):
        arguments: JsonObject = {} if call.raw_arguments is not None else _filled_data(call.arguments, values)
        yield CallRequested(
            FunctionCallBlock(
                call_id=f"call_{turn}_{number}", name=call.name, arguments=arguments, raw_arguments=call.raw_arguments
            )
        )
    yield Finished(_reason(reply), _usage(reply, request, "".join(deltas)), "scripted")


def _reason(reply: ScriptedReply) -> FinishReason:
    return reply.finish or ("toolCalls" if reply.calls else "stop")


def _usage(reply: ScriptedReply, request: ChatRequest, text: str) -> Usage:
    if reply.usage is not None:
        return Usage(input_tokens=reply.usage.input_tokens, output_tokens=reply.usage.output_tokens)
    given = len(request.instructions) + text_length(request.messages)
    return Usage(input_tokens=-(-given // 4), output_tokens=-(-len(text) // 4), estimated=True)


def _deltas(reply: ScriptedReply, values: Mapping[str, str]) -> list[str]:
    if reply.data is not None:
        return [json.dumps(_filled_data(reply.data, values), ensure_ascii=False)]
    if isinstance(reply.text, tuple):
        return [_filled(text, values) for text in reply.text]
    return re.findall(r"\S+\s*|\s+", _filled(reply.text or "", values))


def _filled(text: str, values: Mapping[str, str]) -> str:
    """The text with its placeholders replaced; other braces stay."""
    return re.sub(r"\{(\w+)\}", lambda found: values.get(found[1], found[0]), text) if "{" in text else text


def _filled_data(data: Any, values: Mapping[str, str]) -> Any:
    match data:
        case str():
            return _filled(data, values)
        case list():
            return [_filled_data(item, values) for item in cast(list[Any], data)]
        case dict():
            return {key: _filled_data(item, values) for key, item in cast(JsonObject, data).items()}
        case _:
            return data


def _turn(request: ChatRequest) -> int:
    """How often the model has answered already."""
    return sum(message.role == "assistant" for message in request.messages)


def _last_user_text(request: ChatRequest) -> str:
    return next((message.text for message in reversed(request.messages) if message.role == "user"), "")
