"""`chat_history_memory` over the wire: what was said in a scope comes back in it, and nowhere else."""

import json
from typing import Any

import pytest

from tests.bench.fake_model import TC, F, FakeModel
from tests.bench.host import FakeHost, HostSession

MEMORY = {"storageScope": {"userId": {"fromState": "user_id"}}}


def agent(**config: Any) -> dict[str, Any]:
    """An agent with a memory of its user."""
    return {
        "instructions": "You order food.",
        "contextProviders": [{"type": "chat_history_memory", "sourceId": "memory", "config": {**MEMORY, **config}}],
    }


async def session_of(host: FakeHost, user: str, **config: Any) -> HostSession:
    return await host.create_session(agent=agent(**config), state={"user_id": user})


def contents(model: FakeModel) -> list[tuple[str, str]]:
    """What the model saw last: role and text of each message."""
    return [(message["role"], message["content"]) for message in model.last_request.body["messages"]]


async def test_what_alice_said_comes_back_in_her_next_session_and_in_nobody_else_s(
    start_host: Any, model: FakeModel
) -> None:
    """Case 49."""
    host: FakeHost = await start_host(env=model.environment)
    model.otherwise(lambda request: "Steamed bass it is.")
    await (await session_of(host, "Alice")).run("Order me a takeaway; I cannot eat spicy food.")

    alice = await session_of(host, "Alice")
    await alice.run("Order me a takeaway with no spicy dishes, please.")
    seen = contents(model)
    assert [role for role, _ in seen] == ["system", "user", "user"]
    assert seen[1][1] == "Order me a takeaway with no spicy dishes, please."
    assert "I cannot eat spicy food" in seen[2][1]
    assert "Steamed bass it is." in seen[2][1]

    for stranger in ("Bob", "alice", "Alice ", "alice/../bob"):
        await (await session_of(host, stranger)).run("Order me a takeaway; I cannot eat spicy food.")
        assert all("bass" not in text for _, text in contents(model)), stranger


async def test_on_demand_nothing_is_injected_and_the_model_searches_by_its_tool(
    start_host: Any, model: FakeModel
) -> None:
    """Case 50."""
    host: FakeHost = await start_host(env=model.environment)
    model.says("Noted.")
    await (await session_of(host, "Alice")).run("I cannot eat spicy food.")
    model.says(TC(0, "c1", "Search", json.dumps({"userQuestion": "spicy food"})), F("tool_calls"))
    model.says("No chillies, then.")

    await (await session_of(host, "Alice", searchTime="onDemand")).run("Order me lunch.")

    (offered,) = (tool["function"] for tool in model.last_request.body["tools"])
    assert offered["name"] == "Search"
    assert offered["parameters"]["required"] == ["userQuestion"]
    assert offered["parameters"]["properties"]["userQuestion"]["type"] == "string"
    assert [role for role, _ in contents(model)] == ["system", "user", "assistant", "tool"]
    assert "I cannot eat spicy food." in model.last_request.tool_results["c1"]


@pytest.mark.parametrize("state", [{}, {"user_id": ""}, {"user_id": "  "}, {"user_id": 7}, {"user_id": None}])
async def test_a_session_that_does_not_say_whose_memory_it_uses_is_refused(
    start_host: Any, model: FakeModel, state: dict[str, Any]
) -> None:
    """BR-20: fail closed."""
    host: FakeHost = await start_host(env=model.environment)

    refused = await host.refusal("createSession", {"agent": agent(), "state": state})

    assert refused.kind == "configInvalid"
    assert "userId" in refused.message


@pytest.mark.parametrize(
    ("config", "named"),
    [
        ({"storageScope": {}}, "storageScope"),
        ({"storageScope": {"userid": "a"}}, "userId"),
        ({"searchScope": {}}, "searchScope"),
        ({"searchScope": {"agentId": "agent"}}, "searchScope.agentId"),
        ({"searchScope": {"userId": "fixed"}}, "searchScope.userId"),
    ],
)
async def test_a_scope_that_is_wider_than_what_is_kept_is_refused(
    start_host: Any, model: FakeModel, config: dict[str, Any], named: str
) -> None:
    host: FakeHost = await start_host(env=model.environment)

    refused = await host.refusal("createSession", {"agent": agent(**config), "state": {"user_id": "a"}})

    assert refused.kind == "configInvalid"
    assert named in refused.message


async def test_nothing_in_a_session_can_change_whose_memory_it_uses(
    start_host: Any, model: FakeModel, store: str
) -> None:
    host: FakeHost = await start_host(env=model.environment, store=store)
    model.otherwise(lambda request: "ok")
    await (await session_of(host, "Bob")).run("My secret plan is a garden.")
    session = await host.create_session(sessionId="s", agent=agent(), state={"user_id": "Alice"})
    await host.request("updateSession", {"sessionId": "s", "statePatch": {"user_id": "Bob"}})
    await session.run("What is the secret plan?")
    assert all("garden" not in text for _, text in contents(model))
    host.kill()
    await host.wait()

    host = await start_host(env=model.environment, store=store)
    session = await host.resume_session("s")
    await session.run("What is the secret plan, again?")
    assert all("garden" not in text for _, text in contents(model))


