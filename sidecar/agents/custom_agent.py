"""One run of an agent that has a `run` of its own: its pieces streamed and stored. It stands where the loop would.

What the agent raises fails the run by its type only; what it gives is checked. It calls no model by itself.
"""

import asyncio
import inspect
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import aclosing
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, Final, Protocol, cast

from protocol.messages import (
    ApprovalRequestBlock,
    ApprovalResponseBlock,
    Block,
    FunctionCallBlock,
    FunctionResultBlock,
    Message,
    Source,
    TextBlock,
)
from providers.api.agent import AgentError, AgentRequest, CustomAgent
from providers.api.clean_text import clean_text
from providers.api.context import Response
from providers.api.ports import ChatClient, ChatRequest, ChatUpdate, ModelTraits
from providers.import_thread import off_loop
from sidecar.errors import AgentFailed, SidecarError
from sidecar.models.answer_text import TextJoiner
from sidecar.telemetry import log_failure

from .loop import Conversation, completed_draft
from .output import MessageWriter, Progress, new_message_id
from .pairing import paired
from .sink import RunSink
from .steering import Steering

YIELD_EVERY: Final = 16
"""Pieces between two steps of the event loop: an agent that never waits must not hold up the others."""

_NOT_ITS_OWN: Final = (FunctionCallBlock, FunctionResultBlock, ApprovalRequestBlock, ApprovalResponseBlock)
"""What only the loop may put into a transcript: each belongs to another."""


class CustomRun:
    """One run."""

    def __init__(
        self,
        agent: CustomAgent,
        request: AgentRequest,
        conversation: Conversation,
        progress: Progress,
        steering: Steering,
        sink: RunSink,
    ) -> None:
        """Nothing is called yet.

        Args:
            agent: What answers.
            request: What it is given, without messages and instructions.
            conversation: What a model would see.
            progress: How far the run has come.
            steering: Input that comes meanwhile.
            sink: Takes the events.
        """
        self._agent = agent
        self._request = request
        self._name = request.run.agent.name
        self._conversation = conversation
        self._progress = progress
        self._steering = steering
        self._sink = sink
        self._begin_message()

    async def run(self) -> None:
        """Let the agent answer.

        Raises:
            AgentFailed: the agent raised something, or gave what is no answer.
            SidecarError: a model that it called failed.
        """
        request = await self._whole_request()
        try:
            await self._take_all(await self._begun(request))
            await self._complete_text()
        except SidecarError:
            raise
        except AgentError as error:
            raise AgentFailed(self._name, str(error)) from error
        except BaseException as error:
            if isinstance(error, asyncio.CancelledError) and _is_cancelled():
                raise
            failure = AgentFailed(self._name, type(error).__name__)
            log_failure(f"agent {self._name}", error, failure.error_id)
            raise failure from error

    async def _whole_request(self) -> AgentRequest:
        """The request. Input that came until now is part of it; what comes later is of the next run."""
        joining = await self._steering.end()
        self._progress.transcript.extend(joining)
        self._conversation.join(joining)
        await self._sink.commit(*map(completed_draft, joining))
        return replace(
            self._request,
            messages=paired(await self._conversation.messages(), ()),
            input_messages=(*self._request.input_messages, *joining),
            instructions=self._conversation.instructions(),
        )

    async def _begun(self, request: AgentRequest) -> object:
        """What the agent's `run` gave, awaited if it is to be."""
        run: Callable[[AgentRequest], Any] = self._agent.run
        is_async = inspect.iscoroutinefunction(run) or inspect.isasyncgenfunction(run)
        answer = run(request) if is_async else await off_loop(lambda: run(request))
        return await answer if inspect.isawaitable(answer) else answer

    async def _take_all(self, answer: object) -> None:
        if isinstance(answer, AsyncGenerator):
            async with aclosing(cast("AsyncGenerator[Any, None]", answer)) as pieces:
                await self._take_each(pieces)
        elif isinstance(answer, AsyncIterator):
            await self._take_each(cast("AsyncIterator[Any]", answer))
        else:
            for piece in self._whole(answer):
                await self._take(piece)

    async def _take_each(self, pieces: AsyncIterator[Any]) -> None:
        count = 0
        async for piece in pieces:
            await self._take(piece)
            count += 1
            if count % YIELD_EVERY == 0:
                await asyncio.sleep(0)

    def _whole(self, answer: object) -> Sequence[object]:
        """The pieces of an answer that was given at once."""
        match answer:
            case None:
                return ()
            case Response(messages=messages, text=text):
                return messages or (text,)
            case list() | tuple():
                return cast("Sequence[object]", answer)
            case _:
                return (answer,)

    async def _take(self, piece: object) -> None:
        match piece:
            case str():
                self._writer.text(self._text.add(piece))
            case Message():
                await self._complete_text()
                await self._complete(new_message_id(), self._content(piece))
            case _:
                raise AgentFailed(self._name, f"its run gave a {type(piece).__name__}, not text or a Message")
        if self._sink.congested:
            await self._sink.breathe()

    def _content(self, message: Message) -> tuple[Block, ...]:
        if message.role != "assistant":
            raise AgentFailed(self._name, f"its run gave a message of the role {message.role!r}, not 'assistant'")
        if any(isinstance(block, _NOT_ITS_OWN) for block in message.content):
            raise AgentFailed(self._name, "its run gave a message that holds calls, results or approvals")
        return tuple(
            TextBlock(text=clean_text(block.text)) if isinstance(block, TextBlock) else block
            for block in message.content
        )

    def _begin_message(self) -> None:
        self._writer = MessageWriter(self._progress, self._sink)
        self._text = TextJoiner()

    async def _complete_text(self) -> None:
        self._writer.text(self._text.finish())
        message_id, content = self._writer.message_id, tuple(self._writer.blocks())
        await self._complete(message_id, content)
        self._begin_message()

    async def _complete(self, message_id: str, content: tuple[Block, ...]) -> None:
        """Store a whole message; an empty one is none."""
        if not content:
            return
        message = Message(
            message_id=message_id,
            role="assistant",
            content=content,
            author_name=self._name,
            source=Source(type="agent", source_id=self._name),
            run_id=self._request.run.run_id,
            created_at=datetime.now(UTC).isoformat().replace("+00:00", "Z"),
        )
        self._progress.add(message)
        self._progress.partial_id = None
        self._progress.partial.clear()  # before the commit: a cancel in it must not leave the text behind twice
        await self._sink.commit(completed_draft(message))


class Models(Protocol):
    """Where a run finds its model."""

    async def ready(self, model: str) -> ChatClient:
        """The client of `endpoint:model`, which can tell its traits."""
        ...

    async def default(self) -> str:
        """The model of an agent that names none."""
        ...


class UnnamedModel:
    """The model of an agent with a `run` of its own that names none: looked up when it is called, if it ever is."""

    def __init__(self, models: Models) -> None:
        self.name = "default"
        self.traits = ModelTraits()
        self._models = models

    async def stream(self, request: ChatRequest) -> AsyncGenerator[ChatUpdate, None]:
        """Make the call, as the model that is the default one.

        Raises:
            SidecarError: there is no default model, or the call failed.
        """
        client = await self._models.ready(await self._models.default())
        self.name = client.name
        async with aclosing(client.stream(request)) as updates:
            async for update in updates:
                yield update


def _is_cancelled() -> bool:
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
