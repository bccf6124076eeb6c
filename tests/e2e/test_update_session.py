"""`updateSession`: labels, settings and state, during runs and on sessions that are not open here."""

from typing import Any

import pytest

from tests.bench.fake_model import FakeModel, Stall, T
from tests.bench.host import FakeHost, HostSession, RpcError

SCHEMA = {"type": "object", "properties": {"name": {"type": "string"}}}


async def update(session: HostSession, **params: Any) -> dict[str, Any]:
    """`updateSession`."""
    return await session.host.request("updateSession", {"sessionId": session.id, **params})


def told(host: FakeHost, method: str) -> list[dict[str, Any]]:
    """The params of the notifications of that name."""
    return [message["params"] for message in host.messages if message.get("method") == method]


async def test_labels_and_state_change_together_and_raise_the_revision_once(host: FakeHost) -> None:
    session = await host.create_session(title="old", state={"a": {"x": 1, "y": 2}, "b": 1})

    result = await update(
        session, title="new", metadata={"k": [1]}, statePatch={"a": {"x": None, "z": {}}, "b": None, "c": {}}
    )

    info = result["session"]
    assert (info["title"], info["metadata"], info["revision"]) == ("new", {"k": [1]}, 1)
    assert (await session.state())["state"] == {"a": {"y": 2, "z": {}}, "c": {}}
    assert told(host, "session/updated") == [{"session": info}]
    changed = session.events("state.changed")
    assert [(e["data"]["revision"], sorted(e["data"]["keys"])) for e in changed] == [(1, ["a", "b", "c"])]
    assert info["lastSeq"] == changed[0]["seq"]


async def test_what_changes_nothing_is_no_change(host: FakeHost) -> None:
    session = await host.create_session(title="t", state={"a": 1})

    result = await update(session, title="t", statePatch={"a": 1, "gone": None}, archived=False)

    assert result["session"]["revision"] == 0
    assert told(host, "session/updated") == []
    assert session.events() == []


async def test_a_change_that_expects_another_revision_is_refused_whole(host: FakeHost) -> None:
    session = await host.create_session(title="t")
    assert (await update(session, title="u", ifRevision=0))["session"]["revision"] == 1

    with pytest.raises(RpcError) as conflict:
        await update(session, title="v", ifRevision=0)

    assert conflict.value.kind == "revisionConflict"
    assert (await session.state())["session"]["title"] == "u"


async def test_settings_take_effect_from_the_next_run_on_and_null_is_the_agent_s_own(
    start_host: Any, model: FakeModel
) -> None:
    host = await start_host(env=model.environment)
    session = await host.create_session(agent={"model": "openai:one"}, model="openai:two")
    model.otherwise(lambda _: ["ok"])
    used: list[str] = []
    for options in ({}, {"model": "openai:three", "reasoningEffort": "high"}, {"model": None}):
        result = await update(session, configOptions=options)
        shown = {option["id"]: option.get("value") for option in result["configOptions"]}
        await session.run("go")
        used.append(model.last_request.body["model"])
        assert shown["model"] == result["session"]["model"] == f"openai:{used[-1]}"

    assert used == ["two", "three", "one"]
    assert model.last_request.body["reasoning_effort"] == "high"
    assert [event["data"]["model"] for event in session.events("run.started")] == [
        "openai:two",
        "openai:three",
        "openai:one",
    ]


@pytest.mark.parametrize(
    ("options", "kind"),
    [({"colour": "red"}, "invalidParams"), ({"model": 5}, "invalidParams"), ({"mode": "plan"}, "capabilityRequired")],
)
async def test_a_setting_that_is_none_is_refused_by_name(host: FakeHost, options: dict[str, Any], kind: str) -> None:
    session = await host.create_session(title="t")

    with pytest.raises(RpcError) as refused:
        await update(session, title="u", configOptions=options)

    assert refused.value.kind == kind
    assert next(iter(options)) in refused.value.message
    assert (await session.state())["session"]["title"] == "t"


