"""Two answers to one question at the same moment: each is told what is stored, and nothing that is forgotten."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from protocol.agents import RunOptions
from protocol.base import JsonObject
from protocol.host import ResolveRequestParams
from protocol.sessions import PendingRequest, UpdateSessionParams
from sidecar.agents.sink import Draft
from sidecar.config.limits import Limits
from sidecar.errors import StorageFailed
from sidecar.handlers.resolve_request import resolve_request
from sidecar.handlers.services import Reply
from sidecar.sessions.approvals import Held, Parked, Question
from sidecar.sessions.host_requests import new_pending
from sidecar.sessions.update import update
from sidecar.stores.base import Unavailable, Unit, Unknown
from tests.bench.fake_client import FakeClient
from tests.bench.open_session import TIME, Here, open_here

PARKED = Parked(
    message_id="m", run_id="r1", next_run_id="r2", input_ids=(), output_ids=("m",), options=RunOptions()
)  # fmt: skip
OPTIONS = [
    {"optionId": "allowOnce", "name": "Allow", "kind": "allowOnce"},
    {"optionId": "rejectOnce", "name": "Reject", "kind": "rejectOnce"},
]


@pytest.fixture
async def here() -> Here:
    here = await open_here(FakeClient([]))
    workspace: Any = here.session.workspace
    workspace.limits = Limits()
    return here


def hold(here: Here) -> Held:
    """Two questions that a run has ended with, so that the first decision starts no run."""
    questions: list[Question] = []
    for name in ("q0", "q1"):
        payload: JsonObject = {"toolCall": {"callId": name, "name": "delete", "arguments": {}}, "options": OPTIONS}
        pending = PendingRequest(request_id=name, kind="approval", run_id="r1", opened_at=TIME, payload=payload)
        questions.append(Question(pending=pending, call_id=name, schema_hash="h", source="s", parked=PARKED))
    held = here.session.approvals.hold(questions, "r1")
    held.taken_by = None
    return held


async def resolve(here: Here, option: str, request_id: str = "q0") -> str:
    """The status that `resolveRequest` is answered."""

    async def get_open(_: str) -> Any:
        return here.session

    services: Any = SimpleNamespace(
        tickets=here.tickets, run_setup=here.setup, sessions=SimpleNamespace(get_open=get_open)
    )
    raw: JsonObject = {
        "sessionId": "s", "requestId": request_id, "result": {"outcome": "selected", "optionId": option}
    }  # fmt: skip
    call: Any = SimpleNamespace(raw=raw)
    answer = await resolve_request(ResolveRequestParams.model_validate(raw), call, services)
    result = answer.result if isinstance(answer, Reply) else answer
    return str(result.wire()["status"])


async def decisions(here: Here) -> list[str | None]:
    """What is stored of the first question, that it was decided, and how."""
    stored = (await here.store.load("s")).requests.get("q0")
    if stored is None:
        return []
    return [word for word in ("approved", "denied") if f'"decision":"{word}"'.encode() in stored]


async def settled(*tasks: "asyncio.Task[str]") -> set[int]:
    """Those that are answered once everything that can go on has gone on."""
    for _ in range(20):
        await asyncio.sleep(0)
    return {index for index, task in enumerate(tasks) if task.done()}


def failing_once(here: Here, error: Exception) -> asyncio.Event:
    """Let the first commit wait for the event, then fail; all others work."""
    real, gate, commits = here.store.commit, asyncio.Event(), iter([1])

    async def commit(unit: Unit) -> int:
        if next(commits, None) is None:
            return await real(unit)
        await gate.wait()
        raise error

    here.store.commit = commit
    return gate


async def test_a_retry_is_answered_once_the_first_is_stored(here: Here) -> None:
    hold(here)
    here.store.gate.clear()
    first = asyncio.create_task(resolve(here, "allowOnce"))
    await here.store.held.wait()

    retry = asyncio.create_task(resolve(here, "allowOnce"))
    assert await settled(first, retry) == set()

    here.store.gate.set()
    assert (await first, await retry) == ("resolved", "alreadyResolved")
    assert await decisions(here) == ["approved"]


async def test_a_retry_decides_where_the_first_could_not_be_stored(here: Here) -> None:
    hold(here)
    gate = failing_once(here, Unavailable("no room"))
    first = asyncio.create_task(resolve(here, "allowOnce"))
    await asyncio.sleep(0)
    retry = asyncio.create_task(resolve(here, "allowOnce"))
    await settled(first, retry)
    gate.set()

    with pytest.raises(StorageFailed):
        await first
    assert await retry == "resolved"
    assert await decisions(here) == ["approved"]
    assert len(await here.stored("request.resolved")) == 1


@pytest.mark.parametrize("fails", [True, False])
async def test_a_rejection_counts_that_comes_while_an_approval_is_on_its_way(here: Here, *, fails: bool) -> None:
    held = hold(here)
    await resolve(here, "allowOnce", "q1")
    if fails:
        gate = failing_once(here, Unavailable("no room"))
    else:
        gate = here.store.gate
        gate.clear()
    first = asyncio.create_task(resolve(here, "allowOnce"))
    await asyncio.sleep(0)
    second = asyncio.create_task(resolve(here, "rejectOnce"))
    assert await settled(first, second) == set()
    gate.set()

    if fails:
        with pytest.raises(StorageFailed):
            await first
    else:
        assert await first == "resolved"
    assert await second == "resolved"
    assert (held.questions["q0"].decision, await decisions(here)) == ("denied", ["denied"])
    assert len([event for event in here.sent if event["type"] == "request.resolved"]) == 2


async def test_a_decision_whose_request_is_cancelled_on_its_way_into_the_store_is_taken_back_if_that_fails(
    here: Here,
) -> None:
    held = hold(here)
    gate = failing_once(here, Unavailable("no room"))
    first = asyncio.create_task(resolve(here, "allowOnce"))
    await settled(first)
    first.cancel()
    await asyncio.wait({first})
    gate.set()

    assert await resolve(here, "rejectOnce") == "resolved"
    assert (held.questions["q0"].decision, await decisions(here)) == ("denied", ["denied"])


async def test_what_waits_to_be_stored_is_stored_before_a_request_is_called_resolved(here: Here) -> None:
    requests = here.session.requests
    requests.open(pending := new_pending("approval", "r1", {}, None))
    requests.close(pending.request_id)
    here.store.broken = True
    with pytest.raises(Unavailable):
        await here.session.log.append([Draft("request.resolved", {"requestId": pending.request_id})])

    with pytest.raises(StorageFailed):
        await resolve(here, "allowOnce", pending.request_id)
    here.store.broken = False

    assert await resolve(here, "allowOnce", pending.request_id) == "alreadyResolved"
    assert len(await here.stored("request.resolved")) == 1


async def test_an_answer_after_the_clients_own_is_answered_once_that_has_closed_the_request(here: Here) -> None:
    requests = here.session.requests
    requests.open(pending := new_pending("approval", "r1", {}, None))
    requests.take(pending.request_id)

    late = asyncio.create_task(resolve(here, "allowOnce", pending.request_id))
    assert await settled(late) == set()
    requests.close(pending.request_id)

    assert await late == "alreadyResolved"


async def test_a_session_is_lost_where_it_is_not_known_whether_a_decision_is_stored(here: Here) -> None:
    hold(here)
    here.store.commit = unknown

    with pytest.raises(StorageFailed, match="not known"):
        await resolve(here, "allowOnce")

    assert here.session.lost


async def test_a_session_is_lost_where_it_is_not_known_whether_an_update_is_stored(here: Here) -> None:
    here.store.commit = unknown

    with pytest.raises(StorageFailed, match="not known"):
        await update(here.session, UpdateSessionParams(session_id="s", title="T"))

    assert here.session.lost


async def unknown(unit: Unit) -> int:
    """A commit of which nobody knows."""
    raise Unknown("input/output error")
