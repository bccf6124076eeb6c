"""Stands before the calls of an answer: which may run, which are refused, and for which a person has to be asked.

One call that needs consent holds the whole answer: nothing of it runs before everything is decided.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, Protocol

from protocol.agents import ApprovalRule as ConfiguredRule
from protocol.messages import FunctionCallBlock, Source
from providers.api.approval import ApprovalDecision, ApprovalRule
from providers.api.run_context import RunContext
from providers.api.tool import FunctionTool, Preview

from .approval_rules import called_back, configured, strongest
from .previews import look_at
from .sink import Draft, RequestNote
from .standing_rules import StandingRule, decisions, named

REJECTED_TEXT: Final = "Error: Tool call invocation was rejected by user."
FORBIDDEN_TEXT: Final = "Error: Tool call invocation was rejected by a rule."
NOBODY_TEXT: Final = "Error: Tool call invocation was rejected: it needs consent, and nobody can be asked here."
CHANGED_TEXT: Final = "Error: Tool call invocation was rejected: the tool is not the one that was approved."
UNSURE_TEXT: Final = "Error: Tool call invocation was rejected: it needs consent by now. Send it again."


@dataclass(frozen=True, slots=True)
class Decision:
    """What was decided of one call."""

    approved: bool
    text: str = REJECTED_TEXT
    """What the model is told of a call that is rejected."""
    schema_hash: str | None = None
    """Of the tool that was approved."""
    source: str | None = None
    """Who offered that tool."""
    seal: str | None = None
    """What its preview has sealed."""


@dataclass(frozen=True, slots=True)
class GatedCall:
    """A call that a person has to decide about."""

    call: FunctionCallBlock
    tool: FunctionTool
    source: Source
    may_stand: bool
    """Whether a standing rule would count for such calls: it does not against a rule that says `ask`."""
    preview: Preview | None = None
    """What the tool says that the call would do."""


class Consent(Protocol):
    """Asks people, and knows what they have decided for good."""

    @property
    def standing(self) -> Sequence[StandingRule]:
        """Rules that count for the session."""
        ...

    async def ask(self, calls: Sequence[GatedCall], pending: Sequence[Draft]) -> Mapping[str, Decision] | None:
        """What is decided of each call, by its id; `None` where the run is to end with the questions open.

        Args:
            calls: What is asked about.
            pending: Events that tell of the waiting calls, to be stored with the questions.
        """
        ...

    def settled(self) -> Sequence[RequestNote]:
        """What closes the records of the questions that were decided, once their calls begin or have results."""
        ...


@dataclass(frozen=True, slots=True)
class ParkedAnswer:
    """The calls of an answer that an earlier run ended with, all decided by now."""

    calls: Sequence[FunctionCallBlock]
    """Those that have no result, in their order."""
    decisions: Mapping[str, Decision]
    """Of each call that was asked about."""
    closing: Sequence[RequestNote] = ()
    """What closes the records of the questions."""


@dataclass(frozen=True, slots=True)
class Gate:
    """What may happen with the calls of an answer."""

    denied: Mapping[str, str] = field(default_factory=dict[str, str])
    """Call id → what the model is told."""
    decided: Mapping[str, str | None] = field(default_factory=dict[str, str | None])
    """Calls that a person has decided about, with what their previews have sealed: they are what was shown."""
    is_parked: bool = False
    """The run ends with the questions open; nothing runs."""
    closing: Sequence[RequestNote] = ()
    """To be stored with whatever comes first of the calls."""
    unfit: Mapping[str, str] = field(default_factory=dict[str, str])
    """Calls that cannot be made, so that nobody need be asked: call id → what the model is told."""


OPEN: Final = Gate()


@dataclass(frozen=True, slots=True)
class Due:
    """A call that could run."""

    call: FunctionCallBlock
    tool: FunctionTool
    source: Source


class ConsentGate:
    """The gate of one run."""

    def __init__(
        self,
        run: RunContext,
        consent: Consent | None,
        rules: Sequence[ConfiguredRule],
        callbacks: Sequence[ApprovalRule],
        *,
        limit_s: float,
    ) -> None:
        """Nothing is decided yet.

        Args:
            run: What rules may know of the run.
            consent: Who asks; `None`: nobody can.
            rules: The configuration's.
            callbacks: Rules in Python.
            limit_s: Longest time of one of those.
        """
        self._run = run
        self._consent = consent
        self._rules = rules
        self._callbacks = callbacks
        self._limit_s = limit_s

    async def pass_through(
        self, due: Sequence[Due], waiting: Callable[[FunctionCallBlock], Draft], parked: ParkedAnswer | None
    ) -> Gate:
        """Decide what may run, asking where it must be asked.

        Args:
            due: The calls that could run.
            waiting: Makes the event that tells of a call while it waits.
            parked: What was decided already, where an earlier run ended with these calls.
        """
        if self._is_free(due) and parked is None:
            return OPEN
        denied: dict[str, str] = {}
        unfit: dict[str, str] = {}
        gated: list[GatedCall] = []
        for one in due:
            call_id = one.call.call_id
            known = parked.decisions.get(call_id) if parked is not None else None
            verdict, may_stand = await self._verdict(one)
            if verdict == "deny":
                denied[call_id] = FORBIDDEN_TEXT
            elif known is not None:
                if (text := _text_of(known, one)) is not None:
                    denied[call_id] = text
            elif verdict == "ask" and parked is not None:
                denied[call_id] = UNSURE_TEXT
            elif verdict == "ask":
                preview, fault = await look_at(one.call, one.tool, self._limit_s)
                if fault is not None:
                    unfit[call_id] = fault
                else:
                    gated.append(GatedCall(one.call, one.tool, one.source, may_stand, preview))
        if parked is not None:
            return Gate(denied, _seals(parked.decisions), closing=parked.closing)
        gate = await self._asked(gated, denied, [waiting(one.call) for one in gated]) if gated else Gate(denied)
        return replace(gate, unfit=unfit)

    async def _asked(self, gated: Sequence[GatedCall], denied: dict[str, str], pending: Sequence[Draft]) -> Gate:
        if self._consent is None:
            return Gate(denied | {one.call.call_id: NOBODY_TEXT for one in gated})
        decided = await self._consent.ask(gated, pending)
        if decided is None:
            return Gate(is_parked=True)
        denied |= {call_id: decision.text for call_id, decision in decided.items() if not decision.approved}
        return Gate(denied, _seals(decided), closing=self._consent.settled())

    def _is_free(self, due: Sequence[Due]) -> bool:
        """Whether nobody has anything to say: nearly always, and then it costs nothing."""
        has_rules = self._rules or self._callbacks or (self._consent is not None and self._consent.standing)
        return not has_rules and all(one.tool.approval_mode == "never_require" for one in due)

    async def _verdict(self, one: Due) -> tuple[ApprovalDecision, bool]:
        """What is to happen with a call, and whether a person's standing rule could change that."""
        said = configured(self._rules, one.call)
        said += await called_back(self._callbacks, one.call, one.tool, self._run, self._limit_s)
        standing = self._consent.standing if self._consent is not None else ()
        found = strongest([*said, *decisions(standing, one.call, one.tool, one.source)])
        if found is None:
            found = "ask" if one.tool.approval_mode == "always_require" else "allow"
        return found, "ask" not in said


def _seals(decisions: Mapping[str, Decision]) -> dict[str, str | None]:
    return {call_id: decision.seal for call_id, decision in decisions.items()}


def _text_of(known: Decision, one: Due) -> str | None:
    """Why a decided call does not run; `None` if it does."""
    if not known.approved:
        return known.text
    is_same = known.schema_hash == one.tool.schema_hash and known.source == named(one.source)
    return None if is_same else CHANGED_TEXT
