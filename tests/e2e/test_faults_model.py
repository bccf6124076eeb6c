"""F5 and BR-16: whatever a model endpoint does, a run ends once, with the right error, within its limits."""

import asyncio
import email.utils
import json
import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from tests.bench.fake_model import (
    CLOSE,
    CUT,
    DONE,
    EOF,
    TC,
    Chunk,
    FakeModel,
    Ping,
    Raw,
    Reply,
    Stall,
    T,
)  # fmt: skip
from tests.bench.host import FakeHost, RpcError
from tests.bench.model_script import Piece
from tests.bench.processes import descriptors
from tests.conftest import scaled

pytestmark = pytest.mark.asyncio(loop_scope="module")

IDLE_S, TOTAL_S, CONNECT_S, RETRIES = 10.0, 20.0, 5.0, 1
BRIEF_IDLE_S, BRIEF_TOTAL_S = 0.5, 2.0
"""Of the endpoint whose limits are to be met."""
SLACK = 10
"""How many times the stated bound a loaded machine may take."""
KEY = "sk-canary-5"
MOMENTS: dict[str, list[Piece]] = {
    "before the first delta": [],
    "mid-text": [T("Your total "), T("is")],
    "mid-arguments": [TC(0, "c1", "order", '{"dish":')],
}


# ---- the faults --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Fault:
    """What the endpoint does, and what must come of it."""

    reply: Reply
    kind: str
    tries: int = 1 + RETRIES
    """Requests, where no delta was handed on before."""
    endpoint: str = "mine"


def ends(*pieces: Piece) -> Reply:
    """A stream that goes wrong in this way."""
    return Reply(list(pieces))


def refuses(status: int, *, error: str = "", **headers: str) -> Reply:
    """An answer that is no stream."""
    body = json.dumps({"error": {"message": error, "code": error or None}}).encode()
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Reply([Raw(body), EOF], status, {"content-type": "application/json", **named})


def past() -> str:
    """A date as `Retry-After` may hold it, a minute ago."""
    return email.utils.formatdate(time.time() - 60, usegmt=True)


MID_STREAM: dict[str, Fault] = {
    "silence": Fault(ends(Stall()), "modelTimeout", tries=1, endpoint="brief"),
    "comments only": Fault(ends(Ping(0.05)), "modelTimeout", tries=1, endpoint="brief"),
    "one byte at a time": Fault(ends(*[Raw(b" "), Stall(0.05)] * 200), "modelTimeout", tries=1, endpoint="brief"),
    "a connection that closes": Fault(ends(CLOSE), "modelBadStream"),
    "a reset": Fault(ends(CUT), "modelBadStream"),
    "an end without a finish reason": Fault(ends(EOF), "modelBadStream"),
    "DONE without a finish reason": Fault(ends(DONE, EOF), "modelBadStream"),
    "an event that is no JSON": Fault(ends(Raw(b"data: {nonsense\n\n"), EOF), "modelBadStream"),
    "bytes that are no UTF-8": Fault(ends(Raw(b"data: \xff\xfe\x00\n\n"), EOF), "modelBadStream"),
    "an error in the stream": Fault(ends(Chunk({"error": {"message": "busy", "code": 503}}), EOF), "modelUnavailable"),
}
"""Each can come at any moment of a stream."""

BEFORE: dict[str, Fault] = {
    "429": Fault(refuses(429), "modelRateLimited"),
    "429, try at once": Fault(refuses(429, retry_after="0"), "modelRateLimited"),
    "429, try in a second": Fault(refuses(429, retry_after="1"), "modelRateLimited"),
    "429, try in 30 s": Fault(refuses(429, retry_after="30"), "modelRateLimited", tries=1),
    "429, try in an hour": Fault(refuses(429, retry_after="3600"), "modelRateLimited", tries=1),
    "429, try at a date": Fault(refuses(429, retry_after=past()), "modelRateLimited"),
    "429, try some day": Fault(refuses(429, retry_after="some day"), "modelRateLimited"),
    "429, no quota": Fault(refuses(429, error="insufficient_quota"), "modelQuota", tries=1),
    "500": Fault(refuses(500), "modelUnavailable"),
    "502": Fault(refuses(502), "modelUnavailable"),
    "503": Fault(refuses(503), "modelUnavailable"),
    "400": Fault(refuses(400), "modelBadRequest", tries=1),
    "400, too long": Fault(refuses(400, error="context_length_exceeded"), "contextWindowExceeded", tries=1),
    "401": Fault(refuses(401), "modelAuth", tries=1),
    "404": Fault(refuses(404, error="model_not_found"), "modelNotFound", tries=1),
    "a web page": Fault(Reply([Raw(b"<!doctype html>"), EOF], 200, {"content-type": "text/html"}), "modelBadStream"),
    "no headers": Fault(Reply(before_head=[Stall()]), "modelTimeout", tries=1, endpoint="brief"),
    "a reset in place of headers": Fault(Reply(before_head=[CUT]), "modelUnavailable"),
    "an event without end": Fault(ends(*[Raw(b"x" * (1 << 20))] * 66, EOF), "modelBadStream"),
    "a redirect to another host": Fault(refuses(307), "modelUnavailable", tries=1),
    "a port where nobody is": Fault(Reply(), "modelUnavailable", tries=0, endpoint="refused"),
    "a name that does not resolve": Fault(Reply(), "modelUnavailable", tries=0, endpoint="nowhere"),
    "no TLS": Fault(Reply(), "modelUnavailable", tries=0, endpoint="tls"),
}
"""What can only come instead of a stream."""

CELLS = [
    pytest.param(fault, moment, id=f"{name}, {moment}")
    for faults, moments in ((MID_STREAM, list(MOMENTS)), (BEFORE, ["before the first delta"]))
    for name, fault in faults.items()
    for moment in moments
]


