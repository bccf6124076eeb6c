"""Standing rules of one session that change at the same time: no change undoes another."""

import asyncio

import pytest

from sidecar.agents.standing_rules import StandingRule
from sidecar.sessions.record import read_record
from tests.bench.fake_client import FakeClient
from tests.bench.open_session import TIME, Here, open_here


def rule(name: str) -> StandingRule:
    return StandingRule(
        rule_id=name,
        decision="allow",
        tool=name,
        schema_hash="h",
        source="s",
        arguments=None,
        agent=None,
        cwd=None,
        created_at=TIME,
    )


async def kept(here: Here) -> list[str]:
    """The rules of the session, which are those that are stored."""
    rules = [one.rule_id for one in here.session.record.approval_rules]
    assert [one.rule_id for one in read_record(await here.store.load("s")).approval_rules] == rules
    return rules


@pytest.fixture
async def here() -> Here:
    return await open_here(FakeClient([]))


async def test_two_rules_that_are_made_at_once_are_both_kept(here: Here) -> None:
    await asyncio.gather(here.session.keep_rule(rule("one")), here.session.keep_rule(rule("two")))

    assert await kept(here) == ["one", "two"]


async def test_a_rule_that_is_made_while_another_is_revoked_does_not_bring_it_back(here: Here) -> None:
    await here.session.keep_rule(rule("one"))
    here.store.gate.clear()

    revoking = asyncio.create_task(here.session.revoke_rule("one"))
    await here.store.held.wait()
    keeping = asyncio.create_task(here.session.keep_rule(rule("two")))
    await asyncio.sleep(0)
    here.store.gate.set()

    assert await revoking
    await keeping
    assert await kept(here) == ["two"]


async def test_a_rule_is_revoked_once_by_two_at_once(here: Here) -> None:
    await here.session.keep_rule(rule("one"))

    found = await asyncio.gather(here.session.revoke_rule("one"), here.session.revoke_rule("one"))

    assert found == [True, False]
    assert await kept(here) == []


async def test_a_rule_whose_revocation_is_cancelled_on_its_way_into_the_store_does_not_stay(here: Here) -> None:
    await here.session.keep_rule(rule("one"))
    here.store.gate.clear()

    revoking = asyncio.create_task(here.session.revoke_rule("one"))
    await here.store.held.wait()
    revoking.cancel()
    await asyncio.wait({revoking})
    here.store.gate.set()
    await here.session.keep_rule(rule("two"))

    assert await kept(here) == ["two"]
