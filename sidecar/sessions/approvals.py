"""The approvals of a session: questions that are open or decided, by the answer whose calls they hold. Asks nobody.

A question is stored before it is asked, and its decision before anything follows from it. Its record goes away in the
unit that stores what comes of its call: so a call runs at most once, whoever dies in between.
"""

import asyncio
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal, NamedTuple

from pydantic import ValidationError
from pydantic_core import from_json

from protocol.agents import RunOptions
from protocol.base import JsonObject, WireModel
from protocol.host import ApprovalOption
from protocol.messages import FunctionCallBlock, Message
from protocol.sessions import PendingRequest
from sidecar.agents.consent import Decision, ParkedAnswer
from sidecar.agents.pairing import open_calls
from sidecar.agents.sink import Draft, RequestNote
from sidecar.stores.base import Damaged

from .approval_options import Answer


class Parked(WireModel):
    """What a run needs that goes on from a parked one."""

    message_id: str
    """The answer whose calls are held."""
    run_id: str
    next_run_id: str
    """The id of the run that goes on, so that a client that was told of it can rely on it."""
    input_ids: tuple[str, ...]
    output_ids: tuple[str, ...]
    options: RunOptions
    response_schema: JsonObject | None = None


class Question(WireModel):
    """One question about one call, as it is stored."""

    pending: PendingRequest
    call_id: str
    schema_hash: str
    source: str
    is_previewed: bool = False
    """Its description says what this very call would do."""
    seal: str | None = None
    """By what the tool can tell whether it still would."""
    parked: Parked | None = None
    """`None`: it ends with its run: a delegated one cannot be gone on with."""
    decision: str | None = None
    """`approved` or `denied`, once it is."""
    text: str | None = None
    """What the model is told, if it was rejected."""

    @property
    def options(self) -> tuple[ApprovalOption, ...]:
        """What can be answered."""
        return tuple(ApprovalOption.model_validate(option) for option in self.pending.payload["options"])

    @property
    def tool(self) -> str:
        """The tool's name."""
        return str(self.pending.payload["toolCall"]["name"])

    @property
    def arguments(self) -> JsonObject:
        """The recorded arguments."""
        return self.pending.payload["toolCall"]["arguments"]

    def decided(self, answer: Answer) -> "Question":
        """The same with a decision."""
        decision = "approved" if answer.approved else "denied"
        return self.model_copy(update={"decision": decision, "text": None if answer.approved else answer.text})

    def note(self) -> RequestNote:
        """The write that keeps it."""
        return RequestNote(self.pending.request_id, {"kind": "approval", "question": self.wire()})

    def said(self) -> Decision:
        """Its decision, as a run acts on it."""
        return Decision(self.decision == "approved", self.text or "", self.schema_hash, self.source, self.seal)


@dataclass(slots=True)
class Held:
    """The questions about one answer's calls."""

    parked: Parked | None
    questions: dict[str, Question] = field(default_factory=dict[str, Question])
    """By request id."""
    taken_by: str | None = None
    """The run that asks, or that goes on with the calls; another one leaves them alone."""
    is_promised: bool = False
    """It was decided in a process that died: a client may have been told of the run that goes on."""
    has_begun: bool = False
    """A run has had the id that was promised for the one that goes on."""
    storing: int = 0
    """Decisions that are on their way into the store, and rejections that wait for an approval on its way."""
    under_way: dict[str, asyncio.Event] = field(default_factory=dict[str, asyncio.Event])
    """By request id: set once it is known whether the decision on its way is stored."""

    @property
    def is_decided(self) -> bool:
        """Whether nothing is open any more, and all of that is stored."""
        return not self.storing and all(question.decision is not None for question in self.questions.values())

    def decisions(self) -> Mapping[str, Decision]:
        """What was decided, by call."""
        return {one.call_id: one.said() for one in self.questions.values() if one.decision is not None}

    def closing(self) -> tuple[RequestNote, ...]:
        """What drops the records."""
        return tuple(map(RequestNote, self.questions))


@dataclass(frozen=True, slots=True)
class GoingOn:
    """What a run goes on with: the decided calls of an earlier one, and what that one was about."""

    held: Held
    parked: Parked
    answer: ParkedAnswer
    input_messages: tuple[Message, ...]
    said: tuple[Message, ...]


class Dropped(NamedTuple):
    """What tells of questions that nobody is to answer any more."""

    drafts: tuple[Draft, ...] = ()
    closing: tuple[RequestNote, ...] = ()
    """What drops their records; to be stored with those."""


NO_QUESTIONS: Final = Dropped()


