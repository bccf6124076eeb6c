"""Histories around runs: what each flag keeps, what is never doubled, and what a model is not told of."""

from collections.abc import Sequence
from typing import Any

import pytest
from pydantic import ValidationError

from protocol.agents import AgentSpec, RunOptions
from protocol.messages import (
    ApprovalRequestBlock,
    ApprovalResponseBlock,
    FunctionCallBlock,
    Message,
    TextBlock,
    text_message,
)
from providers.api.context import SessionContext
from providers.api.history import HistoryError, HistoryProvider
from providers.api.provider import ContextProvider, Surroundings
from providers.api.session import State
from providers.history import TranscriptHistory, TranscriptHistoryConfig
from sidecar.agents.catalog import ResolvedAgent
from sidecar.agents.plan import AgentPlan, SessionSettings, make_plan
from sidecar.errors import ConfigInvalid
from tests.bench.agent_run import AgentRun, user
from tests.bench.fake_client import FakeClient, says
from tests.bench.providers import Hook, Log, Recorder, adds


class Database:
    """Rows by key."""

    def __init__(self) -> None:
        self.rows: dict[str, list[dict[str, Any]]] = {}
        self.saves = 0

    async def load_messages(self, key: str) -> list[dict[str, Any]]:
        return self.rows.get(key, [])

    async def save_messages(self, key: str, rows: list[dict[str, Any]]) -> None:
        self.saves += 1
        self.rows.setdefault(key, []).extend(rows)


