"""LSP's own ways to follow a run: `$/progress` by token, its cancel, and the trace of requests."""

from typing import Any

import pytest

from tests.bench.fake_model import FakeModel, Stall, T
from tests.bench.host import FakeHost


def progress(host: FakeHost, token: int | str) -> list[dict[str, Any]]:
    """The values of one token's progress."""
    found = [message["params"] for message in host.messages if message.get("method") == "$/progress"]
    return [params["value"] for params in found if (type(params["token"]), params["token"]) == (type(token), token)]


async def test_a_work_done_token_is_told_begin_reports_and_end(host: FakeHost) -> None:
    session = await host.create_session(model="scripted:echo")

    run = session.start("hello", workDoneToken="t", stream=False)
    await run.result()

    values = progress(host, "t")
    assert [value["kind"] for value in values] == ["begin", *["report"] * (len(values) - 2), "end"]
    assert values[0]["cancellable"] is True
    assert values[0]["title"]
    last = max(i for i, message in enumerate(host.messages) if message.get("method") == "$/progress")
    assert last < next(i for i, message in enumerate(host.messages) if message.get("id") == run.asked.id)


async def test_a_partial_result_token_gets_the_text_as_it_comes(start_host: Any, model: FakeModel) -> None:
    host = await start_host(env=model.environment)
    session = await host.create_session()
    model.says(T("Once "), T("upon"), T(" a time"))

    await session.run("go", partialResultToken=7, stream=False)

    values = progress(host, 7)
    assert "".join(value["text"] for value in values) == "Once upon a time"
    assert all(set(value) == {"text"} for value in values)  # a foreign `kind` makes generic clients raise
    assert session.events("message.delta") == []


async def test_without_tokens_there_is_no_progress(host: FakeHost) -> None:
    session = await host.create_session(model="scripted:echo")
    await session.run("hello")

    assert not [message for message in host.messages if message.get("method") == "$/progress"]


@pytest.mark.parametrize("token", ["t", 7])
async def test_cancelling_the_progress_cancels_the_run(start_host: Any, model: FakeModel, token: int | str) -> None:
    host = await start_host(env=model.environment)
    session = await host.create_session()
    model.says(T("a"), Stall())
    run = session.start("go", workDoneToken=token)
    await run.text_contains("a")

    for wrong in ("other", str(token) if isinstance(token, int) else 0, None, [token]):
        host.notify("window/workDoneProgress/cancel", {"token": wrong})
    host.notify("window/workDoneProgress/cancel", [])
    assert (await session.state())["activeRun"]["runId"] == run.id
    host.notify("window/workDoneProgress/cancel", {"token": token})

    assert (await run.result())["stopReason"] == "cancelled"
    assert progress(host, token)[-1] == {"kind": "end", "message": "cancelled"}


async def test_cancelling_the_progress_of_a_queued_run_ends_it(start_host: Any, model: FakeModel) -> None:
    host = await start_host(env=model.environment)
    session = await host.create_session()
    model.says(T("a"), Stall())
    first = session.start("one")
    await first.text_contains("a")
    second = session.start("two", whenBusy="queue", workDoneToken="t", wait="accepted")
    await second.result()

    host.notify("window/workDoneProgress/cancel", {"token": "t"})

    assert (await second.event("run.completed"))["data"]["status"] == "cancelled"
    assert progress(host, "t") == []  # it never began
    await session.cancel()
    await first.result()


# ---- trace --------------------------------------------------------------------------------------------------------


def traced(host: FakeHost) -> list[dict[str, Any]]:
    """The params of `$/logTrace` so far."""
    return [message["params"] for message in host.messages if message.get("method") == "$/logTrace"]


async def test_a_trace_tells_of_requests_and_answers_and_never_what_is_in_them(host: FakeHost) -> None:
    session = await host.create_session(model="scripted:echo")
    assert traced(host) == []

    host.notify("$/setTrace", {"value": "messages"})
    run = session.start("a secret")
    await run.result()
    await host.refusal("getState", {"sessionId": "nobody"})

    messages = [params["message"] for params in traced(host)]
    words = ("received", "response", "received", "error")
    assert all(word in message for word, message in zip(words, messages, strict=True))
    assert all(f"'run - ({run.asked.id})'" in message for message in messages[:2])
    assert "secret" not in str(traced(host))
    assert all(set(params) == {"message"} for params in traced(host))


async def test_a_verbose_trace_names_errors_and_off_is_off(start_host: Any) -> None:
    host = await start_host(initialize={"trace": "verbose"})
    await host.refusal("getState", {"sessionId": "nobody"})
    assert traced(host)[-1]["verbose"] == "sessionNotFound"

    for odd in ({"value": "off"}, {"value": "loud"}, {}, [], None):
        host.notify("$/setTrace", odd)
    before = len(traced(host))
    await host.request("getState")

    assert len(traced(host)) == before
