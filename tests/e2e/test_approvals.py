"""Consent to tool calls: asked live or left open, bound to one exact call, stored once, and never given by silence."""

from typing import Any

import pytest

from tests.bench.fake_model import F, FakeModel, T
from tests.bench.gated import SILENT, TOOLS, Gated, asked, select
from tests.bench.host import Refuses, RpcError
from tests.bench.wanted_calls import told, wants

REJECTED = "Error: Tool call invocation was rejected by user."


@pytest.fixture
def gated(start_host: Any, model: FakeModel, store: str) -> Gated:
    return Gated(start_host, model, store)


# ---- live ---------------------------------------------------------------------------------------------------------


async def test_a_gated_call_runs_after_a_person_has_allowed_it(gated: Gated, model: FakeModel) -> None:
    session = await gated.session()
    session.host.serves["host/requestApproval"] = lambda params: select("allowOnce")
    wants(model, ("delete", {"a": 1}))
    model.says(T("gone"), F())

    result = await session.run("delete it")

    assert result["text"] == "gone"
    assert gated.ran == {"delete{'a': 1}": 1}
    (request,) = session.host.asked("host/requestApproval")
    assert request["params"]["toolCall"] == {"callId": "c0", "name": "delete", "arguments": {"a": 1}}
    assert {"allowOnce", "rejectOnce"} <= {option["optionId"] for option in request["params"]["options"]}
    of_call = [e for e in session.events() if e["type"].startswith(("tool.", "request."))]
    assert [(e["type"], e["data"].get("status")) for e in of_call] == [
        ("tool.started", "pending"),
        ("request.opened", None),
        ("request.resolved", None),
        ("tool.started", "running"),
        ("request.opened", None),
        ("request.resolved", None),
        ("tool.completed", "completed"),
    ]
    assert of_call[2]["data"] == {
        "requestId": of_call[1]["data"]["requestId"], "outcome": "approved", "by": "client",
    }  # fmt: skip


@pytest.mark.parametrize(
    "answer",
    [
        select("rejectOnce"),
        {"outcome": "cancelled"},
        {"outcome": "ofALaterVersion"},
        select("noSuchOption"),
        {"outcome": "selected"},
        {"approved": True},
        "yes",
        None,
        Refuses(-32601, "no"),
        Refuses(-1, "broken"),
    ],
)
async def test_whatever_is_no_clear_consent_denies_the_call_and_the_run_goes_on(
    gated: Gated, model: FakeModel, answer: Any
) -> None:
    session = await gated.session()
    session.host.serves["host/requestApproval"] = lambda params: answer
    wants(model, ("delete", {"a": 1}))
    model.says(T("as you like"), F())

    result = await session.run("delete it")

    assert result["text"] == "as you like"
    assert gated.ran == {}
    assert told(model) == [("c0", REJECTED)]
    assert session.events("tool.completed")[0]["data"]["status"] == "denied"


async def test_a_rejection_tells_the_model_what_was_said(gated: Gated, model: FakeModel) -> None:
    """Case 41."""
    session = await gated.session()
    session.host.serves["host/requestApproval"] = lambda params: select("rejectOnce", "ask my boss")
    wants(model, ("delete", {"a": 1}))
    model.says(T("as you like"), F())

    await session.run("delete it")

    assert told(model) == [("c0", f"{REJECTED} They said: ask my boss")]


async def test_an_answer_holds_all_its_calls_until_everything_is_decided(gated: Gated, model: FakeModel) -> None:
    session = await gated.session()
    wants(model, ("look", {"a": 0}), ("delete", {"a": 1}), ("send", {"a": 2}))
    model.says(T("done"), F())
    run = session.start("go")
    first, second = await asked(session, 2)
    assert (await session.host.request("getState", {"sessionId": "s"}))["activeRun"]["stage"] == "approval"

    session.host.reply(first, select("allowOnce"))
    await session.host.until(lambda: session.events("request.resolved"))
    assert gated.ran == {}
    session.host.reply(second, select("rejectOnce"))

    await run.result()
    assert gated.ran == {"look{'a': 0}": 1, "delete{'a': 1}": 1}
    assert told(model) == [("c0", "look done"), ("c1", "delete done"), ("c2", REJECTED)]


async def test_silence_is_no_consent(gated: Gated, model: FakeModel) -> None:
    session = await gated.session(agent={"approvals": {"timeoutMs": 60}})
    wants(model, ("delete", {"a": 1}))
    model.says(T("too late"), F())
    run = session.start("go")
    (request,) = await asked(session)

    assert (await run.result())["text"] == "too late"
    session.host.reply(request, select("allowOnce"))

    await session.host.request("getState")
    assert gated.ran == {}
    assert request["params"]["deadlineMs"] == 60
    assert session.events("request.resolved")[0]["data"]["by"] == "timeout"