# ---- the sidecar that bears them ---------------------------------------------------------------------------------


@dataclass
class Scene:
    """One sidecar for all cells: what a fault leaves behind, the next cell finds."""

    host: FakeHost
    model: FakeModel
    elsewhere: FakeModel
    """Another host, which must never hear of the key."""
    replies: dict[str, Sequence[Reply]] = field(default_factory=dict[str, Sequence[Reply]])


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def scene(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Scene]:
    """A sidecar and its endpoints: a good one, the same with short limits, and three that are nowhere."""
    folder: Path = tmp_path_factory.mktemp("faults")
    async with FakeModel() as model, FakeModel() as elsewhere:
        port = model.url.partition("127.0.0.1:")[2]
        places = {
            "mine": model.url,
            "brief": model.url,
            "refused": "http://127.0.0.1:9/v1",
            "nowhere": "http://no-such-host.invalid/v1",
            "tls": f"https://127.0.0.1:{port}",
        }
        lines = ['default_model = "mine:fake"']
        for name, url in places.items():
            idle, total = (BRIEF_IDLE_S, BRIEF_TOTAL_S) if name == "brief" else (IDLE_S, TOTAL_S)
            lines += [
                f"[endpoints.{name}]",
                f'type = "openai"\nbase_url = "{url}"\napi_key_env = "FAULTS_KEY"\nmax_retries = {RETRIES}',
                f"connect_timeout_ms = {CONNECT_S * 1000:.0f}\nidle_timeout_ms = {idle * 1000:.0f}",
                f"total_timeout_ms = {total * 1000:.0f}",
            ]
        config = folder / "sidecar.toml"
        config.write_text("\n".join(lines))
        async with FakeHost(args=("--config", str(config)), env={"FAULTS_KEY": KEY}, cwd=folder) as host:
            yield Scene(host, model, elsewhere)


@pytest.mark.parametrize(("fault", "moment"), CELLS)
async def test_a_fault_of_the_endpoint_ends_the_run_once_and_the_next_is_fine(
    scene: Scene, fault: Fault, moment: str
) -> None:
    host, model = scene.host, scene.model
    session = await host.create_session()
    model.otherwise(lambda request: ["good"])
    await session.run("first")
    reply = Reply(
        [*MOMENTS[moment], *fault.reply.pieces],
        fault.reply.status,
        {**fault.reply.headers, "location": f"{scene.elsewhere.url}/chat/completions"},
        fault.reply.before_head,
    )
    model.otherwise(lambda request: reply)
    seen = len(model.requests)
    run = session.start("what is my total?", options={"model": f"{fault.endpoint}:fake"})

    with pytest.raises(RpcError) as failure:
        async with asyncio.timeout((1 + RETRIES) * TOTAL_S):
            await run.result()

    assert failure.value.kind == fault.kind
    (completed,) = run.events("run.completed")
    assert completed["data"]["status"] == "failed"
    assert completed["data"]["error"]["data"] == failure.value.data
    handed_on = moment == "mid-text"
    tries = 1 if handed_on else fault.tries
    assert len(model.requests) - seen == tries
    assert run.text() == ("Your total is" if handed_on else "")
    if fault.tries:
        assert [event["data"]["willRetry"] for event in run.events("warning")] == [True] * (tries - 1)
    assert scene.elsewhere.connections == 0
    assert scene.elsewhere.requests == scene.elsewhere.other_requests == []
    assert KEY not in json.dumps(host.messages[-200:]) + host.stderr.decode()

    model.otherwise(lambda request: ["better"])
    assert (await session.run("again"))["text"] == "better"
    assert [text["content"] for text in model.last_request.messages if text["role"] != "system"] == [
        "first",
        "good",
        "again",
    ]


# ---- BR-16: silence ----------------------------------------------------------------------------------------------

SILENT: dict[str, Reply] = {
    "a": Reply([T("a"), Stall()]),
    "b": Reply(before_head=[Stall()]),
    "c": Reply([T("a"), Ping(0.05)]),
    "d": Reply([T("a"), Stall()]),
}


async def test_silence_of_every_kind_leaves_no_task_and_no_socket_behind(scene: Scene) -> None:
    """(a) in mid-text, (b) before the headers, (c) behind comments, (d) cancelled by the host before its limit."""
    host, model = scene.host, scene.model
    model.otherwise(lambda request: SILENT[request.last_user_text])
    sessions = [await host.create_session() for _ in SILENT]
    await all_silent(scene, sessions)
    connections, before = model.connections, descriptors(host.process.pid)
    for _ in range(max(1, scaled(20) // len(SILENT))):
        await all_silent(scene, sessions)
    async with asyncio.timeout(SLACK):
        while model.connections > connections:
            await host.request("getState")
    assert descriptors(host.process.pid) <= before
    assert (await host.request("getState"))["server"]["activeRuns"] == 0


async def all_silent(scene: Scene, sessions: Sequence[Any]) -> None:
    """One run of each kind, at once."""
    runs = dict(
        zip(
            SILENT,
            [
                session.start(kind, options={"model": "brief:fake"})
                for session, kind in zip(sessions, SILENT, strict=True)
            ],
            strict=True,
        )
    )
    await runs["d"].text_contains("a")
    async with asyncio.timeout(1 * SLACK):
        assert await runs["d"].session.cancel() == "cancelling"
        assert (await runs["d"].result())["status"] == "cancelled"
    for kind in "abc":
        with pytest.raises(RpcError) as failure:
            async with asyncio.timeout(3 * SLACK):
                await runs[kind].result()
        assert (kind, failure.value.kind, failure.value.data["retryable"]) == (kind, "modelTimeout", True)
    assert all(len(run.events("run.completed")) == 1 for run in runs.values())
