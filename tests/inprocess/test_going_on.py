"""Who takes decided calls: one run at a time, and under the promised id once."""

from types import SimpleNamespace
from typing import Any

import pytest

from protocol.agents import RunOptions
from protocol.sessions import PendingRequest
from sidecar.config.limits import Limits
from sidecar.handlers.going_on import keep_promises, take
from sidecar.sessions.approvals import Held, Parked, Question
from tests.bench.fake_client import FakeClient
from tests.bench.open_session import TIME, Here, open_here

PARKED = Parked(
    message_id="m", run_id="r1", next_run_id="r2", input_ids=(), output_ids=("m",), options=RunOptions()
)  # fmt: skip


def question(request_id: str, decision: str | None) -> Question:
    payload = {"toolCall": {"callId": request_id, "name": "delete", "arguments": {}}, "options": []}
    pending = PendingRequest(request_id=request_id, kind="approval", run_id="r1", opened_at=TIME, payload=payload)
    return Question(pending=pending, call_id=request_id, schema_hash="h", source="s", parked=PARKED, decision=decision)


@pytest.fixture
async def here() -> Here:
    here = await open_here(FakeClient([]))
    here.session.workspace.limits = Limits()
    return here


def services(here: Here) -> Any:
    return SimpleNamespace(tickets=here.tickets, run_setup=here.setup)


def hold(here: Here, *decisions: str | None) -> Held:
    """Questions that a run has ended with."""
    held = here.session.approvals.hold([question(f"q{i}", one) for i, one in enumerate(decisions)], "r1")
    held.taken_by = None
    return held


async def test_the_first_who_comes_takes_the_calls_under_the_promised_id(here: Here) -> None:
    held = hold(here, "approved", "denied")

    first, second = (take(here.session, held, services(here)) for _ in range(2))

    assert first is not None
    assert (first.run_id, held.taken_by, second) == ("r2", "r2", None)


async def test_a_second_run_that_goes_on_with_them_has_an_id_of_its_own(here: Here) -> None:
    held = hold(here, "approved")
    assert take(here.session, held, services(here)) is not None
    held.taken_by = None  # it has ended before its calls had begun

    second = take(here.session, held, services(here))

    assert second is not None
    assert second.run_id != "r2"


@pytest.mark.parametrize("how", ["open", "storing", "taken", "dropped"])
async def test_nobody_takes_what_is_open_or_taken_or_gone(here: Here, how: str) -> None:
    held = hold(here, "approved", None if how == "open" else "denied")
    held.storing = how == "storing"
    held.taken_by = "other" if how == "taken" else None
    if how == "dropped":
        here.session.approvals.drop(held)

    assert take(here.session, held, services(here)) is None


async def test_a_promise_is_kept_once_and_not_where_a_run_has_come_first(here: Here) -> None:
    held = hold(here, "approved")
    held.is_promised, held.taken_by = True, "other"

    await keep_promises(here.session, services(here))

    assert held.taken_by == "other"
    assert await here.stored("run.started") == []
