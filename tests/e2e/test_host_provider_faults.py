"""Host providers that fail, are silent, or whose run fails: their policy counts, and each hears of the end once."""

from typing import Any

import pytest

from tests.bench.fake_model import FakeModel, Stall, T
from tests.bench.host import LATER, Refuses, RpcError
from tests.bench.host_provider import AFTER, BEFORE, TIDE, Opener, params_of, user


@pytest.fixture
def open_session(start_host: Any, model: FakeModel) -> Opener:
    return Opener(start_host, model)


FAULTS: list[tuple[Any, str]] = [
    (Refuses(-1, "broken"), "the host failed: broken"),
    (Refuses(-32601, "?"), "the host does not serve this"),
    ({"messages": 5}, "the host's answer has the wrong shape: messages"),
    ({"messages": [user("x") | {"role": "boss"}]}, "the host's answer has the wrong shape: messages.0.role"),
    ({"state": [1]}, "the host's answer has the wrong shape: state"),
    ("yes", "the host's answer has the wrong shape: it is no object"),
    ({"tools": [TIDE, TIDE]}, "'tide'"),
    ({"tools": [TIDE | {"inputSchema": {"$ref": "http://x/y"}}]}, "its tool 'tide': its schema refers to 'http://x/y'"),
    ({"tools": [TIDE | {"inputSchema": {"type": 5}}]}, "its tool 'tide': the schema of a tool is no JSON Schema"),
    ({"tools": [TIDE | {"name": "a b"}]}, "the host's answer has the wrong shape: tools.0"),
]


async def test_what_goes_wrong_before_a_run_fails_it(open_session: Opener, model: FakeModel) -> None:
    answers = iter([answer for answer, _ in FAULTS])
    session = await open_session(lambda params: next(answers))

    for count, (_, why) in enumerate(FAULTS, start=1):
        error = await session.host.refusal("run", {"sessionId": "s", "input": "hello"})
        assert (error.kind, error.data["sourceId"], error.data["phase"]) == ("providerFailed", "notes", "beforeRun")
        assert why in error.message
        hears = params_of(session.host, AFTER)
        assert (len(hears), hears[-1]["error"]["kind"], "response" in hears[-1]) == (count, "providerFailed", False)

    assert model.requests == []


async def test_or_leaves_it_out_with_a_warning(open_session: Opener, model: FakeModel) -> None:
    answers = iter([answer for answer, _ in FAULTS])
    session = await open_session(lambda params: next(answers), entry={"onError": "warn"})

    for _, why in FAULTS:
        model.says("all the same")
        run = session.start("hello")
        result = await run.result()
        assert result["text"] == "all the same"
        assert [(one["kind"], one["sourceId"]) for one in result["warnings"]] == [("providerFailed", "notes")]
        assert why in result["warnings"][0]["message"]
        (failed,) = run.events("provider.failed")
        assert (failed["data"]["phase"], why in failed["data"]["error"]["message"]) == ("beforeRun", True)
        assert [event["data"]["by"] for event in run.events("request.resolved")] == ["client", "client"]


@pytest.mark.parametrize("policy", ["fail", "warn"])
async def test_silence_is_a_failure_when_the_entry_s_time_is_over(
    open_session: Opener, model: FakeModel, policy: str
) -> None:
    session = await open_session(lambda params: LATER, entry={"timeoutMs": 60, "onError": policy})
    run = session.start("hello")
    if policy == "warn":
        model.says("all the same")
        assert (await run.result())["text"] == "all the same"
    else:
        with pytest.raises(RpcError, match="it took longer than 60 ms"):
            await run.result()

    failed = run.events("provider.failed")[0]["data"]
    assert (failed["phase"], "it took longer than 60 ms" in failed["error"]["message"]) == ("beforeRun", True)
    assert run.events("request.resolved")[0]["data"]["by"] == "timeout"
    (asked,) = session.host.asked(BEFORE)
    assert asked["id"] in [m["params"]["id"] for m in session.host.messages if m.get("method") == "$/cancelRequest"]


