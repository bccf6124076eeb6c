"""What a model is sent is valid: each call is followed by its one result, whatever the transcript looks like."""

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocol.messages import Block, FunctionCallBlock, FunctionResultBlock, Message, TextBlock, text_message
from sidecar.agents.pairing import paired


def calls(*ids: str, text: str = "") -> Message:
    said: tuple[Block, ...] = (TextBlock(text=text),) if text else ()
    blocks = tuple(FunctionCallBlock(call_id=call_id, name="t", arguments={}) for call_id in ids)
    return Message(role="assistant", content=(*said, *blocks))


def results(*ids: str, text: str = "") -> Message:
    blocks = tuple(FunctionResultBlock(call_id=call_id, content=(TextBlock(text=text),)) for call_id in ids)
    return Message(role="tool", content=blocks)


def user(text: str = "go") -> Message:
    return text_message("user", text)


def called(message: Message) -> list[str]:
    return [block.call_id for block in message.content if isinstance(block, FunctionCallBlock)]


def answered(message: Message) -> list[str]:
    return [block.call_id for block in message.content if isinstance(block, FunctionResultBlock)]


def is_valid(messages: list[Message]) -> bool:
    """What endpoints ask for, said otherwise than in the code under test."""
    shape = [(called(m) if m.role == "assistant" else []) or (m.role == "tool" and answered(m)) for m in messages]
    for index, message in enumerate(messages):
        wanted = shape[index] if message.role == "assistant" else []
        after = messages[index + 1] if index + 1 < len(messages) else user()
        if wanted and (after.role != "tool" or shape[index + 1] != wanted):
            return False
        before = messages[index - 1] if index else user()
        if message.role == "tool" and (before.role != "assistant" or not called(before)):
            return False
    return True


# ---- single shapes ---------------------------------------------------------------------------------------------------


def test_a_valid_conversation_stays_as_it_is() -> None:
    whole = [user(), calls("a", "b"), results("a", "b"), text_message("assistant", "done"), user()]

    assert all(now is before for now, before in zip(paired(whole), whole, strict=True))


def test_a_call_without_a_result_goes_and_what_was_said_beside_it_stays() -> None:
    assert paired([user("1"), calls("a", text="hm"), user("2")]) == [
        user("1"),
        text_message("assistant", "hm"),
        user("2"),
    ]


def test_a_message_of_nothing_but_open_calls_goes() -> None:
    assert paired([user("go"), calls("a"), user("never mind")]) == [user("go"), user("never mind")]


def test_a_result_without_a_call_goes() -> None:
    assert paired([results("old"), user(), text_message("assistant", "hi")]) == [
        user(),
        text_message("assistant", "hi"),
    ]


def test_of_several_calls_only_those_without_a_result_go() -> None:
    assert paired([calls("a", "b"), results("b")]) == [calls("b"), results("b")]


def test_results_of_one_answer_stand_in_one_message_in_the_order_of_the_calls() -> None:
    assert paired([calls("a", "b"), results("b"), results("a")]) == [calls("a", "b"), results("a", "b")]


def test_a_result_that_stands_behind_a_user_message_is_moved_to_its_call() -> None:
    assert paired([calls("a"), user("and?"), results("a")]) == [calls("a"), results("a"), user("and?")]


def test_a_second_result_of_a_call_goes() -> None:
    kept = paired([calls("a"), results("a", text="1"), results("a", text="2")])

    assert kept == [calls("a"), results("a", text="1")]


def test_an_id_that_is_used_again_keeps_each_result_at_its_own_call() -> None:
    whole = [calls("a"), results("a", text="1"), calls("a"), results("a", text="2"), calls("open")]

    assert paired(whole) == whole[:4]


def test_a_result_whose_call_was_trimmed_away_is_not_given_to_a_later_call_of_that_id() -> None:
    whole = [results("a", text="old"), calls("a"), results("a", text="new")]

    assert paired(whole) == [calls("a"), results("a", text="new")]


def test_an_open_call_does_not_take_the_result_of_a_later_call_of_that_id() -> None:
    whole = [user("1"), calls("a"), user("2"), calls("a"), results("a")]

    assert paired(whole) == [user("1"), user("2"), calls("a"), results("a")]


def test_two_calls_of_one_answer_with_one_id_keep_both_results() -> None:
    whole = [calls("a", "a"), results("a", text="1"), results("a", text="2")]

    [asked, told] = paired(whole)

    assert called(asked) == ["a", "a"]
    assert [block for message in whole[1:] for block in message.content] == list(told.content)


@pytest.mark.parametrize("ids", [{"s"}, ["s", "t"]])
def test_results_of_calls_that_the_service_keeps_need_no_call(ids: Any) -> None:
    assert paired([results("s", "other"), user()], ids) == [results("s"), user()]


def test_a_result_that_stands_behind_its_call_is_not_said_a_second_time_for_the_service() -> None:
    assert paired([calls("open"), calls("s"), results("s")], {"s"}) == [calls("s"), results("s")]


# ---- any conversation ------------------------------------------------------------------------------------------------

IDS = st.lists(st.sampled_from("abc"), max_size=3)
MESSAGES = st.lists(
    st.one_of(
        st.builds(user, st.sampled_from("123")),
        st.builds(lambda text: text_message("system", text), st.sampled_from("xy")),
        st.builds(lambda ids, text: calls(*ids, text=text), IDS, st.sampled_from(["", "said"])),
        st.builds(lambda ids, text: results(*ids, text=text), IDS, st.sampled_from(["r1", "r2"])),
    ),
    max_size=10,
)


@given(MESSAGES)
def test_whatever_the_transcript_is_what_is_sent_is_valid(whole: list[Message]) -> None:
    assert is_valid(paired(whole))


@given(MESSAGES)
def test_making_it_valid_twice_changes_nothing_more(whole: list[Message]) -> None:
    once = paired(whole)

    assert paired(once) == once


@given(MESSAGES)
def test_everything_but_calls_and_results_stays_in_its_order(whole: list[Message]) -> None:
    def rest(messages: list[Message]) -> list[Block]:
        apart = FunctionCallBlock | FunctionResultBlock
        return [b for m in messages if m.role != "tool" for b in m.content if not isinstance(b, apart)]

    assert rest(paired(whole)) == rest(whole)


@given(MESSAGES)
def test_a_call_with_its_result_right_behind_it_is_never_lost(whole: list[Message]) -> None:
    kept = [block for message in paired(whole) for block in message.content]
    for asked, told in pairwise(whole):
        if told.role == "tool" and called(asked) and called(asked) == answered(told):
            assert all(any(block is other for other in kept) for block in (*asked.content, *told.content))


@given(MESSAGES)
def test_nothing_is_said_that_was_not_there(whole: list[Message]) -> None:
    there = {id(block) for message in whole for block in message.content}

    assert all(id(block) in there for message in paired(whole) for block in message.content)


@given(MESSAGES)
def test_the_messages_themselves_are_not_changed(whole: list[Message]) -> None:
    before = [message.model_copy() for message in whole]

    paired(whole)

    assert whole == before
