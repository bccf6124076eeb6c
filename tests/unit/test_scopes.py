"""Whose memory: settled from the session's beginning, in full or not at all."""

from typing import Any

import pytest
from pydantic import ValidationError

from providers.api.memory import Scope
from providers.api.session import Session
from providers.scopes import ScopeConfig, ScopeMissing, read_settled, scope_of, settle

SESSION = Session("s-1", state={"user_id": "Alice", "blank": " ", "number": 7})


def config(**keys: Any) -> ScopeConfig:
    return ScopeConfig.model_validate(keys)


def test_each_key_has_its_value_from_where_the_entry_says() -> None:
    scope = config(
        applicationId="shop",
        agentId="agent",
        sessionId={"fromSession": "sessionId"},
        userId={"fromState": "user_id"},
    )

    settled = settle(scope, SESSION, "waiter")

    assert settled == {"applicationId": "shop", "agentId": "waiter", "sessionId": "s-1", "userId": "Alice"}
    assert scope_of(settled) == Scope("shop", "waiter", "s-1", "Alice")


def test_agent_is_a_plain_text_for_any_other_key() -> None:
    assert settle(config(userId="agent"), SESSION, "waiter") == {"userId": "agent"}


@pytest.mark.parametrize("name", ["missing", "blank", "number"])
def test_a_value_that_is_missing_blank_or_no_text_is_refused_by_its_key(name: str) -> None:
    with pytest.raises(ScopeMissing, match=f"userId is missing or empty .*{name!r}"):
        settle(config(userId={"fromState": name}), SESSION, "waiter")


def test_a_scope_without_a_key_is_refused() -> None:
    with pytest.raises(ValidationError, match="everybody"):
        config()


def test_a_misspelt_key_is_refused_with_the_nearest_one() -> None:
    with pytest.raises(ValidationError, match="did you mean 'userId'"):
        config(userid="a")


def test_a_fork_keeps_whose_memory_it_is_and_has_its_own_session() -> None:
    scope = config(userId={"fromState": "user_id"}, sessionId={"fromSession": "sessionId"})
    fork = Session("s-2", state={"user_id": "Bob"})

    assert settle(scope, fork, "waiter", {"userId": "Alice", "sessionId": "s-1"}) == {
        "userId": "Alice",
        "sessionId": "s-2",
    }


@pytest.mark.parametrize("value", [None, {}, {"userId": ""}, {"userId": 1}, {"user": "a"}, "Alice"])
def test_a_record_that_holds_no_scope_is_refused(value: Any) -> None:
    with pytest.raises(ScopeMissing):
        read_settled(value)
