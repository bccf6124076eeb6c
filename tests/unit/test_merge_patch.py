"""Merge patches by RFC 7386, and the three-way merge that keeps two writers of the state bag apart."""

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.sessions.merge_patch import carry_over, merge_patch

scalars = st.none() | st.booleans() | st.integers(-3, 3) | st.text("abc", max_size=2)
keys = st.text("abc", min_size=1, max_size=1)
values = st.recursive(scalars, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(keys, inner), max_leaves=8)
objects = st.dictionaries(keys, values)


@pytest.mark.parametrize(
    ("target", "patch", "result"),
    [  # the table of RFC 7386, appendix A
        ({"a": "b"}, {"a": "c"}, {"a": "c"}),
        ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
        ({"a": "b"}, {"a": None}, {}),
        ({"a": "b", "b": "c"}, {"a": None}, {"b": "c"}),
        ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
        ({"a": "c"}, {"a": ["b"]}, {"a": ["b"]}),
        ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
        ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
        (["a", "b"], ["c", "d"], ["c", "d"]),
        ({"a": "b"}, ["c"], ["c"]),
        ({"a": "foo"}, None, None),
        ({"a": "foo"}, "bar", "bar"),
        ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
        ([1, 2], {"a": "b", "c": None}, {"a": "b"}),
        ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
    ],
)
def test_the_rfc_s_examples(target: Any, patch: Any, result: Any) -> None:
    assert merge_patch(target, patch) == result


@given(target=objects, patch=objects)
def test_a_patch_changes_nothing_in_place_and_a_second_time_nothing_at_all(target: Any, patch: Any) -> None:
    before, given_patch = copy.deepcopy(target), copy.deepcopy(patch)

    once = merge_patch(target, patch)

    assert (target, patch) == (before, given_patch)
    assert merge_patch(once, patch) == once
    assert all(once[key] == target[key] for key in target if key not in patch)
    assert all(key not in once for key in patch if patch[key] is None)


@given(base=objects, ours=objects)
def test_what_nobody_else_changed_becomes_ours(base: Any, ours: Any) -> None:
    assert carry_over(base, ours, base) == ours


@given(base=objects, theirs=objects)
def test_what_we_did_not_change_stays_theirs(base: Any, theirs: Any) -> None:
    assert carry_over(base, base, theirs) == theirs


@given(base=objects, ours=values, theirs=values)
def test_changes_of_different_keys_are_both_kept(base: dict[str, Any], ours: Any, theirs: Any) -> None:
    merged = carry_over({"p": base}, {"p": {**base, "x": ours}}, {"p": {**base, "y": theirs}})

    assert merged == {"p": {**base, "x": ours, "y": theirs}}


def test_a_removed_key_is_removed_and_a_true_is_no_one() -> None:
    assert carry_over({"a": 1, "b": 2}, {"b": 2}, {"a": 1, "b": 3}) == {"b": 3}
    assert carry_over({"a": 1}, {"a": True}, {"a": 1})["a"] is True
