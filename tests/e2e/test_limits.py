"""The limits of the contract, each on both sides: which test holds which, and those of messages, pages and queues."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest

from sidecar.config.endpoints import EndpointConfig
from sidecar.config.limits import Limits
from sidecar.config.unavailable import UNAVAILABLE
from tests.bench.fake_model import FakeModel, Stall, T
from tests.bench.host import FakeHost, HostRun, RpcError
from tests.bench.limited import limited

TESTS: Final = Path(__file__).parents[1]
HERE: Final = "e2e/test_limits.py"
RUNS: Final = "e2e/test_run_limits.py"
PRESSURE: Final = "e2e/test_backpressure.py"
ENDPOINT: Final = "inprocess/test_openai_chat_faults.py"
ROWS: Final = {
    "max_message_bytes": "e2e/test_br_sizes.py::test_a_message_over_the_cap_is_refused_and_the_next_is_served",
    "max_outbound_bytes": f"{HERE}::test_an_answer_over_the_outbound_limit_is_refused_to_the_byte",
    "page_bytes": f"{HERE}::test_pages_are_cut_by_bytes_and_hold_at_least_one_item",
    "max_header_bytes": f"{HERE}::test_a_header_block_over_its_limit_is_refused_to_the_byte",
    "max_json_depth": f"{HERE}::test_a_message_that_is_nested_too_deep_is_a_parse_error",
    "max_in_flight": f"{HERE}::test_requests_over_the_number_in_flight_are_refused_until_one_is_answered",
    "max_queued_runs": f"{HERE}::test_runs_over_the_queue_of_a_session_are_refused",
    "max_queued_runs_total": f"{HERE}::test_runs_over_the_queues_of_all_sessions_are_refused",
    "writer_drain_bytes": f"{PRESSURE}::test_a_client_that_does_not_read_pauses_its_run_and_gets_fewer_deltas",
    "writer_pause_bytes": f"{PRESSURE}::test_above_the_pause_mark_nothing_more_is_read_until_the_client_reads",
    "writer_cap_bytes": f"{PRESSURE}::test_a_client_that_leaves_more_than_the_cap_unread_is_gone",
    "writer_stuck_ms": f"{PRESSURE}::test_a_client_that_takes_nothing_for_too_long_is_gone",
    "run_timeout_ms": f"{RUNS}::test_a_run_that_names_no_time_ends_at_the_configured_one",
    "max_turns": f"{RUNS}::test_the_model_is_called_as_often_as_configured_and_once_more_without_tools",
    "max_tool_calls": f"{RUNS}::test_calls_over_the_number_of_one_answer_get_an_error_result",
    "truncated_call_rounds": f"{RUNS}::test_truncated_calls_are_borne_as_often_as_configured",
    "delegation_depth": "e2e/test_delegation.py::test_two_agents_may_call_each_other_down_to_the_limit",
    "tool_timeout_ms": "e2e/test_tool_limits.py::test_a_tool_has_its_time",
    "tool_result_bytes": "e2e/test_tool_limits.py::test_a_result_over_its_limit_is_cut_with_a_note",
    "middleware_timeout_ms": "e2e/test_tool_limits.py"
    "::test_middleware_has_a_time_of_its_own_and_the_tool_s_is_not_counted",
    "provider_timeout_ms": f"{RUNS}::test_a_hook_that_takes_longer_than_configured_fails_the_run",
    "retrieval_timeout_ms": f"{RUNS}::test_a_hook_that_takes_longer_than_configured_fails_the_run",
    "page_default": f"{HERE}::test_pages_have_the_configured_lengths",
    "page_max": f"{HERE}::test_pages_have_the_configured_lengths",
    "history_cache_bytes": "inprocess/test_transcript.py::test_a_history_is_kept_up_to_its_limit_only",
    "connect_timeout_ms": f"{ENDPOINT}::test_an_endpoint_that_cannot_be_reached_in_time_is_a_time_out",
    "idle_timeout_ms": f"{ENDPOINT}::test_silence_ends_by_the_idle_limit_and_closes_the_socket",
    "total_timeout_ms": f"{ENDPOINT}::test_a_stream_that_never_ends_ends_by_the_total_limit",
    "ids": f"{HERE}::test_ids_have_a_longest_length",
}
"""What is limited, by its key, and the test that holds it."""

Start = Callable[..., Any]


def test_every_limit_that_can_be_set_is_tested_here_or_somewhere_else_that_exists() -> None:
    later = {row.path[1] for row in UNAVAILABLE if row.path[0] == "limits"}
    of_endpoints = {name for name in EndpointConfig.model_fields if name.endswith("_timeout_ms")}

    assert ROWS.keys() == (Limits.model_fields.keys() - later) | of_endpoints | {"ids"}
    for row in ROWS.values():
        file, _, name = row.partition("::")
        assert re.search(rf"^(async )?def {name}\(", (TESTS / file).read_text(encoding="utf-8"), re.MULTILINE), row


# ---- messages ----------------------------------------------------------------------------------------------------


async def test_an_answer_over_the_outbound_limit_is_refused_to_the_byte(
    start_host: Start, model: FakeModel, tmp_path: Path
) -> None:
    most = 65_536
    host: FakeHost = await start_host(args=limited(tmp_path, max_outbound_bytes=most), env=model.environment)
    session = await host.create_session()
    model.otherwise(lambda _: ["ok"])

    def page(position: int) -> dict[str, Any]:
        return {"sessionId": session.id, "limit": 1, "cursor": str(position)}

    await session.run("first")  # positions 1 and 2; the inputs that follow stand at 3, 5, 7
    await session.run("x" * 60_000)
    answer = await host.ask("getHistory", page(2)).message()
    room = most - len(json.dumps(answer, ensure_ascii=False, separators=(",", ":")))
    for more in (room, room + 1, 0):
        await session.run("x" * (60_000 + more))

    assert "result" in await host.ask("getHistory", page(4)).message()
    refused = await host.refusal("getHistory", page(6))
    assert (refused.kind, refused.data["limit"]) == ("messageTooLarge", most)
    assert "result" in await host.ask("getHistory", page(8)).message()


async def test_a_header_block_over_its_limit_is_refused_to_the_byte(start_host: Start, tmp_path: Path) -> None:
    host: FakeHost = await start_host(framing="header", args=limited(tmp_path, max_header_bytes=100))
    body = b'{"jsonrpc":"2.0","id":7,"method":"getState"}'

    def frame(header_bytes: int) -> bytes:
        length = b"Content-Length: %d\r\n" % len(body)
        pad = b"X-Pad: "
        return pad + b"x" * (header_bytes - len(pad + b"\r\n" + length + b"\r\n")) + b"\r\n" + length + b"\r\n" + body

    assert (await host.exchange(frame(100)))["id"] == 7
    refused = await host.exchange(frame(101))
    assert (refused["id"], refused["error"]["code"]) == (None, -32700)
    assert "exceeds 100 bytes" in refused["error"]["message"]
    assert (await host.exchange(frame(100)))["id"] == 7


async def test_a_message_that_is_nested_too_deep_is_a_parse_error(start_host: Start, tmp_path: Path) -> None:
    host: FakeHost = await start_host(args=limited(tmp_path, max_json_depth=20))

    def get_state(depth: int) -> bytes:
        pad = b"[" * (depth - 2) + b"1" + b"]" * (depth - 2)  # the message and its params are two levels
        return b'{"jsonrpc":"2.0","id":7,"method":"getState","params":{"pad":%b}}\n' % pad

    assert "result" in await host.exchange(get_state(20))
    refused = await host.exchange(get_state(21))
    assert (refused["id"], refused["error"]["code"]) == (None, -32700)
    assert "deeper than 20 levels" in refused["error"]["message"]


async def test_ids_have_a_longest_length(host: FakeHost) -> None:
    provider = {"type": "static_messages", "config": {"messages": [{"role": "user", "content": "x"}]}}
    longest = "i" * 256

    session = await host.create_session(
        sessionId=longest, model="scripted:echo", contextProviders=[{**provider, "sourceId": longest}]
    )
    assert (await session.run("hi", runId=longest))["runId"] == longest

    for method, params in (
        ("createSession", {"sessionId": longest + "i"}),
        ("run", {"sessionId": longest, "input": "hi", "runId": longest + "i"}),
    ):
        assert (await host.refusal(method, params)).code == -32602
    entry = {**provider, "sourceId": longest + "i"}
    assert (await host.refusal("createSession", {"contextProviders": [entry]})).kind == "configInvalid"


# ---- pages -------------------------------------------------------------------------------------------------------


async def test_pages_have_the_configured_lengths(start_host: Start, tmp_path: Path) -> None:
    host: FakeHost = await start_host(args=limited(tmp_path, page_default=2, page_max=3))
    session = await host.create_session(model="scripted:echo")
    for _ in range(3):
        await session.run("hi")
        await host.create_session()

    for method, params, items in (
        ("getHistory", {"sessionId": session.id}, "messages"),
        ("getEvents", {"sessionId": session.id, "afterSeq": 0}, "events"),
        ("listSessions", {}, "sessions"),
    ):

        async def page(method: str = method, items: str = items, **fields: Any) -> int:
            return len((await host.request(method, fields))[items])

        assert await page(**params) == 2
        assert await page(**params, limit=1) == 1
        assert await page(**params, limit=3) == 3
        assert await page(**params, limit=4) == 3
        assert await page(**params, limit=10**9) == 3


async def test_pages_are_cut_by_bytes_and_hold_at_least_one_item(
    start_host: Start, model: FakeModel, tmp_path: Path
) -> None:
    host: FakeHost = await start_host(args=limited(tmp_path, page_bytes=4096), env=model.environment)
    model.otherwise(lambda _: ["ok"])
    session = await host.create_session(metadata={"pad": "x" * 1000})
    for size in (100, 100, 5000, 100):
        await session.run("x" * size)
    for size in (1000, 5000, 1000):
        await host.create_session(metadata={"pad": "x" * size})

    history = await pages(host, "getHistory", "messages", sessionId=session.id)
    events = await pages(host, "getEvents", "events", sessionId=session.id)
    sessions = await pages(host, "listSessions", "sessions")

    for found in (history, events, sessions):
        assert len(found) > 1
        assert max(len(page) for page in found) > 1, "what is small shares a page"
        for page in found:
            assert len(page) == 1 or size_of(page) < 4096 * 1.5, "the envelope of an item is not counted"
    assert [len(page) for page in sessions] == [1, 1, 2]
    assert sum(map(len, history)) == 8
    assert [event["seq"] for page in events for event in page] == [event["seq"] for event in session.durable()]

    seen = len(session.durable())
    await host.request("resumeSession", {"sessionId": session.id, "replayFrom": {"type": "start"}})
    await host.until(lambda: len(session.durable()) == 2 * seen)
    live, replayed = session.durable()[:seen], session.durable()[seen:]
    assert [event["data"] for event in replayed] == [event["data"] for event in live]


async def pages(host: FakeHost, method: str, items: str, **params: Any) -> list[list[Any]]:
    """All pages of a list."""
    found: list[list[Any]] = []
    cursor: dict[str, Any] = {"afterSeq": 0} if method == "getEvents" else {}
    while True:
        page = await host.request(method, {**params, **cursor})
        found.append(page[items])
        if method == "getEvents" and page["hasMore"]:
            cursor = {"afterSeq": page["lastSeq"]}
        elif "nextCursor" in page:
            cursor = {"cursor": page["nextCursor"]}
        else:
            return found


def size_of(value: Any) -> int:
    """Its length as JSON, in characters."""
    return len(json.dumps(value, separators=(",", ":")))


# ---- work in progress --------------------------------------------------------------------------------------------


async def test_requests_over_the_number_in_flight_are_refused_until_one_is_answered(
    start_host: Start, model: FakeModel, tmp_path: Path
) -> None:
    host: FakeHost = await start_host(args=limited(tmp_path, max_in_flight=2), env=model.environment)
    sessions = [await host.create_session() for _ in range(2)]
    model.otherwise(lambda _: [T("a"), Stall()])
    runs = [session.start("go") for session in sessions]
    for run in runs:
        await run.text_contains("a")

    refused = await host.refusal("getState")
    assert (refused.code, refused.kind, refused.data["retryable"]) == (4040, "overloaded", True)
    assert refused.data["retryAfterMs"] > 0

    runs[0].asked.cancel()
    assert (await runs[0].result())["status"] == "cancelled"
    assert await sessions[1].cancel() == "cancelling"
    assert (await runs[1].result())["status"] == "cancelled"


async def test_a_full_sidecar_can_be_told_to_stop_a_run_and_to_shut_down(
    start_host: Start, model: FakeModel, tmp_path: Path
) -> None:
    host: FakeHost = await start_host(args=limited(tmp_path, max_in_flight=2), env=model.environment)
    sessions = [await host.create_session() for _ in range(2)]
    model.otherwise(lambda _: [T("a"), Stall()])

    async def full() -> list[HostRun]:
        runs = [session.start("go") for session in sessions]
        for run in runs:
            await run.text_contains("a")
        assert (await host.refusal("getState")).kind == "overloaded"
        return runs

    for run in await full():
        assert await run.session.cancel(runId=run.id) == "cancelling"
        assert (await run.result())["status"] == "cancelled"
    runs = await full()
    assert await host.request("shutdown") is None
    assert [(await run.result())["status"] for run in runs] == ["interrupted"] * 2


async def test_runs_over_the_queue_of_a_session_are_refused(
    start_host: Start, model: FakeModel, tmp_path: Path
) -> None:
    await queue_is_full(start_host, model, limited(tmp_path, max_queued_runs=1), same_session=True)


async def test_runs_over_the_queues_of_all_sessions_are_refused(
    start_host: Start, model: FakeModel, tmp_path: Path
) -> None:
    await queue_is_full(start_host, model, limited(tmp_path, max_queued_runs_total=1), same_session=False)


async def queue_is_full(start_host: Start, model: FakeModel, args: tuple[str, ...], *, same_session: bool) -> None:
    """One run may wait; the next is refused, and its id can be used again when there is room."""
    host: FakeHost = await start_host(args=args, env=model.environment)
    one, two = await host.create_session(), await host.create_session()
    model.otherwise(lambda _: [T("a"), Stall()])
    working = [session.start("go") for session in (one, two)]
    for run in working:
        await run.text_contains("a")
    waiting = one.start("wait", whenBusy="queue")
    await waiting.event("run.queued")
    other = one if same_session else two

    with pytest.raises(RpcError) as refused:
        await other.run("too many", whenBusy="queue", runId="r")

    assert (refused.value.kind, refused.value.data["retryable"]) == ("overloaded", True)
    assert refused.value.data["retryAfterMs"] > 0
    assert [event for event in other.events() if event.get("runId") == "r"] == []
    await one.cancel(runId=waiting.id)
    await waiting.result()
    again = other.start("there is room", whenBusy="queue", runId="r")
    await again.event("run.queued")
    for run in (again, *working):
        await run.session.cancel(runId=run.id)
        assert (await run.result())["status"] == "cancelled"


# ---- what initialize tells ---------------------------------------------------------------------------------------


async def test_initialize_tells_the_limits_that_count(
    start_host: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    defaults = {"maxMessageBytes": 64 << 20, "maxQueuedRuns": 16, "maxInFlight": 4096}
    assert told(await start_host()) == defaults

    users = tmp_path / "agent-sidecar" / "sidecar.toml"
    users.parent.mkdir()
    users.write_text("limits.max_in_flight = 9\n")
    assert told(await start_host()) == {**defaults, "maxInFlight": 9}
    args = limited(tmp_path, max_message_bytes=70_000, max_queued_runs=3)
    changed = {"maxMessageBytes": 70_000, "maxQueuedRuns": 3, "maxInFlight": 9}
    assert told(await start_host(args=args)) == changed


def told(host: FakeHost) -> Any:
    """The limits in the answer to `initialize`."""
    return host.messages[0]["result"]["capabilities"]["experimental"]["sidecar"]["limits"]
