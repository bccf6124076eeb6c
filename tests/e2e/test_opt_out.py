"""`optOutEvents`: a client that does not want some types gets none of them, and its chain of events has no gap."""

from typing import Any

from tests.bench.fake_model import FakeModel, T, Think

WITHOUT = ["message.delta", "message.started", "provider.completed", "usage.updated", "reasoning.delta", "unheard.of"]


def opting_out(*types: str) -> dict[str, Any]:
    """The params of `initialize`."""
    return {"initializationOptions": {"sidecar": {"protocolVersions": [1], "optOutEvents": list(types)}}}


async def test_types_that_were_opted_out_of_are_not_sent(start_host: Any, model: FakeModel) -> None:
    host = await start_host(env=model.environment, initialize=opting_out(*WITHOUT))
    session = await host.create_session()
    model.says(Think("hm"), T("a"), T("b"))

    result = await session.run("hello")

    types = {event["type"] for event in session.events()}
    assert not types & set(WITHOUT)
    assert {"run.started", "message.completed", "reasoning.completed", "run.completed"} <= types
    assert result["text"] == "ab"


async def test_the_chain_is_unbroken_live_and_in_a_replay(start_host: Any, model: FakeModel, store: str) -> None:
    host = await start_host(env=model.environment, store=store, initialize=opting_out(*WITHOUT))
    session = await host.create_session(sessionId="s")
    model.otherwise(lambda _: ["ok"])
    for text in ("one", "two"):
        await session.run(text)
    live = session.durable()
    seqs = [event["seq"] for event in live]
    assert [event["prevSeq"] for event in live] == [0, *seqs[:-1]]
    assert seqs != list(range(1, len(seqs) + 1))  # some were left out
    await host.request("closeSession", {"sessionId": "s"})

    await host.resume_session("s", replayFrom={"type": "start"})
    await host.until(lambda: len(session.durable()) == 2 * len(live))

    assert session.durable()[len(live) :] == live


async def test_what_was_opted_out_of_is_stored_all_the_same(start_host: Any) -> None:
    host = await start_host(initialize=opting_out("usage.updated"))
    session = await host.create_session(model="scripted:echo")
    result = await session.run("hello")

    page = await host.request("getEvents", {"sessionId": session.id, "afterSeq": 0})

    assert [event["seq"] for event in page["events"]] == list(range(1, result["lastSeq"] + 1))
    assert "usage.updated" in {event["type"] for event in page["events"]}


async def test_another_client_s_choice_is_its_own(start_host: Any, store: str) -> None:
    picky = await start_host(store=store, initialize=opting_out("usage.updated"))
    session = await picky.create_session(sessionId="s", model="scripted:echo")
    await session.run("hello")
    await picky.request("closeSession", {"sessionId": "s"})
    other = await start_host(store=store)

    resumed = await other.resume_session("s", replayFrom={"type": "start"})
    await other.until(lambda: resumed.events("run.completed"))

    assert len(resumed.events("usage.updated")) == 1
    assert session.events("usage.updated") == []
