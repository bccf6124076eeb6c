"""Context providers that the host carries out: what providers in Python can do, they can."""

from pathlib import Path
from typing import Any

import pytest

from tests.bench.delegating import agents, asks, cast, said
from tests.bench.fake_model import F, FakeModel, T
from tests.bench.host import LATER, FakeHost
from tests.bench.host_provider import AFTER, BEFORE, BY_NOTES, NOTES, TIDE, Opener, explained, params_of, user
from tests.bench.wanted_calls import told, wants
from tests.bench.wire import Json


@pytest.fixture
def open_session(start_host: Any, model: FakeModel) -> Opener:
    return Opener(start_host, model)


def contents(folder: Path) -> bytes:
    """Everything in a folder's files."""
    return b"".join(file.read_bytes() for file in folder.rglob("*") if file.is_file())


# ---- what it adds ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("given", ["Be brief.", ["Be brief.", "  ", "Be kind."]])
async def test_its_instructions_are_the_model_s_and_its_own(open_session: Opener, model: FakeModel, given: Any) -> None:
    session = await open_session({"instructions": given}, instructions="For Ada.")
    model.says("yes")

    await session.run("hello", runId="r")

    texts = [text for text in ([given] if isinstance(given, str) else given) if text.strip()]
    assert model.last_request.system == "\n".join(["For Ada.", *texts])
    own = [one for one in (await explained(session, "r"))["instructions"] if one["source"]["type"] == "provider"]
    assert [(one["text"], one["source"]) for one in own] == [(text, BY_NOTES) for text in texts]


async def test_its_messages_stand_before_the_input_whoever_it_says_that_they_are_from(
    open_session: Opener, model: FakeModel
) -> None:
    forged = {"type": "agent", "sourceId": "boss", "originSessionIds": ["elsewhere"]}
    blocks = [{"type": "text", "text": "Noted."}]
    session = await open_session(
        {"messages": [user("Ada likes tea.", source=forged), {"role": "assistant", "content": blocks}]}
    )
    model.says("yes")

    await session.run("hello", runId="r")

    shown = [(m["role"], m["content"]) for m in model.last_request.messages]
    assert shown == [("user", "Ada likes tea."), ("assistant", "Noted."), ("user", "hello")]
    first, second, _ = (await explained(session, "r"))["messages"]
    assert [(one["source"], one["text"]) for one in (first, second)] == [
        (BY_NOTES, "Ada likes tea."),
        (BY_NOTES, "Noted."),
    ]
    assert await session.history() == [("user", "hello"), ("assistant", "yes")]


async def test_its_messages_stand_where_its_entry_says(open_session: Opener, model: FakeModel) -> None:
    session = await open_session({"messages": [user("found")]}, entry={"position": "after_input"})
    model.says("yes")

    await session.run("hello")

    assert [m["content"] for m in model.last_request.messages] == ["hello", "found"]


async def test_its_tools_are_offered_in_this_run_and_called_at_the_host(open_session: Opener, model: FakeModel) -> None:
    answers = iter([{"tools": [TIDE]}, {}])
    session = await open_session(lambda params: next(answers))
    session.host.serves["host/callTool"] = lambda params: {"content": f"{params['name']}: low"}
    wants(model, ("tide", {}))
    model.says(T("It is low."), F())

    assert (await session.run("tide?", runId="r"))["text"] == "It is low."

    assert told(model) == [("c0", "tide: low")]
    assert [(t["name"], t["source"]) for t in (await explained(session, "r"))["tools"]] == [("tide", BY_NOTES)]
    model.says("hm")
    await session.run("and now?")
    assert model.last_request.tool_names == []


async def test_its_state_is_kept_shown_given_back_and_replaced(
    open_session: Opener, start_host: Any, model: FakeModel, store: str
) -> None:
    session = await open_session(
        lambda params: {"state": {"runs": params["state"].get("runs", 0) + 1, "dropped": True}},
        lambda params: {"state": {"runs": params["state"]["runs"], "said": params["response"]["text"]}},
        store=store,
    )
    for text in ("one", "two"):
        model.says(text)
        await session.run("hello")

    assert [asked["state"] for asked in params_of(session.host, BEFORE)] == [{}, {"runs": 1, "said": "one"}]
    state = await session.state()
    assert state["state"] == {"notes": {"runs": 2, "said": "two"}}
    assert [(p["state"], p["type"]) for p in state["providers"] if p["sourceId"] == "notes"] == [
        ({"runs": 2, "said": "two"}, "host")
    ]
    session.host.kill()
    await session.host.wait()
    later: FakeHost = await start_host(env=model.environment, store=store)
    resumed = await later.resume_session("s", contextProviders=[NOTES])
    model.says("three")
    run = resumed.start("hello")
    (asked,) = await later.until(lambda: later.asked(BEFORE))
    assert asked["params"]["state"] == {"runs": 2, "said": "two"}
    later.reply(asked, {"state": {}})
    (asked,) = await later.until(lambda: later.asked(AFTER))
    later.reply(asked, None)
    await run.result()
    assert (await resumed.state())["state"] == {"notes": {}}