class DatabaseHistory(HistoryProvider):
    """A history as seed 000 writes one."""

    def __init__(self, db: Any) -> None:
        super().__init__("db-history", load_messages=True)
        self._db = db

    async def get_messages(
        self, session_id: str | None, *, state: dict[str, Any] | None = None, **kwargs: Any
    ) -> list[Message]:
        key = (state or {}).get("history_key", session_id or "default")
        rows = await self._db.load_messages(key)
        return [Message.model_validate(row) for row in rows]

    async def save_messages(
        self,
        session_id: str | None,
        messages: Sequence[Message],
        *,
        state: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        if not messages:
            return
        key = (state if state is not None else {}).setdefault("history_key", session_id or "default")
        await self._db.save_messages(key, [message.wire() for message in messages])


class ListHistory(HistoryProvider):
    """A history in a list; it keeps ids or not, as a plug-in may."""

    def __init__(self, source_id: str, *kept: Message, **flags: Any) -> None:
        super().__init__(source_id, **flags)
        self.kept = list(kept)
        self.calls: list[list[str]] = []

    async def get_messages(self, session_id: str | None, *, state: State) -> Sequence[Message]:
        return self.kept

    async def save_messages(self, session_id: str | None, messages: Sequence[Message], *, state: State) -> None:
        self.calls.append(texts(messages))
        self.kept = [*self.kept, *messages]


def texts(messages: Sequence[Message]) -> list[str]:
    return [message.text for message in messages]


def audit(**flags: Any) -> TranscriptHistory:
    config = TranscriptHistoryConfig.model_validate({"loadMessages": False, **flags})
    return TranscriptHistory("audit", config)


def audited(run: AgentRun) -> list[str]:
    """What the history `audit` has in the session's state."""
    return texts([Message.model_validate(row) for row in run.session.state["audit"].get("messages", ())])


def knows(source: str, *pieces: str | Message) -> Recorder:
    """A provider that adds messages to every run."""
    messages = [text_message("user", piece) if isinstance(piece, str) else piece for piece in pieces]
    return Recorder(source, Log(), before=adds(source, *messages))


def context_of(*inputs: Message) -> SessionContext:
    return SessionContext(session_id="s", input_messages=inputs, options=RunOptions())


async def test_a_history_written_as_the_seed_writes_it_feeds_the_next_run() -> None:
    """Case 12."""
    database = Database()
    run = AgentRun(FakeClient(says("a1"), says("a2"), says("a3")), [DatabaseHistory(database)])

    await run.say("q1")
    await run.say("q2")

    assert texts(run.client.requests[1].messages) == ["q1", "a1", "q2"]
    assert run.session.state["db-history"] == {"history_key": "s"}
    assert database.saves == 2

    later = AgentRun(run.client, [DatabaseHistory(database)])
    await later.say("q3")
    assert texts(run.client.requests[2].messages) == ["q1", "a1", "q2", "a2", "q3"]


@pytest.mark.parametrize("place", [0, 1, 2])
async def test_an_audit_has_what_others_add_and_the_primary_has_not_wherever_the_audit_stands(place: int) -> None:
    """Case 15."""
    primary = ListHistory("primary")
    providers: list[ContextProvider] = [primary, knows("rag", "R")]
    providers.insert(place, audit(storeContextMessages=True))
    run = AgentRun(FakeClient(says("a1"), says("a2")), providers)

    await run.say("q1")
    await run.say("q2")

    assert primary.calls == [["q1", "a1"], ["q2", "a2"]]
    assert audited(run) == ["R", "q1", "a1", "R", "q2", "a2"]
    assert texts(run.client.requests[1].messages) == ["q1", "a1", "R", "q2"]


async def test_an_audit_of_named_sources_has_theirs_only() -> None:
    """Case 16."""
    run = AgentRun(FakeClient(says("out")), [audit(storeContextFrom=["b"]), knows("a", "A"), knows("b", "B")])

    await run.say("in")

    assert audited(run) == ["B", "in", "out"]


@pytest.mark.parametrize(
    ("flags", "kept"),
    [
        ({"storeInputs": False}, ["out"]),
        ({"storeOutputs": False}, ["in"]),
        ({"storeInputs": False, "storeOutputs": False, "storeContextMessages": True}, ["R"]),
        ({"storeInputs": False, "storeOutputs": False}, []),
    ],
)
async def test_inputs_and_outputs_are_kept_as_the_flags_say(flags: dict[str, bool], kept: list[str]) -> None:
    """Case 17."""
    run = AgentRun(FakeClient(says("out")), [audit(**flags), knows("rag", "R")])

    await run.say("in")

    assert audited(run) == kept


async def test_nothing_to_keep_is_no_call() -> None:
    history = ListHistory("h", store_inputs=False, store_outputs=False, store_context_messages=True)

    await AgentRun(FakeClient(says("out")), [history]).say("in")

    assert history.calls == []


@pytest.mark.parametrize("sources", [None, ["primary", "rag"]])
async def test_what_another_history_loaded_is_never_kept_again(sources: list[str] | None) -> None:
    old = [user("old question"), text_message("user", "old R", message_id="r0")]
    primary = ListHistory("primary", *old, store_context_messages=True)
    other = ListHistory("audit", load_messages=False, store_context_messages=True, store_context_from=sources)

    def replace(hook: Hook) -> None:
        context = hook.context
        context.replace_messages("shorter", context.get_messages(sources=["primary"]), of=["primary"])

    shortener = Recorder("shorter", Log(), before=replace)
    run = AgentRun(FakeClient(says("a1"), says("a2")), [other, primary, knows("rag", "R"), shortener])
    await run.say("q1")
    await run.say("q2")

    assert other.calls[0] == ["R", "q1", "a1"]
    assert other.calls[1:] == [["R", "q2", "a2"]]
    assert primary.calls == [["R", "q1", "a1"], ["R", "q2", "a2"]]


async def test_the_same_turn_three_times_is_six_messages() -> None:
    """Case 19."""
    history = audit()
    run = AgentRun(FakeClient(says("ok"), says("ok"), says("ok")), [history])

    for _ in range(3):
        await run.say("yes")

    assert audited(run) == ["yes", "ok"] * 3


async def test_a_transcript_that_is_sent_again_is_kept_once() -> None:
    """Case 20."""
    run = AgentRun(FakeClient(says("a1"), says("a2")), [audit(storeContextMessages=True), knows("rag", _noted())])
    first = user("q1").model_copy(update={"message_id": "m1"})
    answer = (await run.say(first)).progress.messages[0]

    await run.say(first, answer, user("q2").model_copy(update={"message_id": "m2"}))

    assert audited(run) == ["note", "q1", "a1", "q2", "a2"]


def _noted() -> Message:
    return text_message("user", "note", message_id="note-1")


async def test_an_own_list_drops_its_oldest_and_says_how_many() -> None:
    run = AgentRun(FakeClient(says("a1"), says("a2"), says("a3")), [audit(maxMessages=3)])
    for text in ("q1", "q2", "q3"):
        await run.say(text)

    assert audited(run) == ["a2", "q3", "a3"]
    assert run.session.state["audit"]["droppedMessages"] == 3


async def test_a_history_with_a_list_of_its_own_feeds_from_it() -> None:
    history = TranscriptHistory("mine", TranscriptHistoryConfig(store_outputs=False))
    run = AgentRun(FakeClient(says("a1"), says("a2")), [history])

    await run.say("q1")
    await run.say("q2")

    assert texts(run.client.requests[1].messages) == ["q1", "q2"]


async def test_an_own_list_that_holds_something_else_is_told_by_its_place() -> None:
    history = TranscriptHistory("mine", TranscriptHistoryConfig(store_outputs=False))
    good = text_message("user", "x").wire()

    with pytest.raises(HistoryError, match=r"'mine': messages\[1\] is no message"):
        await history.get_messages("s", state={"messages": [good, {"role": "nobody"}]})
    with pytest.raises(HistoryError, match="is no list"):
        await history.save_messages("s", [text_message("user", "x")], state={"messages": {}})


@pytest.mark.parametrize("flags", [{}, {"storeInputs": True, "loadMessages": True}])
def test_a_limit_where_no_own_list_is_kept_is_refused(flags: dict[str, bool]) -> None:
    with pytest.raises(ValidationError, match="maxMessages"):
        TranscriptHistoryConfig.model_validate({"maxMessages": 5, **flags})


async def test_the_transcript_is_handed_on_as_it_is() -> None:
    transcript = (user("q"), user("a", role="assistant"))

    class Store:
        async def load(self, session_id: str) -> Sequence[Message]:
            return transcript

    history = TranscriptHistory("h", None, Surroundings(history=Store()))
    context, state = context_of(), State()
    await history.load(context, state)
    await history.store(context, [user("new")], [], state)

    assert context.context_messages["h"] is transcript
    assert state == {}


async def test_decided_approvals_are_left_out_of_what_is_loaded() -> None:
    def asked(name: str) -> ApprovalRequestBlock:
        return ApprovalRequestBlock(request_id=name, call_id=f"c-{name}", name="rm", arguments={})

    call = FunctionCallBlock(call_id="c-1", name="rm", arguments={})
    decided = Message(role="user", content=(ApprovalResponseBlock(request_id="1", approved=True),))
    stored = [
        Message(role="assistant", message_id="m", content=(TextBlock(text="may I"), call, asked("1"))),
        decided,
        Message(role="assistant", content=(asked("2"),)),
        Message(role="user", content=(ApprovalResponseBlock(request_id="3", approved=True),)),
    ]
    history = ListHistory("h", user("q"))
    context = context_of()
    await history.load(context, {})

    history.kept = [*history.kept, *stored]
    await history.load(context, {})

    loaded = list(context.context_messages["h"])
    assert loaded == [
        user("q"),
        stored[0].model_copy(update={"content": (TextBlock(text="may I"), call)}),
        *stored[2:],
    ]
    history.kept = [decided]
    await history.load(context, {})
    assert context.context_messages["h"] == [decided]


async def test_a_run_kept_call_by_call_is_loaded_afresh_and_nothing_is_doubled() -> None:
    """Case 21."""
    history = ListHistory("h", store_context_messages=True)
    context = context_of(user("q"))
    context.extend_messages("rag", [text_message("user", "R")])
    call, result = text_message("assistant", "call"), text_message("tool", "result")

    await history.load(context, {})
    await history.store(context, context.input_messages, [call], {})
    await history.load(context, {})
    await history.store(context, [result], [text_message("assistant", "done")], {})

    assert history.calls == [["R", "q", "call"], ["result", "done"]]
    assert texts(context.context_messages["h"]) == ["R", "q", "call"]
    assert list(context.context_messages) == ["rag", "h"]


async def test_flags_come_from_the_entry_then_the_constructor_then_the_class() -> None:
    class Quiet(ListHistory):
        load_messages = False
        store_inputs = False

    config = TranscriptHistoryConfig(load_messages=True)
    history = Quiet("h", config=config, load_messages=False, store_outputs=False)

    assert (history.load_messages, history.store_inputs, history.store_outputs) == (True, False, False)
    with pytest.raises(TypeError, match="store_input"):
        ListHistory("h", store_input=False)


def plan_with(*entries: dict[str, Any]) -> AgentPlan:
    spec = AgentSpec.model_validate({"contextProviders": list(entries)})
    return make_plan(ResolvedAgent("tester", spec), SessionSettings(), Surroundings())


def test_an_audit_does_not_stand_in_for_a_history_that_loads() -> None:
    """Case 13."""
    plan = plan_with({"type": "history", "sourceId": "audit", "config": {"loadMessages": False}})

    assert [bound.source_id for bound in plan.providers] == ["in_memory", "audit"]


def test_a_file_history_that_loads_is_the_only_one() -> None:
    """Cases 12 and 18."""
    entry = {"type": "file_history", "config": {"path": "history"}}

    assert [bound.source_id for bound in plan_with(entry).providers] == ["file_history"]
    with pytest.raises(ConfigInvalid, match="'in_memory', 'file_history'"):
        plan_with({"type": "history"}, entry)


async def test_a_failed_run_is_kept_by_no_history() -> None:
    """Case 4."""
    history = ListHistory("h")
    run = AgentRun(FakeClient([RuntimeError("down")]), [audit(), history])

    with pytest.raises(RuntimeError):
        await run.say("q")

    assert audited(run) == []
    assert history.calls == []
