"""Runs an agent once: providers, model calls until there is an answer, providers again. Knows no store, no wire."""

from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final, Protocol

from protocol.agents import RunOptions
from protocol.base import JsonObject
from protocol.messages import (
    Block,
    FunctionCallBlock,
    FunctionResultBlock,
    Message,
    ReasoningBlock,
    Source,
    TextBlock,
)
from providers.api.context import Response, SessionContext
from providers.api.ports import (
    CallRequested,
    ChatClient,
    ChatRequest,
    Finished,
    FinishReason,
    ReasoningDelta,
    RetryNotice,
    TextDelta,
)
from providers.api.session import Session
from sidecar.errors import ModelBadStream

from .metering import MeteredClient
from .output import MessageWriter, Progress, new_message_id
from .pipeline import HookStats, Pipeline
from .plan import AgentPlan
from .sink import Draft, RunSink
from .steering import Steering
from .structured import parse_value

LIMIT_TEXT: Final = "Function invocation limit reached before a final answer could be produced."
TRUNCATED_TEXT: Final = "Error: The call was cut off by the output limit and not run. Send it again, whole and shorter."
SURPLUS_TEXT: Final = "Error: The call was not run: one answer may hold {most} calls. Send it again in the next one."

_STOP_REASONS: Final[dict[FinishReason, str]] = {
    "stop": "endTurn",
    "toolCalls": "endTurn",
    "length": "maxTokens",
    "contentFilter": "contentFilter",
    "refusal": "refusal",
}


class ModelSource(Protocol):
    """Where a run finds its model."""

    def get(self, model: str) -> ChatClient:
        """The client of `endpoint:model`."""
        ...

    async def default(self) -> str:
        """The model of an agent that names none."""
        ...


@dataclass(frozen=True, slots=True)
class RunRequest:
    """What one run is about."""

    run_id: str
    input_messages: tuple[Message, ...]
    options: RunOptions
    """The agent's and the run's, merged."""
    run_instructions: str | None = None
    response_schema: JsonObject | None = None
    client_kwargs: JsonObject = field(default_factory=dict[str, Any])
    context_messages: tuple[Message, ...] = ()
    """Messages of the run itself that stand before the input and are not kept."""
    properties: JsonObject = field(default_factory=dict[str, Any])
    """What the host says of this run; stored nowhere."""