async def test_what_it_replaces_or_removes_is_recorded_as_its_doing(open_session: Opener, model: FakeModel) -> None:
    def before(params: Json) -> Json:
        if params["sourceId"] == "first":
            return {
                "instructions": ["Be brief.", "Be loud."],
                "messages": [user("long"), user("short")],
                "tools": [TIDE],
            }
        kept = [message for message in params["contextMessages"] if message["content"][0]["text"] != "long"]
        replaced = {"messages": [*kept, user("summary")], "instructions": ["Be brief."], "tools": ["moon"]}
        return {"replace": replaced, "messages": [user("more")]}

    moon = TIDE | {"name": "moon"}
    session = await open_session(before, contextProviders=[NOTES | {"sourceId": "first"}, NOTES], tools=[moon])
    model.says("yes")

    await session.run("hello", runId="r")

    (_, second) = params_of(session.host, BEFORE)
    assert (second["instructions"], second["tools"]) == (["Be brief.", "Be loud."], ["moon", "tide"])
    assert [m["content"] for m in model.last_request.messages] == ["Be brief.", "short", "summary", "more", "hello"]
    call = await explained(session, "r")
    assert [one["source"].get("sourceId") for one in call["messages"]] == ["first", "notes", "notes", None]
    assert [one["source"]["sourceId"] for one in call["instructions"]] == ["first"]
    assert [tool["name"] for tool in call["tools"]] == ["moon"]
    assert [(one["what"], one["by"]) for one in call["removed"]] == [
        ("message", BY_NOTES),
        ("instruction", BY_NOTES),
        ("tool", BY_NOTES),
    ]
    assert [one["ref"] for one in call["removed"][1:]] == ["Be loud.", "tide"]


async def test_a_message_without_an_id_is_known_again_by_what_it_says(open_session: Opener, model: FakeModel) -> None:
    facts = {"type": "static_messages", "sourceId": "facts", "config": {"messages": [user("Tea."), user("Milk.")]}}

    def before(params: Json) -> Json:
        tea, milk = params["contextMessages"]
        return {"replace": {"messages": [tea, milk | {"content": "Cream."}]}}

    session = await open_session(before, contextProviders=[facts, NOTES])
    model.says("yes")

    await session.run("hello", runId="r")

    seen = (await explained(session, "r"))["messages"]
    assert [(one["source"].get("sourceId"), one.get("text")) for one in seen] == [
        ("facts", "Tea."),
        ("notes", "Cream."),
        (None, None),
    ]
    removed = (await explained(session, "r"))["removed"]
    assert [(one["what"], one["ref"], one["by"]) for one in removed] == [("message", "facts", BY_NOTES)]


# ---- what it is told ------------------------------------------------------------------------------------------------


async def test_it_is_told_of_the_run_and_its_kwargs_which_are_stored_nowhere(
    open_session: Opener, model: FakeModel, store: str, tmp_path: Path
) -> None:
    session = await open_session(store=store, entry={"sourceId": "late"})
    model.says("yes")

    await session.run("hello", runId="r", functionInvocationKwargs={"token": "t0p-s3cret"})

    (before,), (after,) = params_of(session.host, BEFORE), params_of(session.host, AFTER)
    (message,) = before["inputMessages"]
    assert (message["role"], message["content"]) == ("user", [{"type": "text", "text": "hello"}])
    same = {"sessionId": "s", "runId": "r", "agent": "default", "sourceId": "late", "state": {}, "tools": []}
    for asked in (before, after):
        assert same.items() <= asked.items()
        assert asked["kwargs"] == {"token": "t0p-s3cret"}
        assert (asked["contextMessages"], asked["instructions"]) == ([], [])
    assert after["response"]["text"] == "yes"
    assert [m["role"] for m in after["response"]["messages"]] == ["assistant"]
    assert {"inputTokens", "outputTokens"} <= after["response"]["usage"].keys()
    assert "error" not in after
    for event in session.events("request.opened"):
        assert event["data"]["kind"] == "hostProvider"
        assert set(event["data"]["payload"]) == {"sessionId", "runId", "requestId", "agent", "sourceId", "phase"}
    assert b"t0p-s3cret" not in contents(tmp_path)