async def test_cancelling_the_run_ends_its_questions(gated: Gated, model: FakeModel) -> None:
    session = await gated.session()
    wants(model, ("delete", {"a": 1}))
    run = session.start("go")
    (request,) = await asked(session)

    await session.cancel()

    assert (await run.result())["status"] == "cancelled"
    session.host.reply(request, select("allowOnce"))
    late = await session.host.request("resolveRequest", {"requestId": request["params"]["requestId"], "result": {}})
    assert late["status"] == "alreadyResolved"
    state = await session.host.request("getState", {"sessionId": "s"})
    assert (state["session"]["status"], state["pendingRequests"]) == ("idle", [])
    model.says(T("hi"), F())
    await session.run("and now?")
    assert gated.ran == {}
    assert [m["role"] for m in model.last_request.body["messages"]] == ["user", "assistant", "tool", "user"]


async def test_resolve_request_answers_a_live_question(gated: Gated, model: FakeModel) -> None:
    session = await gated.session()
    wants(model, ("delete", {"a": 1}))
    model.says(T("gone"), F())
    run = session.start("go")
    (request,) = await asked(session)
    answer = {"sessionId": "s", "requestId": request["params"]["requestId"], "result": select("allowOnce")}

    assert (await session.host.request("resolveRequest", answer)) == {"status": "resolved"}

    await run.result()
    assert gated.ran == {"delete{'a': 1}": 1}
    assert (await session.host.request("resolveRequest", answer))["status"] == "alreadyResolved"


# ---- left open ----------------------------------------------------------------------------------------------------


async def parked(gated: Gated, model: FakeModel, *calls: tuple[str, dict[str, Any]], **params: Any) -> tuple[Any, Any]:
    """A session whose run has ended with questions about these calls, and what that run was answered."""
    session = await gated.session(SILENT, **params)
    wants(model, *(calls or (("delete", {"a": 1}),)))
    return session, await session.run("go")


async def test_a_parked_answer_goes_on_after_a_restart(gated: Gated, model: FakeModel) -> None:
    """Case 40."""
    session, result = await parked(gated, model, ("delete", {"a": 1}), ("look", {"a": 2}))
    assert (result["status"], result["stopReason"]) == ("completed", "inputRequired")
    (pending,) = result["pendingRequests"]
    assert gated.ran == {}
    state = await session.host.request("getState", {"sessionId": "s"})
    assert (state["session"]["status"], state["pendingRequests"]) == ("inputRequired", [pending])
    assert "activeRun" not in state

    session = await gated.again(session, SILENT)
    assert session.opened["pendingRequests"] == [pending]
    assert session.opened["session"]["status"] == "inputRequired"
    model.says(T("both done"), F())
    answer = {"sessionId": "s", "requestId": pending["requestId"], "result": select("allowOnce")}
    resolved = await session.host.request("resolveRequest", answer)
    await session.host.until(lambda: session.events("run.completed"))

    assert resolved["status"] == "resolved"
    assert gated.ran == {"delete{'a': 1}": 1, "look{'a': 2}": 1}
    assert told(model) == [("c0", "delete done"), ("c1", "look done")]
    assert [m["role"] for m in model.last_request.body["messages"]] == ["user", "assistant", "tool", "tool"]
    (ended,) = session.events("run.completed")
    assert (ended["runId"], ended["data"]["stopReason"]) == (resolved["runId"], "endTurn")
    decided = session.events("request.resolved")[0]
    assert "runId" not in decided
    assert {e["runId"] for e in session.events("tool.completed")} == {resolved["runId"]}
    assert (await session.host.request("getState", {"sessionId": "s"}))["session"]["status"] == "idle"


async def test_another_input_leaves_the_calls_out_and_they_can_still_be_answered(
    gated: Gated, model: FakeModel
) -> None:
    """Case 41."""
    session, result = await parked(gated, model)
    model.says(T("never mind then"), F())
    await session.run("never mind")
    assert [m["content"] for m in model.last_request.body["messages"]] == ["go", "never mind"]
    model.says(T("done after all"), F())

    (pending,) = result["pendingRequests"]
    answer = {"requestId": pending["requestId"], "result": select("allowOnce")}
    resolved = await session.host.request("resolveRequest", answer)
    await session.host.until(lambda: [e for e in session.events("run.completed") if e["runId"] == resolved["runId"]])

    assert gated.ran == {"delete{'a': 1}": 1}
    roles = [m["role"] for m in model.last_request.body["messages"]]
    assert roles == ["user", "assistant", "tool", "user", "assistant"]


