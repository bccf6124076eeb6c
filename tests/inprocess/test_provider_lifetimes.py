"""Providers that hold something open are entered before their first run and left with their session."""

from dataclasses import replace
from typing import Self

import pytest

from providers.api.provider import ContextProvider
from sidecar.errors import ProviderFailed
from sidecar.sessions.provider_lifetimes import ProviderLifetimes
from tests.bench.agent_run import bound, plan_of


class Connection(ContextProvider):
    """Notes when it is opened and closed."""

    def __init__(self, source_id: str, log: list[str], *, broken: bool = False) -> None:
        super().__init__(source_id)
        self.log = log
        self.broken = broken

    async def __aenter__(self) -> Self:
        if self.broken:
            raise ConnectionError("password=hunter2")
        self.log.append(f"open {self.source_id}")
        return self

    async def __aexit__(self, *error: object) -> None:
        self.log.append(f"close {self.source_id}")
        if self.source_id == "bad":
            raise RuntimeError("cannot close")


async def test_providers_are_entered_once_in_order_and_left_in_reverse() -> None:
    log: list[str] = []
    plan = replace(plan_of(), providers=(bound(Connection("a", log)), bound(Connection("b", log))))
    lifetimes = ProviderLifetimes()

    await lifetimes.enter(plan)
    await lifetimes.enter(plan)
    await lifetimes.leave()
    await lifetimes.leave()

    assert log == ["open a", "open b", "close b", "close a"]


async def test_a_provider_that_a_new_plan_does_not_have_is_left() -> None:
    log: list[str] = []
    kept = bound(Connection("kept", log))
    lifetimes = ProviderLifetimes()

    await lifetimes.enter(replace(plan_of(), providers=(kept, bound(Connection("old", log)))))
    await lifetimes.enter(replace(plan_of(), providers=(kept, bound(Connection("new", log)))))

    assert log == ["open kept", "open old", "close old", "open new"]


async def test_one_that_cannot_be_entered_fails_the_run_by_name_only() -> None:
    log: list[str] = []
    lifetimes = ProviderLifetimes()
    plan = replace(plan_of(), providers=(bound(Connection("a", log)), bound(Connection("b", log, broken=True))))

    with pytest.raises(ProviderFailed) as failed:
        await lifetimes.enter(plan)
    await lifetimes.leave()

    assert failed.value.message == "provider 'b' failed in beforeRun: ConnectionError"
    assert log == ["open a", "close a"]


async def test_one_that_cannot_be_left_keeps_no_other_open() -> None:
    log: list[str] = []
    lifetimes = ProviderLifetimes()

    await lifetimes.enter(replace(plan_of(), providers=(bound(Connection("a", log)), bound(Connection("bad", log)))))
    await lifetimes.leave()

    assert log[2:] == ["close bad", "close a"]