class Execution:
    """One run of one agent. `run` does the work; `failed` tells the providers when it could not be done."""

    def __init__(
        self,
        plan: AgentPlan,
        request: RunRequest,
        session: Session,
        context_session_id: str | None,
        models: ModelSource,
        sink: RunSink,
        stats: dict[str, HookStats],
    ) -> None:
        self.progress = Progress()
        self.steering = Steering()
        self._plan = plan
        self._request = request
        self._models = models
        self._sink = sink
        self._client: ChatClient | None = None
        self._context = SessionContext(
            session_id=context_session_id,
            input_messages=request.input_messages,
            options=request.options,
            service_session_id=session.service_session_id,
            properties=request.properties,
        )
        self._context.run_messages = request.context_messages
        self._pipeline = Pipeline(plan, self, session, self._context, sink, stats)

    @property
    def name(self) -> str:
        """The agent's name."""
        return self._plan.name

    @property
    def instructions(self) -> str:
        """The agent's own instructions."""
        return "\n".join(self._plan.instructions)

    def chat_client(self, model: str | None = None) -> ChatClient:
        """A client for a provider's own calls; they count in this run's usage."""
        client = self._models.get(model) if model is not None else self._client
        if client is None:
            raise RuntimeError("the run has no model yet")
        return MeteredClient(client, self.progress.meter)

    async def run(self) -> None:
        """Do the run; what came of it stands in `progress`.

        Raises:
            SidecarError: a provider or the model failed.
        """
        request, progress = self._request, self.progress
        model = request.options.model or self._plan.model
        self._client = self._models.get(model if model is not None else await self._models.default())
        progress.stage = "beforeRun"
        try:
            await self._pipeline.before()
        finally:
            await self._sink.commit()
        progress.stage = "model"
        await self._loop(self._client, self._pipeline.messages())
        progress.answered = True
        if request.response_schema is not None:
            await self._parse(request.response_schema)
        progress.stage = "afterRun"
        self._context.response = Response(tuple(progress.messages), progress.text)
        await self._pipeline.after()
        progress.stage = "ending"

    async def failed(self, error: Exception) -> None:
        """Give every provider that had begun the error and the partial text."""
        await self._pipeline.failed(error, self.progress.partial_text)

    async def _join(self, joining: Sequence[Message]) -> None:
        """Let input of the host's that came meanwhile stand behind what there is."""
        if joining:
            self.progress.transcript.extend(joining)
            self._context.input_messages += tuple(joining)
            await self._sink.commit(*map(completed_draft, joining))

    async def _parse(self, schema: JsonObject) -> None:
        """Read the last text as a value."""
        progress = self.progress
        said = (message.text for message in reversed(progress.messages) if message.role == "assistant")
        last = next((text for text in said if text.strip()), "")
        progress.value_error = "the run was stopped before its answer was read"
        progress.value, progress.value_error = await parse_value(last, schema)

    async def _loop(self, client: ChatClient, messages: list[Message]) -> None:
        """Call the model until it answers without calls. This build offers no tools: each call gets an error result."""
        truncated = 0
        for _ in range(self._max_turns()):
            await self._join(await self.steering.take())
            finish, calls = await self._call(client, [*messages, *self.progress.transcript])
            if not calls and await self.steering.end_if_empty():
                return
            cut = bool(calls) and finish.reason == "length"
            truncated += cut
            if truncated > self._plan.truncated_call_rounds:
                raise ModelBadStream("the model's tool calls were cut off by its output limit again and again")
            if calls:
                await self._answer(calls, cut=cut)
        await self._join(await self.steering.end())
        await self._finish_without_calls(client, [*messages, *self.progress.transcript])

    def _max_turns(self) -> int:
        return self._request.options.max_turns or self._plan.max_turns

    async def _finish_without_calls(self, client: ChatClient, messages: Sequence[Message]) -> None:
        await self._call(client, messages, keep_calls=False)
        self.progress.stop_reason = "maxTurns"
        if not (self.progress.messages and self.progress.messages[-1].text.strip()):
            await self._complete(new_message_id(), (TextBlock(text=LIMIT_TEXT),))

    async def _call(
        self, client: ChatClient, messages: Sequence[Message], *, keep_calls: bool = True
    ) -> tuple[Finished, tuple[FunctionCallBlock, ...]]:
        """One model call, streamed; its message is stored before this returns."""
        writer = MessageWriter(self.progress, self._sink)
        calls: list[FunctionCallBlock] = []
        finish: Finished | None = None
        metered = MeteredClient(client, self.progress.meter)
        async with aclosing(metered.stream(self._chat_request(messages))) as updates:
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
        kept = tuple(calls) if keep_calls else ()
        self.progress.stop_reason = _STOP_REASONS[finish.reason]
        await self._complete(writer.message_id, (*writer.blocks(), *kept))
        return finish, kept

    def _chat_request(self, messages: Sequence[Message]) -> ChatRequest:
        texts = (
            *self._plan.instructions,
            *(instruction.text for instruction in self._context.instructions),
            self._plan.options.instructions,
            self._request.run_instructions,
        )
        return ChatRequest(
            messages=messages,
            instructions="\n".join(text for text in texts if text),
            options=self._request.options,
            response_schema=self._request.response_schema,
            client_kwargs=self._request.client_kwargs,
        )

    async def _complete(self, message_id: str, content: tuple[Block, ...]) -> None:
        """Store a whole assistant message; an empty one is none."""
        if not content:
            return
        progress = self.progress
        message = self._stamped("assistant", message_id, content)
        drafts = [
            Draft("reasoning.completed", {"messageId": message_id}, message)
            for block in content
            if isinstance(block, ReasoningBlock)
        ]
        progress.add(message)
        progress.partial_id = None
        progress.partial.clear()  # before the commit: a cancel in it must not leave the text behind twice
        await self._sink.commit(*drafts, completed_draft(message))

    async def _answer(self, calls: Sequence[FunctionCallBlock], *, cut: bool) -> None:
        """Close calls that cannot be run, each with one result."""
        most = self._plan.max_tool_calls
        texts = [_refusal(call, cut=cut) for call in calls[:most]]
        texts += [SURPLUS_TEXT.format(most=most)] * (len(calls) - len(texts))
        results = tuple(
            FunctionResultBlock(call_id=call.call_id, content=(TextBlock(text=text),), is_error=True)
            for call, text in zip(calls, texts, strict=True)
        )
        message = self._stamped("tool", new_message_id(), results)
        self.progress.add(message)
        drafts = [
            Draft(
                "tool.completed",
                {
                    "callId": call.call_id,
                    "name": call.name,
                    "status": "failed",
                    "content": [block.wire() for block in result.content],
                    "durationMs": 0,
                },
            )
            for call, result in zip(calls, results, strict=True)
        ]
        await self._sink.commit(*drafts, completed_draft(message))

    def _stamped(self, role: Any, message_id: str, content: tuple[Block, ...]) -> Message:
        return Message(
            message_id=message_id,
            role=role,
            content=content,
            author_name=self._plan.name if role == "assistant" else None,
            source=Source(type="agent", source_id=self._plan.name),
            run_id=self._request.run_id,
            created_at=datetime.now(UTC).isoformat().replace("+00:00", "Z"),
        )


def completed_draft(message: Message) -> Draft:
    """The event that tells of a whole message, and stores it."""
    return Draft("message.completed", {"messageId": message.message_id, "role": message.role}, message)


def _refusal(call: FunctionCallBlock, *, cut: bool) -> str:
    return TRUNCATED_TEXT if cut else f'Error: Requested function "{call.name}" not found.'
