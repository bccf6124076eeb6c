"""The vocabulary of providers: attribution, histories, static messages, and state that lasts from run to run."""

from collections.abc import Sequence
from typing import Any

from protocol.agents import RunOptions
from protocol.messages import Message, Source, text_message
from providers.api.context import Response, SessionContext
from providers.api.history import HistoryProvider
from providers.api.provider import ContextProvider, Surroundings
from providers.api.session import Session
from providers.history import TranscriptHistory, TranscriptHistoryConfig
from tests.bench.agent_run import AgentRun, plan_of, user
from tests.bench.fake_client import FakeClient, says
from tests.bench.providers import Hook, Log, Recorder, adds


def context_of(*inputs: Message) -> SessionContext:
    return SessionContext(session_id="s", input_messages=inputs, options=RunOptions())


class Turns(HistoryProvider):
    """A history in a list."""

    def __init__(self, source_id: str = "turns", *, load: bool = True) -> None:
        super().__init__(source_id)
        self.load_messages = load
        self.saved: list[list[str]] = []
        self.kept: list[Message] = []

    async def get_messages(self, session_id: str | None, *, state: Any) -> Sequence[Message]:
        return self.kept

    async def save_messages(self, session_id: str | None, messages: Sequence[Message], *, state: Any) -> None:
        self.saved.append([message.text for message in messages])
        self.kept = [*self.kept, *messages]


def test_a_message_carries_the_id_and_class_of_the_provider_that_added_it() -> None:
    """Case 5."""
    original = text_message("user", "note", metadata={"n": 1})
    context = context_of()

    context.extend_messages(ContextProvider("p1"), [original])

    [added] = context.get_messages()
    assert added.source == Source(type="provider", source_id="p1", source_type="ContextProvider")
    assert added.metadata == {"n": 1}
    assert original.source is None


def test_a_message_that_is_attributed_already_keeps_its_attribution() -> None:
    """Case 6."""
    context = context_of()
    context.extend_messages("p1", [text_message("user", "note")])

    context.extend_messages("p2", context.get_messages(sources=["p1"]))

    [again] = context.get_messages(sources=["p2"])
    assert again.source == Source(type="provider", source_id="p1")


def test_what_the_user_said_is_attributed_to_the_provider_that_repeats_it() -> None:
    context = context_of()

    context.extend_messages("p", [user("note")])

    assert context.get_messages()[0].source == Source(type="provider", source_id="p")


def test_origins_are_listed_once_in_the_order_in_which_they_came() -> None:
    """Case 7."""
    context = context_of()
    context.extend_messages("p1", [text_message("user", "note")], ["s1", "s2", "s1"])
    [first] = context.get_messages()
    assert first.source is not None
    assert first.source.origin_session_ids == ("s1", "s2")

    context.extend_messages("p2", [first], ["s3", "s2"])

    [merged] = context.get_messages(sources=["p2"])
    assert merged.source == Source(type="provider", source_id="p1", origin_session_ids=("s1", "s2", "s3"))
    assert first.source.origin_session_ids == ("s1", "s2")


def test_instructions_carry_their_source_and_blank_ones_are_none() -> None:
    context = context_of()

    context.extend_instructions("p", ["", " \n", "Be kind."])
    context.extend_instructions("q", "Be quick.")

    assert [(i.text, i.source.source_id) for i in context.instructions] == [("Be kind.", "p"), ("Be quick.", "q")]


def test_messages_can_be_had_by_source_with_the_input_and_the_response() -> None:
    context = context_of(user("in"))
    context.extend_messages("a", [text_message("user", "a1")])
    context.extend_messages("b", [text_message("user", "b1")])
    context.extend_messages("a", [text_message("user", "a2")])
    context.response = Response((text_message("assistant", "out"),), "out")

    def texts(**choice: Any) -> list[str]:
        return [message.text for message in context.get_messages(**choice)]

    assert texts() == ["a1", "a2", "b1"]
    assert texts(sources=["b"]) == ["b1"]
    assert texts(exclude_sources=["b"], include_input=True) == ["a1", "a2", "in"]
    assert texts(sources=[], include_input=True, include_response=True) == ["in", "out"]


def test_history_is_handed_on_as_it_is() -> None:
    stored = [user("earlier")]
    context = context_of()

    context.load_history("h", stored)

    assert context.get_messages()[0] is stored[0]


async def test_a_history_feeds_the_next_run_and_stores_input_and_answer_only() -> None:
    history = Turns()
    note = Recorder("note", Log(), before=adds("note", text_message("user", "x")))
    run = AgentRun(FakeClient(says("a1"), says("a2")), [history, note])

    await run.say("q1")
    await run.say("q2")

    assert history.saved == [["q1", "a1"], ["q2", "a2"]]
    assert [message.text for message in run.client.requests[1].messages] == ["q1", "a1", "x", "q2"]


async def test_the_same_turn_three_times_is_three_turns() -> None:
    history = Turns()
    run = AgentRun(FakeClient(says("ok"), says("ok"), says("ok")), [history])

    for _ in range(3):
        await run.say("yes")

    assert [message.text for message in history.kept] == ["yes", "ok"] * 3


async def test_a_history_that_does_not_load_is_never_asked() -> None:
    history = Turns(load=False)
    run = AgentRun(FakeClient(says("a1"), says("a2")), [history])

    await run.say("q1")
    await run.say("q2")

    assert [message.text for message in run.client.requests[1].messages] == ["q2"]
    assert history.saved == [["q1", "a1"], ["q2", "a2"]]


async def test_nothing_said_is_nothing_saved() -> None:
    history = Turns()

    await AgentRun(FakeClient(says()), [history]).say()

    assert history.saved == []


async def test_the_transcript_is_empty_in_a_run_without_a_session() -> None:
    history = TranscriptHistory("h", TranscriptHistoryConfig(), Surroundings(history=None))

    assert list(await history.get_messages("s", state={})) == []


async def test_static_messages_stand_before_the_input_of_every_run() -> None:
    entry = {
        "type": "static_messages",
        "config": {"messages": [{"role": "system", "content": "It is Monday."}, {"role": "user", "content": "Hm."}]},
    }
    run = AgentRun(FakeClient(says("ok"), says("ok")), plan=plan_of(entry))

    await run.say("one")
    await run.say("two")

    for call, text in enumerate(["one", "two"]):
        sent = run.client.requests[call].messages
        assert [(message.role, message.text) for message in sent] == [
            ("system", "It is Monday."),
            ("user", "Hm."),
            ("user", text),
        ]
        assert sent[0].source == Source(
            type="provider", source_id="static_messages", source_type="StaticMessagesProvider"
        )


async def test_what_a_provider_learnt_in_one_session_is_there_in_its_next_run_and_in_no_other_session() -> None:
    """Case 1."""

    def learn(hook: Hook) -> None:
        hook.state.setdefault("food", hook.context.input_messages[0].text.removeprefix("my favorite food is "))

    def use(hook: Hook) -> None:
        hook.context.extend_instructions("food", f"likes {hook.state.get('food', 'nobody knows what')}")

    provider = Recorder("food", Log(), before=use, after=learn)
    first = AgentRun(FakeClient(says("ok"), says("ok")), [provider])
    second = AgentRun(FakeClient(says("ok")), [provider], session=Session("other"))

    await first.say("my favorite food is sushi")
    await first.say("what shall I eat?")
    await second.say("what shall I eat?")

    assert first.client.requests[1].instructions == "likes sushi"
    assert second.client.requests[0].instructions == "likes nobody knows what"
