"""BR-01 and BR-02: text is counted in UTF-8 bytes, and a big message costs nobody anything."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.bench.fake_model import Chunk, F, FakeModel, Raw, Stall, T
from tests.bench.host import FakeHost, RpcError
from tests.bench.wire import Framing, encode

BOTH: tuple[Framing, ...] = ("ndjson", "header")
KIB, MIB = 1 << 10, 1 << 20


def get_state(size: int, request_id: int = 5) -> bytes:
    """A `getState` of exactly so many bytes."""
    head, tail = b'{"jsonrpc":"2.0","id":%d,"method":"getState","params":{"pad":"' % request_id, b'"}}'
    return head + b"x" * (size - len(head) - len(tail)) + tail


def framed(framing: Framing, body: bytes) -> bytes:
    """One message."""
    return b"Content-Length: %d\r\n\r\n%b" % (len(body), body) if framing == "header" else body + b"\n"


# ---- BR-01 -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("framing", BOTH)
async def test_any_text_is_the_same_in_events_history_and_after_a_restart(
    start_host: Any, model: FakeModel, store: str, framing: Framing
) -> None:
    host = await start_host(framing=framing, store=store, env=model.environment)
    session = await host.create_session(sessionId="s")
    model.says(T("好的 ✅"), F("stop"), cut_every=1)
    params = {"sessionId": "s", "input": "饺子 🥟 naïve", "runId": "r"}
    message = encode({"jsonrpc": "2.0", "id": 1, "method": "run", "params": params}, framing)
    for byte in message:  # a pause inside each character
        host.write(bytes([byte]))
        await host.process.stdin.drain()
        await asyncio.sleep(0)
    (answer,) = await host.until(lambda: [m for m in host.messages if m.get("id") == 1])

    assert answer["result"]["text"] == "好的 ✅"
    assert model.last_request.last_user_text == "饺子 🥟 naïve"
    assert [e["data"]["content"][0]["text"] for e in session.events("message.completed")] == [
        "饺子 🥟 naïve",
        "好的 ✅",
    ]
    assert "".join(e["data"]["text"] for e in session.events("message.delta")) == "好的 ✅"
    told = [("user", "饺子 🥟 naïve"), ("assistant", "好的 ✅")]
    assert await session.history() == told
    host.kill()
    await host.wait()
    again = await start_host(framing=framing, store=store, env=model.environment)
    assert await (await again.resume_session("s")).history() == told


async def test_half_of_a_surrogate_pair_is_replaced_once_and_the_session_lives(
    start_host: Any, model: FakeModel, store: str
) -> None:
    host = await start_host(store=store, env=model.environment)
    session = await host.create_session(sessionId="s")
    lone = rb'data: {"choices":[{"index":0,"delta":{"content":"bad \udc88 tail"}}]}' + b"\n\n"
    model.says(Raw(lone), F("stop"))
    host.write(rb'{"jsonrpc":"2.0","id":1,"method":"run","params":{"sessionId":"s","input":"half \ud83e"}}' + b"\n")
    (answer,) = await host.until(lambda: [m for m in host.messages if m.get("id") == 1])

    assert answer["result"]["text"] == "bad \ufffd tail"
    told = [("user", "half \ufffd"), ("assistant", "bad \ufffd tail")]
    assert await session.history() == told
    host.kill()
    await host.wait()
    again = await start_host(store=store, env=model.environment)
    session = await again.resume_session("s")
    assert await session.history() == told
    model.says("good")
    await session.run("next")
    assert [message["content"] for message in model.last_request.messages if message["role"] != "system"] == [
        "half \ufffd",
        "bad \ufffd tail",
        "next",
    ]


# ---- BR-02 -------------------------------------------------------------------------------------------------------


async def test_big_inputs_on_four_sessions_at_once_are_whole_and_leave_no_memory_behind(
    start_host: Any, model: FakeModel, store: str
) -> None:
    host = await start_host(store=store, env=model.environment)
    model.otherwise(lambda request: [f"{len(request.last_user_text)}"])
    sizes = (64 * KIB - 1, 64 * KIB + 1, MIB, 16 * MIB)
    sessions = [await host.create_session() for _ in sizes]
    await asyncio.gather(*(session.run("warm up") for session in sessions))
    before = await memory(host)

    runs = [session.start("x" * size) for session, size in zip(sessions, sizes, strict=True)]

    assert [(await run.result())["text"] for run in runs] == [str(size) for size in sizes]
    for session in sessions:
        await host.request("closeSession", {"sessionId": session.id})
    async with asyncio.timeout(10):
        while await memory(host) > before + 50 * MIB:
            await host.request("listSessions")


async def memory(host: FakeHost) -> int:
    """Resident bytes of the sidecar."""
    return (await host.request("getState"))["server"]["rssBytes"]


async def test_one_delta_of_two_mebibytes_is_one_delta(start_host: Any, model: FakeModel) -> None:
    host = await start_host(env=model.environment)
    session = await host.create_session()
    text = "ü" * MIB
    model.says(Chunk({"choices": [{"index": 0, "delta": {"content": text}}]}), F("stop"))

    result = await session.run("go")

    assert result["text"] == text
    assert "".join(e["data"]["text"] for e in session.events("message.delta")) == text
    assert await session.history() == [("user", "go"), ("assistant", text)]


@pytest.mark.parametrize("framing", BOTH)
async def test_a_message_over_the_cap_is_refused_and_the_next_is_served(
    start_host: Any, model: FakeModel, tmp_path: Path, framing: Framing
) -> None:
    config = tmp_path / "small.toml"
    config.write_text("[limits]\nmax_message_bytes = 65536\n")
    host = await start_host(framing=framing, args=("--config", str(config)), env=model.environment)
    session = await host.create_session()
    model.says(T("a"), Stall(0.1), T("b"))
    run = session.start("other sessions do not notice")
    await run.text_contains("a")
    await at_both_sides_of_the_cap(host, 64 * KIB)

    unread = framed(
        framing, b'{"params":{"pad":"' + b"x" * 64 * KIB + b'"},"id":5,"jsonrpc":"2.0","method":"getState"}'
    )
    assert (await host.exchange(unread))["id"] is None
    assert (await run.result())["text"] == "ab"


async def test_the_cap_is_64_mebibytes(host: FakeHost) -> None:
    await at_both_sides_of_the_cap(host, 64 * MIB)


async def at_both_sides_of_the_cap(host: FakeHost, cap: int) -> None:
    """At the cap a message is served; one byte over it is refused, with its id, and what follows at once is served."""
    assert "result" in await host.exchange(framed(host.framing, get_state(cap)))
    count = len(host.messages)
    host.write(framed(host.framing, get_state(cap + 1)) + framed(host.framing, get_state(200, request_id=6)))
    await host.until(lambda: len(host.messages) == count + 2)
    refused, served = host.messages[-2:]
    assert (refused["id"], refused["error"]["code"], refused["error"]["data"]["kind"]) == (5, 4041, "messageTooLarge")
    assert refused["error"]["data"]["limit"] == cap
    assert served["id"] == 6
    assert "result" in served


async def test_pages_fit_the_client_and_what_cannot_is_refused_by_name(start_host: Any) -> None:
    options = {"initializationOptions": {"sidecar": {"maxMessageBytes": 65536}}}
    host: FakeHost = await start_host(initialize=options)
    session = await host.create_session(model="scripted:echo")
    for _ in range(6):
        await session.run("x" * 10_000, stream=False)

    pages: list[int] = []
    cursor: dict[str, str] | None = {}
    while cursor is not None:
        page = await host.request("getHistory", {"sessionId": session.id, **cursor})
        pages.append(len(page["messages"]))
        cursor = {"cursor": page["nextCursor"]} if "nextCursor" in page else None
    assert sum(pages) == 12
    assert len(pages) > 1
    with pytest.raises(RpcError, match="messageTooLarge") as refused:
        await session.run("x" * 40_000, stream=False)  # the answer holds it twice
    assert refused.value.data["limit"] == 65536
    assert (await session.state())["session"]["status"] == "idle"
