"""One model call of a run, as its middleware and its host see it: streamed, held back or replaced. Runs no tools."""

from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import Final, cast

from protocol.messages import Block, FunctionCallBlock, FunctionResultBlock, TextBlock
from providers.api.middleware import ChatContext, processor_of
from providers.api.ports import (
    CallRequested,
    ChatAnswer,
    ChatClient,
    ChatRequest,
    Finished,
    ReasoningDelta,
    RetryNotice,
    TextDelta,
)
from providers.api.run_context import RunContext
from sidecar.errors import MiddlewareFailed, ModelBadStream

from .guards import through_guards
from .onion import Layer
from .output import MessageWriter, Progress
from .pairing import paired
from .parts import BoundMiddleware
from .sink import Draft, RunSink

_NOTHING: Final = ChatAnswer("", Finished("stop"))


@dataclass(frozen=True, slots=True)
class Answered:
    """A whole answer of a model."""

    message_id: str
    blocks: tuple[Block, ...]
    """What was said; its calls are apart."""
    calls: tuple[FunctionCallBlock, ...]
    finish: Finished
    replaced_by: str | None = None
    """The middleware's own words, where it changed what the model said."""


class ModelCaller:
    """Makes the calls of one run."""

    def __init__(
        self,
        client: ChatClient,
        progress: Progress,
        sink: RunSink,
        run: RunContext,
        middleware: Sequence[BoundMiddleware],
        limit_s: float,
    ) -> None:
        """Nothing is called yet.

        Args:
            client: The metered client.
            progress: Where the text of a cut message is kept.
            sink: Takes what is streamed.
            run: What chat middleware may know.
            middleware: Chat middleware, outermost first.
            limit_s: The middleware's own time around one call.
        """
        self._client = client
        self._progress = progress
        self._sink = sink
        self._run = run
        self._layers: list[Layer] = [processor_of(bound.middleware) for bound in middleware]
        self._names = ", ".join(bound.name for bound in middleware)
        self._limit_s = limit_s

    async def call(self, request: ChatRequest) -> Answered:
        """Make the call.

        Raises:
            SidecarError: the model, or its middleware, failed.
        """
        self._progress.meter.calls.planned(request, self._names)
        if not self._layers:
            return await self._stream(request, hold=False)
        context = ChatContext(
            model=self._client.name,
            messages=list(request.messages),
            instructions=request.instructions,
            options=request.options,
            tools=request.tools,
            client_kwargs=dict(request.client_kwargs),
            session=self._run.session,
            run=self._run,
        )
        try:
            return await self._within(context, request)
        except BaseException:
            if context.hold_text:  # what middleware was to see first is not shown as the text of a cut message
                self._progress.partial.clear()
            raise

    async def _within(self, context: ChatContext, request: ChatRequest) -> Answered:
        """The call inside its middleware."""
        last: list[Answered] = []

        async def inside() -> None:
            last[:] = [await self._stream(_request_of(context, request), hold=context.hold_text)]
            context.result = ChatAnswer(_text(last[0].blocks), last[0].finish, last[0].calls)

        ended = await through_guards(self._layers, context, inside, kind="chat", limit_s=self._limit_s, repeatable=True)
        if context.result is None and not ended:
            raise MiddlewareFailed("chat", "it left the call out, and gave no result")
        if not isinstance(cast("object", context.result), ChatAnswer | None):
            raise MiddlewareFailed("chat", f"its result is a {type(context.result).__name__}, not a ChatAnswer")
        return self._told(context, last[0] if last else None)

    def _told(self, context: ChatContext, said: Answered | None) -> Answered:
        """What the host and the transcript get: the model's answer, or what middleware put in its place."""
        result = context.result or _NOTHING
        finish = result.finish
        if said is not None and finish.conversation_id is None:  # the service has kept it, whatever becomes of it here
            finish = replace(finish, conversation_id=said.finish.conversation_id)
        if said is not None and result.text == _text(said.blocks):
            if context.hold_text:
                self._send(said.message_id, result.text)
            return Answered(said.message_id, said.blocks, result.calls, finish)
        writer = MessageWriter(self._progress, self._sink)
        if said is None or context.hold_text:
            writer.text(result.text)
        blocks: tuple[Block, ...] = (TextBlock(text=result.text),) if result.text else ()
        message_id = writer.message_id if said is None or context.hold_text else said.message_id
        return Answered(message_id, blocks, result.calls, finish, replaced_by=self._names)

    def _send(self, message_id: str, text: str) -> None:
        if text:
            self._sink.ephemeral("message.started", {"messageId": message_id, "role": "assistant"})
            self._sink.ephemeral("message.delta", {"messageId": message_id, "contentIndex": 0, "text": text})

    async def _stream(self, request: ChatRequest, *, hold: bool) -> Answered:
        """The call itself, its pieces sent on as they come."""
        writer = MessageWriter(self._progress, self._sink, silent=hold)
        calls: list[FunctionCallBlock] = []
        finish: Finished | None = None
        async with aclosing(self._client.stream(request)) as updates:
            async for update in updates:
                match update:
                    case TextDelta(text):
                        writer.text(text)
                        if self._sink.congested:
                            await self._sink.breathe()
                    case ReasoningDelta(text):
                        writer.reasoning(text)
                        if self._sink.congested:
                            await self._sink.breathe()
                    case CallRequested(call):
                        calls.append(call)
                    case RetryNotice(message, attempt):
                        data = {"kind": "modelRetry", "message": message, "willRetry": True, "attempt": attempt}
                        await self._sink.commit(Draft("warning", data))
                    case Finished():
                        finish = update
        if finish is None:
            raise ModelBadStream("the model's answer ended without an ending")
        return Answered(writer.message_id, tuple(writer.blocks()), tuple(calls), finish)


def _request_of(context: ChatContext, request: ChatRequest) -> ChatRequest:
    return replace(
        request,
        messages=paired(context.messages, _open_at_service(request)),
        instructions=context.instructions,
        options=context.options,
        tools=context.tools,
        client_kwargs=context.client_kwargs,
    )


def _open_at_service(request: ChatRequest) -> set[str]:
    """Calls whose results may stand alone, because the service has the calls."""
    if request.conversation_id is None:
        return set()
    blocks = [block for message in request.messages for block in message.content]
    results = {block.call_id for block in blocks if isinstance(block, FunctionResultBlock)}
    return results - {block.call_id for block in blocks if isinstance(block, FunctionCallBlock)}


def _text(blocks: Sequence[Block]) -> str:
    return "".join(block.text for block in blocks if isinstance(block, TextBlock))