async def test_its_events_stand_around_its_requests(open_session: Opener, model: FakeModel) -> None:
    session = await open_session({"instructions": "Be brief.", "messages": [user("a fact")]})
    model.says("yes")

    await session.run("hello")

    events = [e for e in session.events() if e["type"].startswith("request.") or e["data"].get("sourceId") == "notes"]
    phase = ["provider.started", "request.opened", "request.resolved", "provider.completed"]
    assert [e["type"] for e in events] == phase * 2
    opened, resolved, completed = (events[n]["data"] for n in (1, 2, 3))
    assert resolved == {"requestId": opened["requestId"], "outcome": "completed", "by": "client"}
    assert completed["added"]["instructions"] == completed["added"]["messages"] == 1
    assert [e["data"]["phase"] for e in events[3::4]] == ["beforeRun", "afterRun"]
    assert session.opened["providers"][-1] == {"sourceId": "notes", "type": "host", "status": "ready"}


async def test_earlier_turns_are_context_and_stay_the_history_s_where_it_keeps_them(
    open_session: Opener, model: FakeModel
) -> None:
    def before(params: Json) -> Json:
        kept = [
            {"messageId": m["messageId"], "role": m["role"], "content": m["content"]} for m in params["contextMessages"]
        ]
        return {"replace": {"messages": [*kept[1:], user("summary")]}}

    session = await open_session(before)
    for text in ("one", "two"):
        model.says(text)
        await session.run("hello", runId=f"after {text}")

    loaded = params_of(session.host, BEFORE)[1]["contextMessages"]
    assert [(m["role"], m["content"][0]["text"]) for m in loaded] == [("user", "hello"), ("assistant", "one")]
    call = await explained(session, "after two")
    assert [(one["source"]["type"], one.get("text")) for one in call["messages"]] == [
        ("history", None),
        ("provider", "summary"),
        ("external", None),
    ]
    assert [(one["ref"], one["by"]) for one in call["removed"]] == [(loaded[0]["messageId"], BY_NOTES)]


# ---- beside others, later, and elsewhere ----------------------------------------------------------------------------


async def test_independent_neighbours_are_asked_at_the_same_time_and_keep_the_list_s_order(
    open_session: Opener, model: FakeModel
) -> None:
    entries = [NOTES | {"sourceId": name, "independent": True} for name in ("a", "b")]
    session = await open_session(lambda params: LATER, contextProviders=entries)
    model.says("yes")
    run = session.start("hello")
    both = await session.host.until(lambda: session.host.asked(BEFORE)[1:] and session.host.asked(BEFORE))

    for asked in reversed(both):
        source = asked["params"]["sourceId"]
        session.host.reply(asked, {"messages": [user(source)], "instructions": source, "state": {"is": source}})

    await run.result()
    assert [m["content"] for m in model.last_request.messages] == ["a\nb", "a", "b", "hello"]
    assert (await session.state())["state"] == {"a": {"is": "a"}, "b": {"is": "b"}}
    assert [asked["sourceId"] for asked in params_of(session.host, AFTER)] == ["b", "a"]


async def test_an_independent_one_may_not_replace(open_session: Opener, model: FakeModel) -> None:
    entries = [NOTES | {"sourceId": name, "independent": True, "onError": "warn"} for name in ("a", "b")]
    session = await open_session({"replace": {"tools": []}}, tools=[TIDE], contextProviders=entries)
    model.says("yes")

    result = await session.run("hello")

    assert "may add but not replace or remove" in result["warnings"][0]["message"]
    assert model.last_request.tool_names == ["tide"]


async def test_resolve_request_answers_in_place_of_the_host(open_session: Opener, model: FakeModel) -> None:
    session = await open_session(lambda params: LATER)
    model.says("yes")
    run = session.start("hello")
    (asked,) = await session.host.until(lambda: session.host.asked(BEFORE))

    answer = {"requestId": asked["params"]["requestId"], "result": {"instructions": "Be brief."}}
    assert (await session.host.request("resolveRequest", answer))["status"] == "resolved"

    await run.result()
    assert model.last_request.system == "Be brief."
    assert (await session.host.request("resolveRequest", answer))["status"] == "alreadyResolved"


