"""Makes the stored explanation of a run out of the notes of its calls: who said what, each thing once. Pure."""

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from functools import cached_property
from itertools import islice
from operator import is_
from typing import Final, Generic, TypeVar, cast

from protocol.explain import ProviderPhase, SeenInstruction, SeenTool
from protocol.messages import Message, Source
from providers.api.context import Instruction
from providers.api.ports import ToolSpec
from sidecar.agents.estimates import message_tokens, shown_text, tool_tokens
from sidecar.agents.explain import CallLog, CallNote, CallPlan
from sidecar.agents.metering import tokens_of

from .explanations import Explanation, Ranges, RemovedEntry, SeenEntry, StoredCall

TEXT_BUDGET: Final = 4 << 20
"""Characters of instructions and injected messages that are kept of one run; a text that does not fit is cut."""
CUT_TEXT: Final = 80
"""Characters that stay of an instruction that is cut."""

T = TypeVar("T")
Removal = tuple[str, str, Source]
"""What was removed, which, and by whom."""


def explanation_of(log: CallLog, agent: str) -> Explanation:
    """What was noted so far, to be stored or shown."""
    return _Writer(log, agent).write()


class _Table(Generic[T]):
    """Rows, each kept once."""

    def __init__(self) -> None:
        self.rows: list[T] = []
        self._places: dict[Hashable, int] = {}

    def find(self, key: Hashable) -> int | None:
        """The place of a row that is there."""
        return self._places.get(key)

    def put(self, key: Hashable, make: Callable[[], T]) -> int:
        """The place of a row, made now if it is not there."""
        place = self._places.get(key)
        if place is None:
            place = self._places[key] = len(self.rows)
            self.rows.append(make())
        return place


