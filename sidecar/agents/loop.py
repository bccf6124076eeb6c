"""The loop of a run: call the model, run the tools that it asks for, until it answers. Knows no providers."""

import secrets
from collections.abc import Collection, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, Final, Protocol

from protocol.agents import RunOptions
from protocol.messages import Block, FunctionCallBlock, Message, ReasoningBlock, Source, TextBlock
from providers.api.invocation import ToolChanges
from providers.api.ports import ChatRequest, FinishReason
from sidecar.errors import ModelBadStream

from .consent import ParkedAnswer
from .model_call import Answered, ModelCaller
from .output import Progress, new_message_id
from .pairing import paired
from .plan import AgentPlan
from .sink import CallNote, Draft, RunSink
from .steering import Steering
from .tool_batch import BatchEnd, ToolBatches

LIMIT_TEXT: Final = "Function invocation limit reached before a final answer could be produced."
MOST_FAILED_ROUNDS: Final = 3
"""Answers in a row whose calls all failed; then one closing call without tools."""

_IN_MESSAGE: Final = frozenset({"content", "structuredContent"})
"""Fields of `tool.completed` that the message of the results has too."""

_STOP_REASONS: Final[dict[FinishReason, str]] = {
    "stop": "endTurn",
    "toolCalls": "endTurn",
    "length": "maxTokens",
    "contentFilter": "contentFilter",
    "refusal": "refusal",
}


class Conversation(Protocol):
    """What a model call is made from."""

    async def messages(self) -> Sequence[Message]:
        """What the next call sees: context, input, and what the run has said so far."""
        ...

    def instructions(self) -> str:
        """The system instructions."""
        ...

    def join(self, messages: Sequence[Message]) -> None:
        """Input came meanwhile; it is part of the run's from now on."""
        ...

    async def answered(self, answer: Message | None, conversation_id: str | None) -> None:
        """A call has its whole answer, or the run ends with what was said."""
        ...


