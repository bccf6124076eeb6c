"""Calls without a result get one, and only those."""

from typing import Any

from protocol.messages import Block, FunctionCallBlock, FunctionResultBlock, Message, TextBlock
from sidecar.sessions.open_calls import close_calls


def call(call_id: str) -> FunctionCallBlock:
    return FunctionCallBlock(call_id=call_id, name=f"tool_{call_id}", arguments={})


def result(call_id: str) -> FunctionResultBlock:
    return FunctionResultBlock(call_id=call_id, content=())


def said(role: Any, *blocks: Block) -> Message:
    return Message(message_id="m", role=role, content=blocks, run_id="r")


def test_a_transcript_without_open_calls_needs_nothing() -> None:
    whole = [said("user", TextBlock(text="hi")), said("assistant", call("a")), said("tool", result("a"))]
    assert close_calls(whole, "cancelled", {}) is None
    assert close_calls([], "unknown", {}) is None


def test_each_open_call_gets_one_result_in_the_order_of_the_calls() -> None:
    closing = close_calls(
        [said("assistant", call("a"), call("b"), call("c")), said("tool", result("b"))], "unknown", {}
    )
    assert closing is not None
    assert closing.call_ids == ("a", "c")
    assert [block.call_id for block in closing.message.content if isinstance(block, FunctionResultBlock)] == ["a", "c"]
    assert all(block.is_error for block in closing.message.content if isinstance(block, FunctionResultBlock))
    assert closing.message.run_id == "r"
    assert [draft.type for draft in closing.drafts] == ["tool.completed", "tool.completed", "message.completed"]
    told = [(draft.data["callId"], draft.data["name"], draft.data["status"]) for draft in closing.drafts[:2]]
    assert told == [("a", "tool_a", "notRun"), ("c", "tool_c", "notRun")]


def test_an_id_that_was_answered_and_is_used_again_is_open_again() -> None:
    closing = close_calls(
        [said("assistant", call("a")), said("tool", result("a")), said("assistant", call("a"))], "cancelled", {}
    )
    assert closing is not None
    assert closing.call_ids == ("a",)


def test_what_was_begun_is_unknown_after_a_crash_and_what_had_ended_keeps_its_result() -> None:
    known = FunctionResultBlock(call_id="b", content=(TextBlock(text="done"),))

    closing = close_calls([said("assistant", call("a"), call("b"), call("c"))], "unknown", {"a": None, "b": known})

    assert closing is not None
    assert closing.message.content[1] == known
    assert closing.call_ids == ("a", "c")
    told = [(draft.data["callId"], draft.data["status"]) for draft in closing.drafts[:-1]]
    assert told == [("a", "unknown"), ("c", "notRun")]
    assert [(note.call_id, note.open) for note in closing.drafts[-1].calls] == [("a", False), ("b", False)]