async def test_a_provider_s_state_must_stay_an_object(host: FakeHost) -> None:
    session = await host.create_session()

    with pytest.raises(RpcError) as refused:
        await update(session, statePatch={"in_memory": 5})

    assert refused.value.kind == "configInvalid"


async def test_the_host_s_and_the_run_s_changes_do_not_undo_each_other(start_host: Any, model: FakeModel) -> None:
    """The provider writes its corner at the end of the run; the host writes there and elsewhere in between."""
    host = await start_host(env=model.environment)
    session = await host.create_session(
        contextProviders=[{"type": "structured_memory", "sourceId": "info", "config": {"schema": SCHEMA}}],
        state={"info": {"mine": 1}, "other": 1},
        title="t",
    )
    model.says(T("nice to"), Stall(0.3), T(" meet you"))
    model.says('{"name": "Ada"}')
    run = session.start("I am Ada")
    await run.text_contains("nice")
    written = await update(session, title="u", statePatch={"info": {"host": {"deep": True}, "mine": 2}, "other": 2})

    await run.result()

    state = await session.state()
    assert state["state"]["other"] == 2
    assert state["session"]["title"] == "u"
    corner = state["state"]["info"]
    assert (corner["host"], corner["mine"]) == ({"deep": True}, 2)
    assert "Ada" in str(corner)
    assert state["revision"] == written["session"]["revision"] + 1
    revisions = [event["data"]["revision"] for event in session.events("state.changed")]
    assert revisions == [written["session"]["revision"], state["revision"]]


async def test_a_change_in_the_same_read_as_a_run_is_not_lost(start_host: Any, store: str) -> None:
    host = await start_host(store=store)
    session = await host.create_session(sessionId="s", model="scripted:echo", title="t")
    for number in range(5):
        run = session.start("hello")
        changed = host.ask("updateSession", {"sessionId": "s", "title": f"t{number}", "statePatch": {"n": number}})
        await changed.result()
        await run.result()

        state = await session.state()
        assert (state["session"]["title"], state["state"]["n"]) == (f"t{number}", number)
        assert state["revision"] == number + 1
    host.kill()
    await host.wait()
    stored = await (await start_host(store=store)).request("getState", {"sessionId": "s"})
    assert (stored["session"]["title"], stored["state"], stored["revision"]) == ("t4", {"n": 4}, 5)


async def test_a_stored_session_is_changed_and_given_back(start_host: Any, store: str) -> None:
    first = await start_host(store=store)
    session = await first.create_session(sessionId="s", model="scripted:echo")
    await first.request("closeSession", {"sessionId": "s"})

    result = await update(session, title="new", statePatch={"k": 1})

    assert (result["session"]["title"], result["session"]["open"]) == ("new", False)
    assert session.events() == []  # nobody here was told of the session, which is not open
    assert (await first.request("getState", {"sessionId": "s"}))["session"]["open"] is False
    assert (await first.refusal("run", {"sessionId": "s", "input": "x"})).kind == "sessionClosed"
    other = await start_host(store=store)
    taken = await other.resume_session("s", replayFrom={"type": "start"})
    await other.until(lambda: taken.events("state.changed"))
    assert (await taken.state())["state"] == {"k": 1}


async def test_a_session_of_another_process_is_locked(start_host: Any, store: str) -> None:
    first, other = await start_host(store=store), await start_host(store=store)
    session = await first.create_session(sessionId="s", model="scripted:echo")

    refused = await other.refusal("updateSession", {"sessionId": "s", "title": "mine"})

    assert refused.kind == "sessionLocked"
    assert refused.data["pid"] == first.process.pid
    assert (await session.run("still mine"))["text"] == "still mine"


async def test_archived_sessions_are_listed_apart(host: FakeHost) -> None:
    one, two = await host.create_session(), await host.create_session()
    await update(one, archived=True)

    async def listed(**params: Any) -> list[str]:
        return [session["sessionId"] for session in (await host.request("listSessions", params))["sessions"]]

    assert await listed() == [two.id]
    assert await listed(archived=True) == [one.id]
    await update(one, archived=False)
    assert set(await listed()) == {one.id, two.id}
