"""BR-14: a model stream that just stops is a failure, whatever it looks like; its text is kept as partial."""

from typing import Any

import pytest

from tests.bench.fake_model import CUT, DONE, EOF, FakeModel, Item, Raw, Reply, T
from tests.bench.host import RpcError
from tests.bench.stored import stored_run

ENDINGS: dict[str, tuple[list[Item], str]] = {
    "a clean end without a finish reason": ([T("Your total is 4"), EOF], "Your total is 4"),
    "DONE without a finish reason": ([T("Your total is 4"), DONE], "Your total is 4"),
    "no chunk at all": ([EOF], ""),
    "only DONE": ([DONE], ""),
    "a reset in mid-text": ([T("Your to"), CUT], "Your to"),
}
PAGE = Reply([Raw(b"<!doctype html><title>Welcome</title>"), EOF], 200, {"content-type": "text/html"})


@pytest.mark.parametrize(("items", "text"), ENDINGS.values(), ids=ENDINGS)
async def test_a_stream_without_an_ending_fails_the_run(
    start_host: Any, model: FakeModel, store: str, items: list[Item], text: str
) -> None:
    await fails_as_a_bad_stream(start_host, model, store, Reply(list(items)), text)


async def test_a_web_page_in_place_of_a_stream_fails_the_run(start_host: Any, model: FakeModel, store: str) -> None:
    await fails_as_a_bad_stream(start_host, model, store, PAGE, "")


async def fails_as_a_bad_stream(start_host: Any, model: FakeModel, store: str, reply: Reply, text: str) -> None:
    """One failed end in event and answer, partial text in the record alone, and the session goes on."""
    host = await start_host(store=store, env=model.environment)
    session = await host.create_session(sessionId="s")
    model.says("fine")
    await session.run("first")
    model.otherwise(lambda request: reply)

    with pytest.raises(RpcError) as failure:
        await session.run("what is my total?", runId="r")

    assert (failure.value.code, failure.value.kind, failure.value.data["retryable"]) == (4038, "modelBadStream", True)
    (completed,) = [event for event in session.events("run.completed") if event["runId"] == "r"]
    assert (completed["data"]["status"], completed["data"]["stopReason"]) == ("failed", "error")
    assert completed["data"]["error"]["data"] == failure.value.data
    assert "".join(e["data"]["text"] for e in session.events("message.delta") if e["runId"] == "r") == text
    if text:
        assert len(model.requests) == 2, "a retry after a delta was sent"
    assert await session.history() == [("user", "first"), ("assistant", "fine")]
    assert (await session.state(runId="r"))["run"]["error"]["data"]["kind"] == "modelBadStream"

    model.otherwise(lambda request: ["better"])
    assert (await session.run("again"))["text"] == "better"
    assert [message["content"] for message in model.last_request.messages if message["role"] != "system"] == [
        "first",
        "fine",
        "again",
    ]
    host.hang_up()
    assert await host.wait() == 0
    record = await stored_run(store, "s", "r")
    assert record["status"] == "failed"
    if text:
        assert record["partial"]["partial"] is True
        assert record["partial"]["content"] == [{"type": "text", "text": text}]
    else:
        assert "partial" not in record