@pytest.mark.parametrize("answer", [Refuses(-1, "broken"), {"state": "full"}, LATER])
async def test_what_goes_wrong_after_a_run_costs_no_reply(open_session: Opener, model: FakeModel, answer: Any) -> None:
    session = await open_session({"state": {"n": 1}}, lambda params: answer, entry={"timeoutMs": 1500})
    model.says("yes")

    result = await session.run("hello")

    assert (result["status"], result["text"]) == ("completed", "yes")
    assert [(w["kind"], w["sourceId"]) for w in result["warnings"]] == [("providerFailed", "notes")]
    assert (await session.state())["state"] == {"notes": {"n": 1}}
    assert len(session.host.asked(AFTER)) == 1


async def test_a_failed_run_is_told_once_before_its_answer_and_its_state_is_dropped(
    open_session: Opener, model: FakeModel
) -> None:
    session = await open_session({"state": {"n": 1}}, lambda params: {"state": {"n": 2}})
    model.fails(400)

    with pytest.raises(RpcError) as failed:
        await session.run("hello", functionInvocationKwargs={"k": 1})

    (asked,) = session.host.asked(AFTER)
    assert asked["params"]["error"]["kind"] == failed.value.kind == "modelBadRequest"
    assert asked["params"]["kwargs"] == {"k": 1}
    assert "partialText" not in asked["params"]
    answered = next(i for i, m in enumerate(session.host.messages) if "error" in m)
    assert session.host.messages.index(asked) < answered
    assert (await session.state())["state"] == {}


async def test_a_cancelled_run_is_told_once_with_the_partial_text(open_session: Opener, model: FakeModel) -> None:
    session = await open_session()
    model.says(T("Once upon"), Stall())
    run = session.start("a story")
    await run.text_contains("Once")

    await session.cancel()

    assert (await run.result())["status"] == "cancelled"
    (asked,) = params_of(session.host, AFTER)
    assert asked["partialText"] == "Once upon"
    assert "response" not in asked
    ended = session.events("request.resolved", "run.completed")
    assert [e["type"] for e in ended][-2:] == ["request.resolved", "run.completed"]


async def test_a_run_cancelled_while_its_host_thinks_takes_the_question_back(
    open_session: Opener, model: FakeModel
) -> None:
    session = await open_session(lambda params: LATER)
    run = session.start("hello")
    (asked,) = await session.host.until(lambda: session.host.asked(BEFORE))
    (pending,) = (await session.state())["pendingRequests"]
    assert (pending["kind"], pending["requestId"]) == ("hostProvider", asked["params"]["requestId"])

    await session.cancel()

    assert (await run.result())["status"] == "cancelled"
    taken_back = [m["params"]["id"] for m in session.host.messages if m.get("method") == "$/cancelRequest"]
    assert taken_back == [asked["id"]]
    assert session.events("request.resolved")[0]["data"]["by"] == "cancel"
    assert [set(p) >= {"error"} for p in params_of(session.host, AFTER)] == [True]
    session.host.reply(asked, {"instructions": "late"})
    assert (await session.state())["pendingRequests"] == []


async def test_after_the_end_of_input_it_fails_at_once(open_session: Opener, model: FakeModel) -> None:
    session = await open_session(lambda params: LATER)
    run = session.start("hello")
    await session.host.until(lambda: session.host.asked(BEFORE))

    session.host.hang_up()

    with pytest.raises(RpcError, match="the host has gone"):
        await run.result()
    assert session.events("request.resolved")[0]["data"]["by"] == "disconnect"


async def test_a_failed_run_does_not_wait_long_for_a_host_that_is_silent_about_it(
    open_session: Opener, model: FakeModel
) -> None:
    session = await open_session(None, lambda params: LATER)
    model.fails(400)
    run = session.start("hello")
    (asked,) = await session.host.until(lambda: session.host.asked(AFTER))

    with pytest.raises(RpcError, match="modelBadRequest"):
        await run.result()

    taken_back = [m["params"]["id"] for m in session.host.messages if m.get("method") == "$/cancelRequest"]
    assert taken_back == [asked["id"]]
    opened, resolved = run.events("request.opened", "request.resolved")[-2:]
    assert (opened["type"], resolved["data"]["requestId"]) == ("request.opened", asked["params"]["requestId"])
    assert resolved["data"]["by"] == "timeout"
    assert (await session.state())["pendingRequests"] == []