class SessionApprovals:
    """Every question of one session that has a record."""

    def __init__(self) -> None:
        self._held: list[Held] = []

    def restore(
        self, session_id: str, requests: Mapping[str, bytes], cut: Collection[str], begun: Collection[str]
    ) -> None:
        """Take in what is stored.

        Args:
            session_id: The session.
            requests: Its stored requests.
            cut: Runs that were asking when their process died: nobody was told of a run that goes on.
            begun: Promised runs that have begun.

        Raises:
            Damaged: a record does not read back.
        """
        for question in read_questions(session_id, requests):
            self._add(question)
        for held in self._held:
            if held.parked is not None:
                held.is_promised = held.is_decided and held.parked.run_id not in cut
                held.has_begun = held.parked.next_run_id in begun

    def hold(self, questions: Sequence[Question], run_id: str) -> Held:
        """Questions of one answer are about to be asked by a run."""
        held = Held(questions[0].parked, {one.pending.request_id: one for one in questions}, run_id)
        self._held.append(held)
        return held

    def drop(self, held: Held) -> None:
        """Its calls have begun, or have results."""
        if held in self._held:
            self._held.remove(held)

    def of_run(self, run_id: str) -> list[Held]:
        """What a run is asking, or has asked."""
        return [held for held in self._held if any(one.pending.run_id == run_id for one in held.questions.values())]

    def end_of(self, run_id: str, by: Literal["cancel", "disconnect"]) -> "Dropped":
        """A run has ended otherwise than with its questions open: nobody is to answer them any more."""
        drafts: list[Draft] = []
        closing: list[RequestNote] = []
        for held in self.of_run(run_id):
            closing += held.closing()
            for request_id, question in held.questions.items():
                if question.decision is None:
                    data: JsonObject = {"requestId": request_id, "outcome": "cancelled", "by": by}
                    drafts.append(Draft("request.resolved", data))
            self.drop(held)
        return Dropped(tuple(drafts), tuple(closing))

    def pending(self, run_id: str | None = None) -> list[PendingRequest]:
        """The open questions, of one run or of all."""
        found = [
            one.pending
            for held in self._held
            for one in held.questions.values()
            if one.decision is None and run_id in (None, one.pending.run_id)
        ]
        return sorted(found, key=lambda one: one.opened_at)

    def __bool__(self) -> bool:
        """Whether something is held."""
        return bool(self._held)

    def __contains__(self, held: Held) -> bool:
        """Whether it is held still."""
        return any(one is held for one in self._held)

    @property
    def holding(self) -> frozenset[str]:
        """Ids of the answers whose calls wait."""
        return frozenset(held.parked.message_id for held in self._held if held.parked is not None)

    def find(self, request_id: str) -> tuple[Held, Question] | None:
        """A question, and what it is a part of."""
        return next(((held, held.questions[request_id]) for held in self._held if request_id in held.questions), None)

    def promised(self) -> Held | None:
        """Decided calls whose run a client may have been told of, and that nobody goes on with; each once."""
        found = next((held for held in self._held if held.is_promised and held.taken_by is None), None)
        if found is not None:
            found.is_promised = False
        return found

    def ready(self) -> Held | None:
        """Decided calls that no run goes on with yet."""
        found = (held for held in self._held if held.is_decided and held.taken_by is None and held.parked is not None)
        return next(found, None)

    def _add(self, question: Question) -> None:
        for held in self._held:
            if held.parked is not None and held.parked == question.parked:
                held.questions[question.pending.request_id] = question
                return
        self._held.append(Held(question.parked, {question.pending.request_id: question}))


def read_questions(session_id: str, requests: Mapping[str, bytes]) -> list[Question]:
    """The approvals among a session's stored requests.

    Raises:
        Damaged: one does not read back.
    """
    found: list[Question] = []
    for body in requests.values():
        fields: JsonObject = from_json(body)
        if fields.get("kind") != "approval":
            continue
        try:
            found.append(Question.model_validate(fields["question"]))
        except (ValidationError, KeyError):
            raise Damaged(session_id, "an approval's record does not read back", {}) from None
    return found


def parkable(session_id: str, requests: Mapping[str, bytes]) -> dict[str, bytes]:
    """The stored requests that outlive the process that asked them.

    Raises:
        Damaged: one does not read back.
    """
    lasting = {one.pending.request_id for one in read_questions(session_id, requests) if one.parked is not None}
    return {request_id: body for request_id, body in requests.items() if request_id in lasting}


def going_on(held: Held, transcript: Sequence[Message]) -> GoingOn | None:
    """What a run goes on with; `None` where the answer is no longer in the transcript."""
    parked = held.parked
    if parked is None:
        return None
    by_id = {message.message_id: message for message in transcript}
    asked = by_id.get(parked.message_id)
    if asked is None:
        return None
    waiting = open_calls(transcript)
    calls = [block for block in asked.content if isinstance(block, FunctionCallBlock) and block.call_id in waiting]
    return GoingOn(
        held,
        parked,
        ParkedAnswer(calls, held.decisions(), held.closing()),
        tuple(by_id[message_id] for message_id in parked.input_ids if message_id in by_id),
        tuple(by_id[message_id] for message_id in parked.output_ids if message_id in by_id),
    )