async def test_an_approval_in_the_next_input_goes_on_with_the_calls(gated: Gated, model: FakeModel) -> None:
    """Case 42: sent again, it answers nothing."""
    session, result = await parked(gated, model, ("delete", {"a": 1}), ("send", {"a": 2}))
    first, second = (pending["requestId"] for pending in result["pendingRequests"])

    def response(request_id: str, *, approved: bool) -> dict[str, Any]:
        return {"type": "approvalResponse", "requestId": request_id, "approved": approved}

    half = await session.run([{"role": "user", "content": [response(first, approved=True)]}])
    assert (half["stopReason"], gated.ran) == ("inputRequired", {})
    model.says(T("one of two"), F())
    both = await session.run(
        [{"role": "user", "content": [response(second, approved=False), {"type": "text", "text": "be quick"}]}]
    )

    assert both["text"] == "one of two"
    assert gated.ran == {"delete{'a': 1}": 1}
    messages = model.last_request.body["messages"]
    assert [(m["role"], m["content"]) for m in messages] == [
        ("user", "go"),
        ("assistant", None),
        ("tool", "delete done"),
        ("tool", REJECTED),
        ("user", "be quick"),
    ]
    with pytest.raises(RpcError) as again:
        await session.run([{"role": "user", "content": [response(first, approved=True)]}])
    assert again.value.kind == "invalidParams"


async def test_what_went_on_is_one_conversation_for_history_and_model(gated: Gated, model: FakeModel) -> None:
    session, result = await parked(gated, model)
    model.says(T("gone"), F())
    (pending,) = result["pendingRequests"]
    await session.host.request("resolveRequest", {"requestId": pending["requestId"], "result": select("allowOnce")})
    await session.host.until(lambda: session.events("run.completed")[1:])
    model.says(T("yes"), F())

    await session.run("is it gone?")

    roles = [m["role"] for m in model.last_request.body["messages"]]
    assert roles == ["user", "assistant", "tool", "assistant", "user"]
    history = await session.host.request("getHistory", {"sessionId": "s"})
    assert [m["role"] for m in history["messages"]] == [*roles, "assistant"]


# ---- whom it is denied --------------------------------------------------------------------------------------------


async def test_where_nobody_can_be_asked_the_call_is_denied(gated: Gated, model: FakeModel) -> None:
    host = await gated.start(SILENT)
    session = await host.create_session(ephemeral=True, tools=TOOLS)
    wants(model, ("delete", {"a": 1}))
    model.says(T("sorry"), F())

    result = await session.run("go")

    assert (result["stopReason"], gated.ran) == ("endTurn", {})
    assert "nobody can be asked here" in told(model)[0][1]


async def test_after_the_end_of_input_a_live_question_is_parked(gated: Gated, model: FakeModel) -> None:
    session = await gated.session()
    wants(model, ("delete", {"a": 1}))
    run = session.start("go")
    await asked(session)

    session.host.hang_up()

    result = await run.result()
    assert (result["status"], result["stopReason"]) == ("completed", "inputRequired")
    assert len(result["pendingRequests"]) == 1
    await session.host.wait()
    session = await gated.again(session)
    model.says(T("gone"), F())
    answer = {"requestId": result["pendingRequests"][0]["requestId"], "result": select("allowOnce")}
    await session.host.request("resolveRequest", answer)
    await session.host.until(lambda: session.events("run.completed"))
    assert gated.ran == {"delete{'a': 1}": 1}


# ---- rules --------------------------------------------------------------------------------------------------------


async def test_a_rule_for_exact_arguments_and_one_for_all(gated: Gated, model: FakeModel) -> None:
    """Case 43."""
    session = await gated.session()
    answers = iter(["allowSessionExactly", "rejectOnce", "allowSession"])
    session.host.serves["host/requestApproval"] = lambda params: select(next(answers))

    async def call(arguments: dict[str, Any]) -> int:
        before = len(session.host.asked("host/requestApproval"))
        wants(model, ("delete", arguments))
        model.says(T("ok"), F())
        await session.run("go")
        return len(session.host.asked("host/requestApproval")) - before

    assert [await call({"a": 1}), await call({"a": 1}), await call({"a": 2})] == [1, 0, 1]
    assert [await call({"a": True}), await call({"a": 3}), await call({})] == [1, 0, 0]

    rules = (await session.host.request("listApprovalRules", {"sessionId": "s"}))["items"]
    assert [(rule["tool"], rule.get("arguments"), rule["scope"]) for rule in rules] == [
        ("delete", {"a": 1}, "session"),
        ("delete", None, "session"),
    ]
    for rule in rules:
        await session.host.request("revokeApprovalRule", {"ruleId": rule["ruleId"]})
    answers = iter(["rejectOnce"])
    assert await call({"a": 1}) == 1
