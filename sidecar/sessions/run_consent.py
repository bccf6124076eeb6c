"""Asks people whether a run's calls may run: each question stored, asked, its decision stored. It is a `Consent`."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Final, Literal

from protocol.agents import ApprovalConfig
from protocol.base import JsonObject
from protocol.host import ApprovalOption
from protocol.methods import HOST_REQUEST_APPROVAL
from sidecar.agents.consent import NOBODY_TEXT, Decision, GatedCall
from sidecar.agents.output import Progress
from sidecar.agents.sink import Draft, RequestNote
from sidecar.agents.standing_rules import StandingRule, named
from sidecar.agents.tool_call import NOT_STORED_TEXT
from sidecar.crash_points import reached

from .approval_options import DENIED, Answer, message_request, options_for, read_action, read_outcome
from .approvals import Held, Parked, Question
from .host_requests import OpenRequest, first_answer, new_pending
from .open_session import OpenSession
from .outlet import AskFailed, Outlet
from .rule_keeping import rule_of
from .turn_sink import TurnSink

_MESSAGE_REQUEST: Final = "window/showMessageRequest"

By = Literal["client", "timeout", "cancel", "disconnect", "rule"]


class RunConsent:
    """What one run asks."""

    def __init__(
        self,
        session: OpenSession,
        sink: TurnSink,
        outlet: Outlet,
        run_id: str,
        agent: str,
        config: ApprovalConfig,
        progress: Callable[[], Progress],
        parked: Callable[[], Parked] | None,
    ) -> None:
        """Ask nothing yet.

        Args:
            session: The session.
            sink: Takes the events.
            outlet: The way to the client.
            run_id: The run.
            agent: Its agent's name.
            config: How it asks.
            progress: How far the run has come.
            parked: What is kept for the run that goes on, if this one ends with its questions; `None`: it cannot.
        """
        self._session = session
        self._sink = sink
        self._outlet = outlet
        self._run_id = run_id
        self._agent = agent
        self._config = config
        self._progress = progress
        self._parked = parked
        self._settled: list[Held] = []

    @property
    def standing(self) -> Sequence[StandingRule]:
        """Rules that count for the session, and those that count for its agent and folder always."""
        session = self._session
        return [*session.record.approval_rules, *session.lasting_rules(self._agent)]

    def settled(self) -> Sequence[RequestNote]:
        """What closes the records of the questions that this run has had decided."""
        closing = [note for held in self._settled for note in held.closing()]
        for held in self._settled:
            self._session.approvals.drop(held)
        self._settled.clear()
        return closing

    async def ask(self, calls: Sequence[GatedCall], pending: Sequence[Draft]) -> Mapping[str, Decision] | None:
        """What is decided of each call; `None` where the run is to end with the questions open."""
        host = self._outlet.host
        is_live = self._config.mode != "inputRequired" and (host.approvals or host.message_request)
        if not is_live and self._parked is None:
            return {one.call.call_id: Decision(approved=False, text=NOBODY_TEXT) for one in calls}
        parked = self._parked() if self._parked is not None else None
        questions = [self._question(one, parked, is_live=is_live) for one in calls]
        held = self._session.approvals.hold(questions, self._run_id)
        reached("approval.open.before")
        opened = [_opened(question) for question in questions]
        in_order = [draft for pair in zip(pending, opened, strict=True) for draft in pair]
        stored = await self._sink.commit(*in_order)
        reached("approval.open.after")
        if not stored:
            self._give_up("cancel")  # it may be stored later
            return {one.call.call_id: Decision(approved=False, text=NOT_STORED_TEXT) for one in calls}
        if not is_live:
            held.taken_by = None
            return None
        return await self._ask_all(held)

    async def _ask_all(self, held: Held) -> Mapping[str, Decision] | None:
        progress = self._progress()
        before, progress.stage = progress.stage, "approval"
        asking = [asyncio.create_task(self._ask(held, request_id)) for request_id in held.questions]
        try:
            await asyncio.gather(*asking)
        finally:
            for task in asking:
                task.cancel()
        progress.stage = before
        if not held.is_decided:
            if self._parked is None:
                self._give_up("disconnect")
                return {one.call_id: Decision(approved=False, text=NOBODY_TEXT) for one in held.questions.values()}
            held.taken_by = None
            return None
        self._settled.append(held)
        return held.decisions()

    def _give_up(self, by: Literal["cancel", "disconnect"]) -> None:
        """Nobody can answer what is open, and it cannot be left open."""
        dropped = self._session.drop_questions(self._run_id, by)
        for index, draft in enumerate(dropped.drafts):
            self._sink.stage(draft if index else replace(draft, requests=dropped.closing))

    async def _ask(self, held: Held, request_id: str) -> None:
        """One question, until it is decided; it stays open where the client has gone."""
        question = held.questions[request_id]
        request = self._session.requests.open(question.pending)
        by: By = "client"
        answer: Answer | None = None
        try:
            limit = self._config.timeout_ms or None
            asked = asyncio.create_task(self._sent(question, limit / 1000 if limit else None))
            answer = read_outcome(await first_answer(request, asked), question.options)
        except TimeoutError:
            answer, by = DENIED, "timeout"
        except AskFailed as error:
            answer = None if error.has_gone else DENIED
        finally:
            if answer is None:
                self._session.requests.close(request_id, forget=True)
        if answer is not None:
            await asyncio.shield(self._decide(held, request, answer, by))

    async def _sent(self, question: Question, timeout_s: float | None) -> JsonObject:
        """The client's answer, as `host/requestApproval` has it."""
        payload, options = question.pending.payload, question.options
        taken = partial(self._session.requests.take, question.pending.request_id)
        if self._outlet.host.approvals:
            return await self._outlet.ask(HOST_REQUEST_APPROVAL.name, payload, timeout=timeout_s, answered=taken)
        shown = message_request(payload, is_previewed=question.is_previewed)
        action = await self._outlet.ask(_MESSAGE_REQUEST, shown, timeout=timeout_s, answered=taken)
        return _as_outcome(read_action(action, options))

    async def _decide(self, held: Held, request: OpenRequest, answer: Answer, by: By) -> None:
        request_id = request.pending.request_id
        question = held.questions[request_id] = held.questions[request_id].decided(answer)
        reached("approval.decide.before")
        data: JsonObject = {"requestId": request_id, "outcome": answer.outcome, "by": by}
        try:
            await self._sink.commit(Draft("request.resolved", data, requests=(question.note(),), stored=request.stored))
        finally:
            self._session.requests.close(request_id)
        reached("approval.decide.after")
        rule = rule_of(question, answer, self._session.record, self._session.rule_agent(self._agent))
        if rule is not None:
            await self._session.keep_rule(rule)

    def _question(self, gated: GatedCall, parked: Parked | None, *, is_live: bool) -> Question:
        call, tool = gated.call, gated.tool
        shown: JsonObject = {"callId": call.call_id, "name": call.name, "arguments": call.arguments}
        if tool.kind is not None:
            shown["kind"] = tool.kind
        options: tuple[ApprovalOption, ...] = options_for(gated)
        payload: JsonObject = {
            "sessionId": self._session.session_id,
            "runId": self._run_id,
            "title": tool.title or f"Run {tool.name}?",
            "toolCall": shown,
            "options": [option.wire() for option in options],
        }
        if description := gated.preview.text if gated.preview is not None else tool.description:
            payload["description"] = description
        limit = (self._config.timeout_ms or None) if is_live else None
        if limit is not None:
            payload["deadlineMs"] = limit
        return Question(
            pending=new_pending("approval", self._run_id, payload, limit),
            call_id=call.call_id,
            schema_hash=tool.schema_hash,
            source=named(gated.source),
            is_previewed=gated.preview is not None,
            seal=gated.preview.seal if gated.preview is not None else None,
            parked=parked,
        )


def _opened(question: Question) -> Draft:
    body = question.pending.wire()
    data = {key: body[key] for key in ("requestId", "kind", "payload", "deadline") if key in body}
    return Draft("request.opened", data, requests=(question.note(),))


def _as_outcome(answer: Answer) -> JsonObject:
    return {"outcome": "selected", "optionId": answer.option}
