"""A session's state: plain JSON that comes back as it was, and what cannot be stored is refused by its place."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocol.messages import Message, text_message
from providers.api.session import Session

scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
keys = st.text(max_size=6)
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=3), max_leaves=8
)


def round_trip(session: Session) -> Session:
    return Session.from_dict(json.loads(json.dumps(session.to_dict())))


@given(state=st.dictionaries(keys, values, max_size=4))
def test_any_json_comes_back_equal(state: dict[str, Any]) -> None:
    """Case 25."""
    back = round_trip(Session("s", state=state, service_session_id="svc"))

    assert (back.session_id, back.service_session_id) == ("s", "svc")
    assert back.state == state


def test_tuples_come_back_as_lists() -> None:
    """Case 25."""
    assert round_trip(Session("s", state={"a": (1, (2, 3))})).state == {"a": [1, [2, 3]]}


def test_messages_come_back_as_objects_that_are_messages_again() -> None:
    message = text_message("user", "hello", message_id="m1")

    [back] = round_trip(Session("s", state={"kept": [message]})).state["kept"]

    assert Message.model_validate(back) == message


@pytest.mark.parametrize("kind", ["message", "session", "text", "AgentSession"])
def test_an_object_with_a_type_is_data_like_any_other(kind: str) -> None:
    """Case 26."""
    state = {"type": kind, "inner": {"type": kind, "role": "user", "content": [{"type": kind}]}}

    assert round_trip(Session("s", state=state)).state == state


@pytest.mark.parametrize(
    ("value", "place"),
    [
        ({"a": [1, {"b": object()}]}, r"state\.x\.a\[1\]\.b holds a object"),
        ({"a": {1, 2}}, r"state\.x\.a holds a set"),
        ({1: "a"}, r"state\.x has the key 1"),
        ([float("nan")], r"state\.x\[0\]"),
        ([float("inf")], r"state\.x\[0\]"),
        (b"bytes", r"state\.x holds a bytes"),
    ],
    ids=["object", "set", "key", "nan", "inf", "bytes"],
)
def test_what_cannot_be_stored_is_refused_naming_where_it_stands(value: Any, place: str) -> None:
    """Case 26."""
    with pytest.raises(ValueError, match=place):
        Session("s", state={"x": value}).to_dict()


def test_state_that_holds_itself_is_refused() -> None:
    state: dict[str, Any] = {}
    state["again"] = state

    with pytest.raises(ValueError, match="nested too deep"):
        Session("s", state=state).to_dict()


def test_a_snapshot_shares_nothing_with_the_session() -> None:
    """Case 27."""
    session = Session("s", state={"list": [1]})
    snapshot = session.to_dict()
    back = Session.from_dict(snapshot)

    session.state["list"].append(2)
    back.state["list"].append(3)

    assert snapshot["state"] == {"list": [1]}


def test_a_provider_s_corner_is_made_at_first_use_and_shared_with_the_bag() -> None:
    session = Session("s")

    session.state_of("p")["n"] = 1

    assert session.state == {"p": {"n": 1}}


def test_a_corner_that_holds_something_else_is_refused() -> None:
    with pytest.raises(TypeError, match="'p'"):
        Session("s", state={"p": "text"}).state_of("p")