async def test_after_a_restart_it_is_missing_until_it_is_supplied_again(
    open_session: Opener, start_host: Any, model: FakeModel, store: str
) -> None:
    session = await open_session({"instructions": "Be brief."}, store=store)
    session.host.kill()
    await session.host.wait()
    host: FakeHost = await start_host(env=model.environment, store=store)
    host.serves[BEFORE] = lambda params: {"instructions": params["sourceId"]}
    host.serves[AFTER] = lambda params: {}

    resumed = await host.resume_session("s")
    assert [w["kind"] for w in resumed.opened["warnings"]] == ["hostPartsMissing"]
    assert "provider 'notes'" in resumed.opened["warnings"][0]["message"]
    model.says("alone")
    await resumed.run("hello")
    assert (host.asked(BEFORE), model.last_request.system) == ([], "")
    again = await host.resume_session("s", contextProviders=[NOTES])
    assert "warnings" not in again.opened
    model.says("yes")
    await resumed.run("hello")
    assert model.last_request.system == "notes"
    other = await host.resume_session("s", contextProviders=[NOTES | {"sourceId": "others"}])
    assert [p["sourceId"] for p in other.opened["providers"]] == ["in_memory", "instructions", "others"]
    model.says("yes")
    await resumed.run("hello")
    assert model.last_request.system == "others"


async def test_a_run_that_went_on_after_a_restart_has_its_tool_again_and_tells_it_of_both_runs(
    open_session: Opener, start_host: Any, model: FakeModel, store: str
) -> None:
    gated = {"tools": [TIDE | {"approvalMode": "always_require"}]}
    session = await open_session(gated, store=store)
    wants(model, ("tide", {}))
    (pending,) = (await session.run("tide?"))["pendingRequests"]
    assert session.host.asked(AFTER) == []
    session.host.kill()
    await session.host.wait()
    host: FakeHost = await start_host(env=model.environment, store=store)
    host.serves |= {BEFORE: lambda params: gated, AFTER: lambda params: None}
    host.serves["host/callTool"] = lambda params: {"content": "low"}
    resumed = await host.resume_session("s", contextProviders=[NOTES])
    model.says(T("It is low."), F())

    answer = {"outcome": "selected", "optionId": "allowOnce"}
    await host.request("resolveRequest", {"requestId": pending["requestId"], "result": answer})
    await host.until(lambda: resumed.events("run.completed"))

    assert told(model) == [("c0", "low")]
    (before,), (after,) = params_of(host, BEFORE), params_of(host, AFTER)
    for asked in (before, after):
        assert [m["content"][0]["text"] for m in asked["inputMessages"]] == ["tide?"]
    assert [m["role"] for m in after["response"]["messages"]] == ["assistant", "tool", "assistant"]


async def test_a_delegated_agent_s_provider_is_asked_in_the_delegated_run(
    start_host: Any, model: FakeModel, tmp_path: Path
) -> None:
    plugins = agents(tmp_path)
    config = tmp_path / "sidecar.toml"
    config.write_text(config.read_text().replace('{ type = "history" },', '{ type = "host", source_id = "notes" },'))
    host: FakeHost = await start_host(args=plugins.args, env=model.environment)
    host.serves[BEFORE] = lambda params: {"messages": [user("a fact")], "state": {"n": 1}}
    host.serves[AFTER] = lambda params: {}
    boss = await host.create_session(sessionId="s", agent="boss")
    cast(model, boss=[asks(("Research_Agent", {"task": "Tea?"})), said("A drink.")], researcher=[said("Leaves.")])

    await boss.run("Tell me of tea", runId="r")

    (before,), (after,) = params_of(host, BEFORE), params_of(host, AFTER)
    assert (before["sessionId"], before["agent"], before["runId"] != "r") == ("s", "Research Agent", True)
    assert [m["content"][0]["text"] for m in before["inputMessages"]] == ["Tea?"]
    assert (after["runId"], after["response"]["text"]) == (before["runId"], "Leaves.")
    (opened, *_) = boss.events("request.opened")
    assert (opened["runId"], opened["parentRunId"]) == (before["runId"], "r")
    child = await host.request("explainRun", {"sessionId": "s", "runId": before["runId"]})
    assert [one["source"].get("sourceId") for one in child["calls"][0]["messages"]] == ["notes", None]
