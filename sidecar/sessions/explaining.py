"""Makes the stored explanation of a run out of the notes of its calls: who said what, each thing once. Pure."""

from collections.abc import Callable, Hashable, Iterable, Sequence
from datetime import UTC, datetime
from operator import is_
from typing import Any, Final, NamedTuple, TypeVar, cast

from protocol.explain import ProviderPhase, SeenInstruction, SeenTool
from protocol.messages import Message, Source
from providers.api.context import Instruction, SessionContext
from providers.api.context import Removal as ProviderRemoval
from providers.api.ports import ToolSpec
from sidecar.agents.estimates import message_tokens, shown_text, tool_tokens
from sidecar.agents.explain import BY_THE_RUN, CallLog, CallNote, CallPlan
from sidecar.agents.metering import tokens_of

from .explanations import Explanation, RemovedEntry, SeenEntry, StoredCall
from .recalled import has_memories, recalled_in
from .row_ranges import Ranges, Table, ranges_of
from .stretches import Stretches

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


class _Saw(NamedTuple):
    """What one call saw."""

    instructions: Ranges
    messages: Ranges
    tools: Ranges
    removed: Ranges = ()


class _Writer:
    """One explanation in the making. Objects of the run are told apart by identity: the log keeps them alive."""

    def __init__(self, log: CallLog, agent: str) -> None:
        self._log = log
        self._agent = agent
        self._transcript = Stretches(log.transcript)
        self._budget = TEXT_BUDGET
        self._instructions: Table[SeenInstruction] = Table()
        self._messages: Table[SeenEntry] = Table()
        self._tools: Table[SeenTool] = Table()
        self._removed: Table[RemovedEntry] = Table()
        self._added: dict[Hashable, Source] = {}
        """Who added a message for this run, by the object and by the message's id."""
        self._learned: dict[str, Sequence[Message]] = {}
        self._inputs: set[int] = set()
        self._again: dict[str, tuple[Sequence[Any], Ranges]] = {}
        self._last: tuple[Sequence[Message], Ranges] = ((), ())
        """The loop's last messages, and their rows."""

    def write(self) -> Explanation:
        sight = self._log.sight
        self._history = Source(type="history", source_id=next(iter(sight.histories), None) if sight else None)
        self._run_id = sight.run_id if sight is not None else ""
        for note in self._log.notes:
            if note.plan is not None:
                self._learn(note.plan)
        if sight is not None:
            self._learn(sight.context)
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

    def _learn(self, plan: CallPlan | SessionContext) -> None:
        """Who added which messages: at the time of a call, and at last."""
        histories = self._log.sight.histories if self._log.sight is not None else ()
        for source_id, messages in plan.context_messages.items():
            if source_id not in histories and self._learned.get(source_id) is not messages:
                self._learned[source_id] = messages
                for message in messages:
                    self._own(message, _provider_source(message, source_id))
        if self._learned.get("") is not plan.run_messages:
            self._learned[""] = plan.run_messages
            for message in plan.run_messages:
                self._own(message, message.source or Source(type="run"))
        self._inputs.update(map(id, plan.input_messages))

    def _own(self, message: Message, source: Source) -> None:
        self._added[id(message)] = source
        if message.message_id is not None:
            self._added[message.message_id] = source

    def _call(self, note: CallNote) -> StoredCall:
        plan = note.plan
        saw = self._foreign(note) if plan is None else self._own_call(note, plan)
        return StoredCall(
            model=note.model,
            by=note.maker.source_id if note.maker.type == "provider" else None,
            instructions=saw.instructions,
            messages=saw.messages,
            tools=saw.tools,
            removed=saw.removed,
            usage=note.usage,
            started_at=datetime.fromtimestamp(note.started_at, UTC).isoformat(timespec="milliseconds")[:-6] + "Z",
            first_token_ms=None if note.first_token_s is None else round(note.first_token_s * 1000),
            duration_ms=round(note.seconds * 1000),
        )

    def _foreign(self, note: CallNote) -> _Saw:
        """A call that a provider or a tool made, or an agent's own code: what is nobody else's is the maker's."""
        maker = note.maker
        sight = self._log.sight if maker is BY_THE_RUN else None  # what it is given of the run it may hand on
        sources = {offered.tool.name: offered.source for offered in sight.context.tools} if sight is not None else {}
        given, _ = _instructions(sight.instructions if sight is not None else (), note.request.instructions, maker)
        return _Saw(
            ranges_of(map(self._instruction, given)),
            ranges_of(self._rows(note.messages, lambda message: (maker, True))),
            ranges_of(self._tool(tool, sources.get(tool.name, maker)) for tool in note.tools),
        )

    def _own_call(self, note: CallNote, plan: CallPlan) -> _Saw:
        """A call of the loop's."""
        removed = self._same_again("removed", plan.removed, self._taken_by_providers)
        sources = {offered.tool.name: offered.source for offered in plan.tools}
        if note.request is plan.request:
            return _Saw(
                self._same_again("instructions", plan.instructions, lambda given: map(self._instruction, given)),
                self._planned(note.messages),
                self._same_again(
                    "tools",
                    note.tools,
                    lambda tools: (self._tool(tool, sources.get(tool.name, BY_THE_RUN)) for tool in tools),
                ),
                removed,
            )
        changed_by = Source(type="middleware", source_id=plan.middleware)
        given, gone = _instructions(plan.instructions, note.request.instructions, changed_by)
        planned = set(map(id, plan.request.tools))
        tools = [
            self._tool(tool, sources.get(tool.name, BY_THE_RUN) if id(tool) in planned else changed_by)
            for tool in note.tools
        ]
        sent = set(map(id, (*note.tools, *note.messages)))
        lost = [
            *(("instruction", text[:CUT_TEXT], changed_by) for text in gone),
            *(("message", _ref(one), changed_by) for one in plan.request.messages if id(one) not in sent),
            *(("tool", tool.name, changed_by) for tool in plan.request.tools if id(tool) not in sent),
        ]
        messages = self._changed(note.messages, plan.request.messages, changed_by)
        return _Saw(
            ranges_of(map(self._instruction, given)),
            ranges_of(messages),
            ranges_of(tools),
            ranges_of(self._taken(lost), removed),
        )

    def _same_again(self, what: str, items: Sequence[T], rows: Callable[[Sequence[T]], Iterable[int]]) -> Ranges:
        """The rows of what is mostly the same from call to call, object for object."""
        known, ranges = self._again.get(what, ((), ()))
        if len(known) != len(items) or not all(map(is_, known, items)):
            ranges = ranges_of(rows(items))
            self._again[what] = items, ranges
        return ranges

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

    # ---- messages -------------------------------------------------------------------------------------------------

    def _changed(self, sent: Sequence[Message], planned: Sequence[Message], changed_by: Source) -> list[int]:
        """Rows of what middleware has sent on."""
        known = set(map(id, planned))
        for message in sent:
            if id(message) not in known:
                self._added[id(message)] = changed_by
        return self._rows(sent, self._of_history)

    def _planned(self, messages: Sequence[Message]) -> Ranges:
        """What the last call has seen is not looked at again."""
        seen, ranges = self._last
        if len(seen) > len(messages) or not all(map(is_, seen, messages)):
            seen, ranges = (), ()
        ranges = ranges_of(self._rows(messages[len(seen) :], self._of_history), ranges)
        self._last = messages, ranges
        return ranges

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
                place = self._transcript.place(message) if source is None else None
                if place is not None:
                    count = self._transcript.length(place, messages, at, self._is_added)
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
        if added is None and message.message_id in self._added and not self._transcript.holds(message):
            added = self._added[message.message_id]  # a copy: pairing leaves out what has no partner
        if added is not None:
            return added, True
        if id(message) in self._inputs or (message.run_id is not None and message.run_id == self._run_id):
            return message.source or Source(type="external"), False
        return None, False

    def _is_added(self, message: Message) -> bool:
        return id(message) in self._added

    def _single(self, message: Message, source: Source, *, is_injected: bool) -> int:
        name = message.message_id or f"{source.source_id or source.type}/{len(self._messages.rows)}"
        return self._messages.put(id(message), lambda: self._seen(message, name, source, is_injected=is_injected))

    def _seen(self, message: Message, name: str, source: Source, *, is_injected: bool) -> SeenEntry:
        recalled = recalled_in(message)
        text: str | None = shown_text(message) if is_injected else None
        if text is not None and has_memories(message):  # their texts are the memory's alone, and can be erased there
            text = recalled.cut_out(text) if recalled is not None and source.type == "provider" else None
        text = None if text is None else self._affordable(text)
        return SeenEntry(
            message_id=name,
            source=source,
            role=message.role,
            tokens=message_tokens(message),
            text=text,
            memory_ids=_memory_ids(message),
            recalled=recalled if text is not None else None,
        )

    # ---- stretches and removals -----------------------------------------------------------------------------------

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

    def _taken_by_providers(self, removals: Sequence[ProviderRemoval]) -> list[int]:
        return self._taken((one.what, one.ref, one.by) for one in removals)

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
        return (before[0], before[2]) == (after[0], after[2]) and self._transcript.follows(before[1], after[1])

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
