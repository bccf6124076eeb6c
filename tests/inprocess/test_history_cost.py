"""What is counted of a long history is counted once, and never wrongly. Not timed: `python -m benchmarks growth` is."""

from hypothesis import given
from hypothesis import strategies as st

from protocol.messages import Message, TextBlock, text_length
from protocol.runs import RunParams
from sidecar.agents.metering import GrowingText
from tests.bench.agent_run import AgentRun, user
from tests.bench.fake_client import FakeClient, says
from tests.bench.providers import Hook, Log, Recorder

HISTORIES = st.lists(st.lists(st.sampled_from([user(""), user("a"), user("bc"), user("a")]), max_size=5).map(tuple))


@given(HISTORIES)
def test_a_history_is_counted_right_however_it_changes(histories: list[tuple[Message, ...]]) -> None:
    text = GrowingText()
    for history in histories:
        assert text.length(history) == text_length(history) == sum(len(message.text) for message in history)


def test_what_was_counted_is_not_asked_for_its_text_again() -> None:
    text, old = GrowingText(), user("hello")
    assert text.length((old,)) == 5
    vars(old).pop("text")

    assert text.length((old, user("you"))) == 8

    assert "text" not in vars(old)


async def test_a_provider_is_told_to_have_added_what_it_added_in_this_run() -> None:
    history = [user("x" * 40)]

    def load(hook: Hook) -> None:
        hook.context.load_history("old", tuple(history))

    run = AgentRun(FakeClient(says("one"), says("two"), says("three")), [Recorder("old", Log(), before=load)])
    for messages, tokens in ((1, 10), (2, 11), (1, 1)):
        await run.say("hello")
        added = next(e["added"] for e in run.sink.of("provider.completed") if e["phase"] == "beforeRun")
        assert (added["messages"], added["tokens"]) == (messages, tokens)
        history = [*history, user("y" * 4)] if messages == 1 else history[1:]


def test_a_text_that_was_asked_for_is_no_part_of_its_message() -> None:
    message, unread = user("hello"), user("hello")
    assert message.text == "hello"

    assert message == unread
    assert message.wire() == unread.wire()
    assert message.model_dump_json() == unread.model_dump_json()
    assert RunParams(input=(message,)).wire() == RunParams(input=(unread,)).wire()
    for deep in (False, True):
        changed = message.model_copy(update={"content": (TextBlock(text="bye"),)}, deep=deep)
        assert (changed.text, message.text) == ("bye", "hello")