async def test_a_fork_keeps_whose_memory_it_is(start_host: Any, model: FakeModel) -> None:
    host: FakeHost = await start_host(env=model.environment)
    model.otherwise(lambda request: "ok")
    await (await session_of(host, "Bob")).run("My secret plan is a garden.")
    await host.create_session(sessionId="s", agent=agent(), state={"user_id": "Alice"})
    await host.request("updateSession", {"sessionId": "s", "statePatch": {"user_id": "Bob"}})
    await host.request("forkSession", {"sessionId": "s", "newSessionId": "f"})

    await (await host.resume_session("f")).run("What is the secret plan?")

    assert all("garden" not in text for _, text in contents(model))


@pytest.mark.parametrize("blank", ["", "   ", "\n\t", "\u200b"])
async def test_nothing_is_searched_for_and_nothing_kept_where_nothing_was_said(
    start_host: Any, model: FakeModel, blank: str
) -> None:
    """BR-21."""
    host: FakeHost = await start_host(env=model.environment)
    model.otherwise(lambda request: "I remember you.")
    await (await session_of(host, "Alice")).run("hello there")

    result = await (await session_of(host, "Alice")).run(blank)

    assert result["status"] == "completed"
    assert result["warnings"] == []
    assert next(role for role, _ in contents(model)) == "system"
    assert all("Earlier conversations" not in text for _, text in contents(model))


async def test_a_failed_run_is_not_remembered(start_host: Any, model: FakeModel) -> None:
    host: FakeHost = await start_host(env=model.environment)
    model.fails(400)
    session = await session_of(host, "Alice")
    await host.refusal("run", {"sessionId": session.id, "input": "My cat is called Moritz."})
    model.otherwise(lambda request: "ok")

    await (await session_of(host, "Alice")).run("What is my cat called?")

    assert all("Moritz" not in text for _, text in contents(model))


async def test_secrets_are_not_remembered(start_host: Any, model: FakeModel) -> None:
    host: FakeHost = await start_host(env=model.environment)
    model.otherwise(lambda request: "ok")
    await (await session_of(host, "Alice")).run("My mail password is hunter2hunter2, please check my mail.")

    await (await session_of(host, "Alice")).run("Please check my mail again.")

    memory = contents(model)[-1][1]
    assert "<redacted>" in memory
    assert "hunter2" not in memory


async def test_what_is_remembered_is_attributed_and_explained(start_host: Any, model: FakeModel) -> None:
    host: FakeHost = await start_host(env=model.environment)
    model.otherwise(lambda request: "ok")
    first = await session_of(host, "Alice")
    await first.run("I cannot eat spicy food.")

    second = await session_of(host, "Alice")
    result = await second.run("spicy food?")

    told = await host.request("explainRun", {"sessionId": second.id, "runId": result["runId"]})
    (injected,) = [m for m in told["calls"][0]["messages"] if m["source"].get("sourceId") == "memory"]
    assert injected["source"]["originSessionIds"] == [first.id]
    assert len(injected["memoryIds"]) == 2
    assert "I cannot eat spicy food." in injected["text"]


async def test_an_ephemeral_session_leaves_nothing_behind(start_host: Any, model: FakeModel) -> None:
    host: FakeHost = await start_host(env=model.environment)
    model.otherwise(lambda request: "ok")
    session = await host.create_session(agent=agent(), state={"user_id": "Alice"}, ephemeral=True)
    await session.run("My cat is called Moritz.")

    await (await session_of(host, "Alice")).run("What is my cat called?")

    assert all("Moritz" not in text for _, text in contents(model))


@pytest.mark.parametrize("question", ["Hello!", "I ordered beef. Order something."])
async def test_the_newest_turns_stand_last_in_order_and_whole_whatever_is_searched_for(
    start_host: Any, model: FakeModel, question: str
) -> None:
    host: FakeHost = await start_host(env=model.environment)
    for dish in ("bass", "tofu", "beef"):
        model.says(f"I ordered {dish}.")
        await (await session_of(host, "Alice")).run("Order something.")
    model.says("ok")

    await (await session_of(host, "Alice", recent=2, maxResults=1)).run(question)

    memory = contents(model)[-1][1]
    latest = [line.partition("] ")[2] for line in memory.partition("The latest, in order:\n")[2].splitlines()]
    assert latest == ["Order something.", "I ordered tofu.", "Order something.", "I ordered beef."]
    assert memory.count("I ordered beef.") == 1