class _Writer:
    """One explanation in the making. Objects of the run are told apart by identity: the log keeps them alive."""

    def __init__(self, log: CallLog, agent: str) -> None:
        self._log = log
        self._agent = agent
        self._transcript = log.transcript
        self._budget = TEXT_BUDGET
        self._instructions: _Table[SeenInstruction] = _Table()
        self._messages: _Table[SeenEntry] = _Table()
        self._tools: _Table[SeenTool] = _Table()
        self._removed: _Table[RemovedEntry] = _Table()
        self._added: dict[Hashable, Source] = {}
        """Who added a message for this run, by the object and by the message's id."""
        self._inputs: set[int] = set()
        self._last: tuple[Sequence[Message], list[int]] = ((), [])
        """The loop's last messages, and their rows."""

    def write(self) -> Explanation:
        sight = self._log.sight
        self._history = Source(type="history", source_id=next(iter(sight.histories), None) if sight else None)
        self._run_id = sight.run_id if sight is not None else ""
        if sight is not None:
            self._inputs.update(map(id, sight.context.input_messages))
        for note in self._log.notes:
            if note.plan is not None:
                self._learn(note.plan)
        calls = tuple(map(self._call, self._log.notes))
        return Explanation(
            agent=self._agent,
            instructions=tuple(self._instructions.rows),
            messages=tuple(self._messages.rows),
            tools=tuple(self._tools.rows),
            removed=tuple(self._removed.rows),
            calls=calls,
            providers=tuple(ProviderPhase.model_validate(phase) for phase in self._log.phases),
        )

    def _learn(self, plan: CallPlan) -> None:
        """Who added which messages."""
        histories = self._log.sight.histories if self._log.sight is not None else ()
        for source_id, messages in plan.context_messages.items():
            if source_id not in histories:
                for message in messages:
                    self._own(message, _provider_source(message, source_id))
        for message in plan.run_messages:
            self._own(message, message.source or Source(type="run"))
        self._inputs.update(map(id, plan.input_messages))

    def _own(self, message: Message, source: Source) -> None:
        self._added[id(message)] = source
        if message.message_id is not None:
            self._added[message.message_id] = source

    def _call(self, note: CallNote) -> StoredCall:
        plan = note.plan
        removed: list[int] = []
        if plan is None:
            given = [Instruction(note.instructions, note.maker)] if note.instructions else []
            messages = self._rows(note.messages, lambda message: (note.maker, True))
            tools = [self._tool(tool, note.maker) for tool in note.tools]
        else:
            changed_by = Source(type="middleware", source_id=plan.middleware)
            removed = self._taken((one.what, one.ref, one.by) for one in plan.removed)
            given, gone = _instructions(plan.instructions, note.instructions, changed_by)
            messages, lost = self._sent(note, plan, changed_by)
            tools, dropped = self._offered(note, plan, changed_by)
            removed += self._taken(
                [
                    *(("instruction", text[:CUT_TEXT], changed_by) for text in gone),
                    *(("message", ref, changed_by) for ref in lost),
                    *(("tool", name, changed_by) for name in dropped),
                ]
            )
        return StoredCall(
            model=note.model,
            by=note.maker.source_id if note.maker.type == "provider" else None,
            instructions=_ranges(self._instruction(one) for one in given),
            messages=_ranges(messages),
            tools=_ranges(tools),
            removed=_ranges(removed),
            usage=note.usage,
            started_at=datetime.fromtimestamp(note.started_at, UTC).isoformat(timespec="milliseconds")[:-6] + "Z",
            first_token_ms=None if note.first_token_s is None else round(note.first_token_s * 1000),
            duration_ms=round(note.seconds * 1000),
        )

    # ---- instructions and tools -----------------------------------------------------------------------------------

    def _instruction(self, one: Instruction) -> int:
        key = (one.text, one.source.type, one.source.source_id, one.source.source_type)
        return self._instructions.put(key, lambda: self._seen_instruction(one))

    def _seen_instruction(self, one: Instruction) -> SeenInstruction:
        text = self._affordable(one.text)
        return SeenInstruction(
            text=one.text[:CUT_TEXT] if text is None else text, source=one.source, tokens=tokens_of(len(one.text))
        )

    def _tool(self, tool: ToolSpec, source: Source) -> int:
        key = (id(tool), source.type, source.source_id)
        return self._tools.put(key, lambda: SeenTool(name=tool.name, source=source, tokens=tool_tokens(tool)))

    def _offered(self, note: CallNote, plan: CallPlan, changed_by: Source) -> tuple[list[int], list[str]]:
        """Rows of the tools that were offered, and the names of those that middleware has dropped or replaced."""
        sources = {offered.tool.name: offered.source for offered in plan.tools}
        planned = set(map(id, plan.request.tools))
        rows = [
            self._tool(tool, sources.get(tool.name, Source(type="run")) if id(tool) in planned else changed_by)
            for tool in note.tools
        ]
        sent = set(map(id, note.tools))
        return rows, [tool.name for tool in plan.request.tools if id(tool) not in sent]

    # ---- messages -------------------------------------------------------------------------------------------------

    def _sent(self, note: CallNote, plan: CallPlan, changed_by: Source) -> tuple[list[int], list[str]]:
        """Rows of the messages that were sent, and the ids of those that middleware has dropped or replaced."""
        planned, sent = plan.request.messages, note.messages
        if _begins_with(sent, planned) and len(sent) == len(planned):
            return self._planned(sent), []
        known, still = set(map(id, planned)), set(map(id, sent))
        for message in sent:
            if id(message) not in known:
                self._added[id(message)] = changed_by
        rows = self._rows(sent, self._of_history)
        return rows, [_ref(message) for message in planned if id(message) not in still]

    def _planned(self, messages: Sequence[Message]) -> list[int]:
        """What the last call has seen is not looked at again."""
        seen, rows = self._last
        if not seen or not _begins_with(messages, seen):
            seen, rows = (), []
        rows = [*rows, *self._rows(messages[len(seen) :], self._of_history)]
        self._last = messages, rows
        return rows

    def _of_history(self, message: Message) -> tuple[Source, bool]:
        source = message.source
        if source is not None and source.type == "provider":
            return source, True
        return self._history if self._history.source_id is not None else source or self._history, False

    def _rows(self, messages: Sequence[Message], unknown: Callable[[Message], tuple[Source, bool]]) -> list[int]:
        """A row for each message, and one for each stretch of the transcript.

        Args:
            messages: What was sent.
            unknown: Says of any other message whose it is, and whether its text is kept.
        """
        rows: list[int] = []
        at = 0
        while at < len(messages):
            message = messages[at]
            known = self._messages.find(id(message))
            if known is None:
                source, is_injected = self._whose(message)
                place = self._place(message) if source is None else None
                if place is not None:
                    count = self._stretch(place, messages, at)
                    rows.append(self._stretch_row(place, count))
                    at += count
                    continue
                if source is None:
                    source, is_injected = unknown(message)
                known = self._single(message, source, is_injected=is_injected)
            rows.append(known)
            at += 1
        return rows

    def _whose(self, message: Message) -> tuple[Source | None, bool]:
        """The source of a message of this run, and whether its text is kept; `None` if it is of another time."""
        added = self._added.get(id(message))
        if added is None and message.message_id in self._added and not self._is_stored(message):
            added = self._added[message.message_id]  # a copy: pairing leaves out what has no partner
        if added is not None:
            return added, True
        if id(message) in self._inputs or (message.run_id is not None and message.run_id == self._run_id):
            return message.source or Source(type="external"), False
        return None, False

    def _single(self, message: Message, source: Source, *, is_injected: bool) -> int:
        text = shown_text(message)
        name = message.message_id or f"{source.source_id or source.type}/{len(self._messages.rows)}"
        return self._messages.put(
            id(message),
            lambda: SeenEntry(
                message_id=name,
                source=source,
                role=message.role,
                tokens=message_tokens(message),
                text=self._affordable(text) if is_injected else None,
                memory_ids=_memory_ids(message),
            ),
        )

    # ---- the transcript -------------------------------------------------------------------------------------------

    @cached_property
    def _places(self) -> dict[str | None, int]:
        return {message.message_id: place for place, message in enumerate(self._transcript)}

    def _place(self, message: Message) -> int | None:
        """Where a message stands in the transcript."""
        if not self._transcript or message.message_id is None:
            return None
        return 0 if message is self._transcript[0] else self._places.get(message.message_id)

    def _is_stored(self, message: Message) -> bool:
        place = self._place(message)
        return place is not None and self._transcript[place] is message

    def _stretch(self, place: int, messages: Sequence[Message], at: int) -> int:
        """How many messages from here on are just those of the transcript."""
        transcript = self._transcript
        whole = len(transcript) - place
        most = min(whole, len(messages) - at)
        if most == whole and all(map(is_, islice(transcript, place, None), islice(messages, at, at + whole))):
            return whole
        return next((n for n in range(1, most) if not self._same(transcript[place + n], messages[at + n])), most)

    def _same(self, ours: Message, theirs: Message) -> bool:
        return ours is theirs or (ours.message_id == theirs.message_id and id(theirs) not in self._added)

    def _stretch_row(self, place: int, count: int) -> int:
        transcript = self._transcript
        return self._messages.put(
            ("stretch", place, count),
            lambda: SeenEntry(
                message_id=str(transcript[place].message_id),
                source=self._history,
                last=str(transcript[place + count - 1].message_id),
                count=count,
            ),
        )

    def _taken(self, removals: Iterable[Removal]) -> list[int]:
        """Rows of what was removed; messages that stand together in the transcript have one row."""
        found: list[list[Removal]] = []
        for what, ref, by in removals:
            if found and what == "message" and self._follows(found[-1][-1], (what, ref, by)):
                found[-1].append((what, ref, by))
            else:
                found.append([(what, ref, by)])
        return [self._removed_row(group) for group in found]

    def _follows(self, before: Removal, after: Removal) -> bool:
        if (before[0], before[2]) != (after[0], after[2]):
            return False
        first, second = self._places.get(before[1]), self._places.get(after[1])
        return first is not None and second == first + 1

    def _removed_row(self, group: Sequence[Removal]) -> int:
        what, ref, by = group[0]
        last = group[-1][1] if len(group) > 1 else None
        count = len(group) if len(group) > 1 else None
        key = (what, ref, last, by.type, by.source_id)
        return self._removed.put(
            key,
            lambda: RemovedEntry.model_validate({"what": what, "ref": ref, "by": by, "last": last, "count": count}),
        )

    def _affordable(self, text: str) -> str | None:
        """The text, as long as there is room for it."""
        if len(text) > self._budget:
            return None
        self._budget -= len(text)
        return text


