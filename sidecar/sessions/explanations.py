"""What is stored of a run's model calls, and how it is shown again. Asks no store: the transcript is given to it.

Each thing is kept once, in one of four tables, and a call names their rows by ranges: the calls of a long run share
what they have in common. A history is a stretch of the transcript, by its first and last message.
"""

from collections.abc import Iterator, Sequence
from typing import TypeVar

from protocol.base import WireModel
from protocol.explain import ExplainedCall, ProviderPhase, Removed, SeenInstruction, SeenMessage, SeenTool
from protocol.messages import Message, Role, Source, Usage
from sidecar.agents.estimates import message_tokens

from .recalled import NO_TEXTS, Recalled, Texts
from .row_ranges import Ranges, rows_of
from .stretches import Stretches

T = TypeVar("T")


class SeenEntry(WireModel):
    """A message; or, with `last`, a stretch of the transcript that begins with it."""

    message_id: str
    source: Source
    role: Role | None = None
    tokens: int = 0
    text: str | None = None
    """Without the memories that are in it."""
    memory_ids: tuple[str, ...] | None = None
    recalled: Recalled | None = None
    """Which memories belong into the text, and where."""
    last: str | None = None
    count: int | None = None


class RemovedEntry(Removed):
    """Something that was removed; or, with `last`, a stretch of the transcript that begins with it."""

    last: str | None = None
    count: int | None = None


class StoredCall(WireModel):
    """One model call; its ranges are of the explanation's tables."""

    model: str
    by: str | None = None
    instructions: Ranges
    messages: Ranges
    tools: Ranges
    removed: Ranges
    usage: Usage | None = None
    started_at: str
    first_token_ms: int | None = None
    duration_ms: int


class Explanation(WireModel):
    """What a run's calls saw, as it is stored with the run."""

    agent: str
    instructions: tuple[SeenInstruction, ...]
    messages: tuple[SeenEntry, ...]
    tools: tuple[SeenTool, ...]
    removed: tuple[RemovedEntry, ...]
    calls: tuple[StoredCall, ...]
    providers: tuple[ProviderPhase, ...]

    @property
    def needs_transcript(self) -> bool:
        """Whether it names stretches of it."""
        return any(entry.last is not None for entry in (*self.messages, *self.removed))

    @property
    def recalled(self) -> tuple[Recalled, ...]:
        """The memories that its messages have shown."""
        return tuple(entry.recalled for entry in self.messages if entry.recalled is not None)


class Expansion:
    """An explanation on its way to the wire. A stretch is made once, however many calls have seen it."""

    def __init__(
        self, explanation: Explanation, transcript: Sequence[Message], started_at: str, texts: Texts = NO_TEXTS
    ) -> None:
        """Expand nothing yet.

        Args:
            explanation: What is stored.
            transcript: The session's, as it is now; may be empty where `needs_transcript` is false.
            started_at: When the run started: what was put into a stretch later is left out of it.
            texts: Of those of its memories that are still there.
        """
        self._explanation = explanation
        self._transcript = Stretches(transcript)
        self._started_at = started_at
        self._texts = texts
        self._stretches: dict[int, tuple[SeenMessage, ...]] = {}

    def calls(self, only: int | None = None) -> tuple[ExplainedCall, ...]:
        """Every call, or the one with this index."""
        stored = self._explanation.calls
        return tuple(self._call(index, call) for index, call in enumerate(stored) if only in (None, index))

    def _call(self, index: int, call: StoredCall) -> ExplainedCall:
        explanation = self._explanation
        removed = tuple(one for row in rows_of(call.removed) for one in self._removed(explanation.removed[row]))
        return ExplainedCall(
            index=index,
            model=call.model,
            by=call.by,
            instructions=_picked(explanation.instructions, call.instructions),
            messages=tuple(one for row in rows_of(call.messages) for one in self._seen(row)),
            tools=_picked(explanation.tools, call.tools),
            removed=removed or None,
            usage=call.usage,
            started_at=call.started_at,
            first_token_ms=call.first_token_ms,
            duration_ms=call.duration_ms,
        )

    def _seen(self, row: int) -> tuple[SeenMessage, ...]:
        known = self._stretches.get(row)
        if known is None:
            known = self._stretches[row] = tuple(self._messages_of(self._explanation.messages[row]))
        return known

    def _messages_of(self, entry: SeenEntry) -> Iterator[SeenMessage]:
        if entry.last is None:
            yield SeenMessage(
                message_id=entry.message_id,
                role=entry.role or "user",
                source=entry.source,
                tokens=entry.tokens,
                text=self._whole_text(entry),
                memory_ids=entry.memory_ids,
            )
            return
        for message in self._transcript.between(entry.message_id, entry.last, entry.count, self._started_at):
            yield SeenMessage(
                message_id=str(message.message_id),
                role=message.role,
                source=entry.source,
                tokens=message_tokens(message),
            )

    def _whole_text(self, entry: SeenEntry) -> str | None:
        if entry.text is None or entry.recalled is None:
            return entry.text
        return entry.recalled.put_back(entry.text, self._texts)

    def _removed(self, entry: RemovedEntry) -> Iterator[Removed]:
        if entry.last is None:
            yield Removed(what=entry.what, ref=entry.ref, by=entry.by)
            return
        for message in self._transcript.between(entry.ref, entry.last, entry.count, self._started_at):
            yield Removed(what=entry.what, ref=str(message.message_id), by=entry.by)


def _picked(table: Sequence[T], ranges: Ranges) -> tuple[T, ...]:
    return tuple(table[row] for row in rows_of(ranges))