class ModelLoop:
    """The model calls and tool calls of one run."""

    def __init__(
        self,
        plan: AgentPlan,
        run_id: str,
        template: ChatRequest,
        conversation: Conversation,
        caller: ModelCaller,
        batches: ToolBatches,
        changes: ToolChanges,
        progress: Progress,
        steering: Steering,
        sink: RunSink,
        parked: ParkedAnswer | None = None,
        joining: Sequence[Message] = (),
        open_ids: Collection[str] = (),
    ) -> None:
        """Nothing is called yet.

        Args:
            plan: The agent.
            run_id: The run.
            template: What every call of the run has in common.
            conversation: What differs from call to call.
            caller: Makes the model calls.
            batches: Runs the tool calls.
            changes: The tools, as they are now.
            progress: How far the run has come.
            steering: Input that comes meanwhile.
            sink: Takes the events.
            parked: Calls that an earlier run ended with, to begin with.
            joining: Input that comes after those; it is stored already.
            open_ids: Ids of calls that the conversation has open: a model may use an id again.
        """
        self._plan = plan
        self._run_id = run_id
        self._template = template
        self._conversation = conversation
        self._caller = caller
        self._batches = batches
        self._changes = changes
        self._progress = progress
        self._steering = steering
        self._sink = sink
        self._parked = parked
        self._joining = joining
        self._open_ids = frozenset(open_ids)

    async def run(self) -> None:
        """Loop until there is an answer.

        Raises:
            SidecarError: a model call failed, or middleware failed the run.
        """
        truncated = failed_rounds = 0
        stop_reason: str | None = None
        if self._parked is not None and await self._run_parked(self._parked):
            return
        most = self._template.options.max_turns or self._plan.max_turns
        for turn in range(most):
            await self._join(await self._steering.take())
            answered = await self._call(self._options(turn))
            if not answered.calls:
                if await self._steering.end_if_empty():
                    return
                continue
            is_cut = answered.finish.reason == "length"
            truncated += is_cut
            if truncated > self._plan.limits.truncated_call_rounds:
                raise ModelBadStream("the model's tool calls were cut off by its output limit again and again")
            self._progress.stage = "tools"
            end = await self._batches.run(answered.calls, self._changes, is_cut=is_cut)
            await self._store_results(end)
            self._progress.stage = "model"
            if await self._ends_with(end):
                return
            failed_rounds = failed_rounds + 1 if end.all_failed else 0
            if failed_rounds == MOST_FAILED_ROUNDS and turn < most - 1:
                break
        else:
            stop_reason = "maxTurns"
        await self._join(await self._steering.end())
        await self._close(stop_reason)

    async def _run_parked(self, parked: ParkedAnswer) -> bool:
        """Run the calls that an earlier run ended with; whether that is all there is to do."""
        self._progress.stage = "tools"
        end = await self._batches.run(parked.calls, self._changes, parked=parked)
        await self._store_results(end)
        self._progress.parked_taken = True
        self._progress.stage = "model"
        if self._joining:
            self._progress.transcript.extend(self._joining)
            self._conversation.join(self._joining)
        return await self._ends_with(end)

    async def _ends_with(self, end: BatchEnd) -> bool:
        """End the run here, if there is nothing more to do after these calls."""
        if not (end.terminated or end.left_to_host or end.is_parked):
            return False
        await self._join(await self._steering.end())
        await self._conversation.answered(None, None)
        self._progress.is_parked = end.is_parked
        self._progress.stop_reason = "inputRequired" if end.left_to_host or end.is_parked else "endTurn"
        return True

    def _options(self, turn: int) -> RunOptions:
        """A choice that forces a call counts for the first model call only: the loop would not end."""
        options = self._template.options
        if turn == 0 or options.tool_choice in (None, "auto", "none"):
            return options
        return options.model_copy(update={"tool_choice": None})

    async def _close(self, stop_reason: str | None) -> None:
        """One more call, without tools, so that the run ends in words."""
        options = self._template.options
        if self._changes.live:
            options = options.model_copy(update={"tool_choice": "none"})
        await self._call(options, keep_calls=False)
        if stop_reason is not None:
            self._progress.stop_reason = stop_reason
        if not (self._progress.messages and self._progress.messages[-1].text.strip()):
            message = await self._complete(new_message_id(), (TextBlock(text=LIMIT_TEXT),), keep_staged=False)
            await self._conversation.answered(message, None)

    async def _call(self, options: RunOptions, *, keep_calls: bool = True) -> Answered:
        """One model call. Its message is stored, or staged for the unit that stores the intent of its calls."""
        keep_calls = keep_calls and options.tool_choice != "none"
        request = self._template_with(options, await self._conversation.messages())
        answered = await self._caller.call(request)
        calls = self._told_apart(answered.calls) if keep_calls else ()
        answered = replace(answered, calls=calls)
        self._progress.stop_reason = _STOP_REASONS[answered.finish.reason]
        content = (*answered.blocks, *answered.calls)
        message = await self._complete(
            answered.message_id, content, replaced_by=answered.replaced_by, keep_staged=bool(answered.calls)
        )
        if answered.finish.conversation_id is not None:
            self._progress.conversation_id = answered.finish.conversation_id
        await self._conversation.answered(message, answered.finish.conversation_id)
        return answered

    def _told_apart(self, calls: tuple[FunctionCallBlock, ...]) -> tuple[FunctionCallBlock, ...]:
        """The calls, under other ids where the conversation has open calls of theirs: a result belongs to one call."""
        if not self._open_ids.intersection(call.call_id for call in calls):
            return calls
        taken = {*self._open_ids, *(call.call_id for call in calls)}
        apart: list[FunctionCallBlock] = []
        for call in calls:
            fresh = call.call_id
            while call.call_id in self._open_ids and fresh in taken:
                fresh = f"{call.call_id}-{secrets.token_hex(4)}"
            apart.append(call if fresh == call.call_id else call.model_copy(update={"call_id": fresh}))
        return tuple(apart)

    def _template_with(self, options: RunOptions, messages: Sequence[Message]) -> ChatRequest:
        template = self._template
        conversation_id = self._progress.conversation_id
        at_service: set[str] = set()
        if conversation_id is not None:
            at_service = _call_ids(self._progress.transcript)
            at_service.update(call.call_id for call in (self._parked.calls if self._parked is not None else ()))
        return ChatRequest(
            messages=paired(messages, at_service),
            instructions=self._conversation.instructions(),
            options=options,
            tools=[tool.spec() for tool in self._changes.live],
            response_schema=template.response_schema,
            client_kwargs=template.client_kwargs,
            conversation_id=conversation_id,
        )

    async def _join(self, joining: Sequence[Message]) -> None:
        """Let input of the host's that came meanwhile stand behind what there is."""
        if joining:
            self._progress.transcript.extend(joining)
            self._conversation.join(joining)
            await self._sink.commit(*map(completed_draft, joining))

    async def _complete(
        self, message_id: str, content: tuple[Block, ...], *, keep_staged: bool, replaced_by: str | None = None
    ) -> Message | None:
        """Store a whole assistant message; an empty one is none."""
        if not content:
            return None
        progress = self._progress
        source = Source(type="middleware", source_id=replaced_by) if replaced_by is not None else None
        message = self._stamped("assistant", message_id, content, source)
        drafts = [
            Draft("reasoning.completed", {"messageId": message_id}, message)
            for block in content
            if isinstance(block, ReasoningBlock)
        ]
        progress.add(message)
        progress.partial_id = None
        progress.partial.clear()  # before the commit: a cancel in it must not leave the text behind twice
        drafts.append(completed_draft(message))
        if keep_staged:
            for draft in drafts:
                self._sink.stage(draft)
        else:
            await self._sink.commit(*drafts)
        return message

    async def _store_results(self, end: BatchEnd) -> None:
        """Let all results of an answer stand behind it, in one message."""
        self._progress.batch.clear()
        if not end.results:
            await self._sink.commit(*end.drafts)
            return
        message = self._stamped("tool", new_message_id(), end.results, None)
        self._progress.add(message)
        told = (_told_by(draft, message) for draft in end.drafts)
        await self._sink.commit(*told, completed_draft(message, end.notes))

    def _stamped(self, role: Any, message_id: str, content: tuple[Block, ...], source: Source | None) -> Message:
        return Message(
            message_id=message_id,
            role=role,
            content=content,
            author_name=self._plan.name if role == "assistant" else None,
            source=source or Source(type="agent", source_id=self._plan.name),
            run_id=self._run_id,
            created_at=datetime.now(UTC).isoformat().replace("+00:00", "Z"),
        )


def completed_draft(message: Message, calls: tuple[CallNote, ...] = (), *, in_history: bool = True) -> Draft:
    """The event that tells of a whole message, and stores it."""
    data = {"messageId": message.message_id, "role": message.role}
    return Draft("message.completed", data, message, calls=calls, in_history=in_history)


def _told_by(draft: Draft, message: Message) -> Draft:
    """The event of a call's end: what the result says is stored once, in the message."""
    data = {key: value for key, value in draft.data.items() if key not in _IN_MESSAGE}
    return replace(draft, data=data, message=message)


def _call_ids(messages: Sequence[Message]) -> set[str]:
    return {block.call_id for message in messages for block in message.content if isinstance(block, FunctionCallBlock)}