def _provider_source(message: Message, source_id: str) -> Source:
    """A provider's: also where it puts in what somebody else has said once."""
    source = message.source
    if source is not None and source.type == "provider":
        return source
    return Source(
        type="provider", source_id=source_id, origin_session_ids=source.origin_session_ids if source else None
    )


def _memory_ids(message: Message) -> tuple[str, ...] | None:
    """What a provider notes in a message's metadata under `memoryIds`."""
    noted: object = (message.metadata or {}).get("memoryIds")
    return tuple(map(str, cast("Sequence[object]", noted))) if isinstance(noted, list | tuple) else None


def _ref(message: Message) -> str:
    return message.message_id or (message.source.source_id if message.source is not None else None) or "message"


def _instructions(planned: Sequence[Instruction], sent: str, changed_by: Source) -> tuple[list[Instruction], list[str]]:
    """The pieces that were sent, and the texts of those that middleware has taken out.

    What stands between pieces is the middleware's.
    """
    if sent == "\n".join(one.text for one in planned):
        return list(planned), []
    found: list[Instruction] = []
    gone: list[str] = []
    at = 0
    for one in planned:
        place = sent.find(one.text, at)
        if place < 0:
            gone.append(one.text)
            continue
        found += [Instruction(text, changed_by) for text in (sent[at:place].strip(),) if text]
        found.append(one)
        at = place + len(one.text)
    found += [Instruction(text, changed_by) for text in (sent[at:].strip(),) if text]
    return found, gone


def _begins_with(messages: Sequence[Message], start: Sequence[Message]) -> bool:
    return len(messages) >= len(start) and all(map(is_, start, messages))


def _ranges(rows: Iterable[int]) -> Ranges:
    return tuple(_runs(rows))


def _runs(rows: Iterable[int]) -> Iterator[tuple[int, int]]:
    first = end = -1
    for row in rows:
        if row != end:
            if end >= 0:
                yield first, end
            first = row
        end = row + 1
    if end >= 0:
        yield first, end
