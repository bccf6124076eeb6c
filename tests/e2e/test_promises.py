"""The bench notices a broken promise: whatever ledger, store and model requests do not agree on is told by number."""

import contextlib
import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from tests.bench.busy import answer
from tests.bench.fake_model import FakeModel, Recorded
from tests.bench.host import FakeHost
from tests.bench.ledger import AskedRun, Ledger, LedgerSession
from tests.bench.promises import hold


class Scene:
    """A sidecar that keeps its promises, and what its host and its model wrote down."""

    def __init__(self, host: FakeHost, ledger: Ledger, requests: list[Recorded]) -> None:
        self.host, self.ledger, self.requests = host, ledger, requests

    def run(self, run_id: str) -> AskedRun:
        """A run of the first session."""
        return self.ledger.sessions["s0"].runs[run_id]

    def request(self, **message: Any) -> None:
        """Let the model have received the last request of the first session with another message in front."""
        body = json.loads(self.requests[-1].raw)
        body["messages"].insert(-1, message)
        self.requests[-1].raw = json.dumps(body).encode()


@pytest.fixture
async def scene(start_host: Any, model: FakeModel, store: str, tmp_path: Path) -> AsyncIterator[Scene]:
    """Two sessions with a run of each kind."""
    model.otherwise(answer)
    with contextlib.closing(Ledger(tmp_path / "ledger.jsonl")) as ledger:
        host = await start_host(store=store, env=model.environment, ledger=ledger)
        for session_id in ("s1", "s0"):
            session = await host.create_session(sessionId=session_id)
            for kind in ("call", "talk"):
                await session.run(f"{kind} {session_id}", runId=f"{session_id}-{kind}")
        await hold(ledger, host, model.requests)
        yield Scene(host, ledger, list(model.requests))


def lost_session(scene: Scene) -> None:
    scene.ledger.sessions["gone"] = LedgerSession(created={"session": {"epoch": "ep"}})


def strange_session(scene: Scene) -> None:
    del scene.ledger.sessions["s1"]
    scene.requests.clear()


def lost_event(scene: Scene) -> None:
    events = scene.ledger.sessions["s0"].events
    events[max(events) + 1] = events[1]


def changed_event(scene: Scene) -> None:
    events = scene.ledger.sessions["s0"].events
    events[2] = {**events[2], "time": "2026-01-01T00:00:00Z"}


def other_epoch(scene: Scene) -> None:
    created = scene.ledger.sessions["s0"].created
    assert created is not None
    created["session"]["epoch"] = "ep_other"


def other_answer(scene: Scene) -> None:
    scene.run("s0-talk").answers[0]["result"]["status"] = "cancelled"


def lost_run(scene: Scene) -> None:
    scene.ledger.sessions["s0"].runs["lost"] = AskedRun({"input": "lost"}, [{"result": {"status": "completed"}}])


def strange_run(scene: Scene) -> None:
    del scene.ledger.sessions["s0"].runs["s0-talk"]


def run_done_twice(scene: Scene) -> None:
    scene.requests.append(scene.requests[-1])


def unpaired_request(scene: Scene) -> None:
    scene.request(role="tool", tool_call_id="nobody", content="?")


def foreign_text(scene: Scene) -> None:
    scene.request(role="user", content="talk s1")


@pytest.mark.parametrize(
    ("tamper", "number"),
    [
        (lost_session, "1"), (strange_session, "2"), (lost_event, "1"), (changed_event, "1"), (other_epoch, "1"),
        (other_answer, "1"), (lost_run, "1"), (strange_run, "9"), (run_done_twice, "4"), (unpaired_request, "6"),
        (foreign_text, "9"),
    ],
)  # fmt: skip
async def test_a_broken_promise_is_told_by_its_number(
    scene: Scene, tamper: Callable[[Scene], None], number: str
) -> None:
    tamper(scene)
    with pytest.raises(AssertionError, match=rf"^promises? (6, )?{number}: "):
        await hold(scene.ledger, scene.host, scene.requests)


async def test_a_ledger_that_is_opened_again_holds_what_it_held(scene: Scene, tmp_path: Path) -> None:
    with contextlib.closing(Ledger(tmp_path / "ledger.jsonl")) as again:
        assert again.sessions == scene.ledger.sessions
