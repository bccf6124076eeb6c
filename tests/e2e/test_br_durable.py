"""BR-08 and BR-18: what was acknowledged is there after a kill, as it was; a history has one owner."""

from pathlib import Path
from typing import Any

from tests.bench.fake_model import FakeModel
from tests.bench.host import FakeHost
from tests.conftest import scaled

CONFIG = """
[agents.scribe]
instructions = "Write it down."
model = "scripted:echo"
"""
PROVIDERS = [
    {"type": "static_messages", "sourceId": "notes", "config": {"messages": [{"role": "user", "content": "note"}]}},
    {"type": "structured_memory", "config": {"schema": {"type": "object", "properties": {"name": {"type": "string"}}}}},
]
STATE = {"userId": "u1", "deep": [{"n": 1.5}]}


async def test_an_acknowledged_session_survives_kill_9_right_after_its_answer(
    start_host: Any, store: str, tmp_path: Path
) -> None:
    config = tmp_path / "agents.toml"
    config.write_text(CONFIG)
    options = {"store": store, "args": ("--config", str(config))}
    acknowledged: dict[str, Any] = {}
    unanswered: set[str] = set()
    for turn in range(scaled(20)):
        host = await start_host(**options)
        await every_one_is_there(host, acknowledged)
        await whole_or_absent(host, unanswered)
        ids = [f"s{turn}.{n}" for n in range(8 if turn % 2 else 1)]
        asked = [host.ask("createSession", params(session_id)) for session_id in ids]
        first = await asked[0].result()
        host.kill()
        await host.wait()
        acknowledged = {ids[0]: first}
        for session_id, other in zip(ids, asked, strict=True):
            if other.succeeded:
                acknowledged[session_id] = await other.result()
        unanswered = set(ids) - set(acknowledged)
    await every_one_is_there(await start_host(**options), acknowledged)


def params(session_id: str) -> dict[str, Any]:
    """A session with something of everything."""
    return {
        "sessionId": session_id,
        "agent": "scribe",
        "instructions": "Briefly.",
        "contextProviders": PROVIDERS,
        "state": STATE,
        "metadata": {"id": session_id},
        "title": f"Session {session_id}",
    }


async def every_one_is_there(host: FakeHost, acknowledged: dict[str, Any]) -> None:
    """Every session is listed and resumes as it was answered: no message, the same agent, state and providers."""
    listed = {info["sessionId"] for info in (await host.request("listSessions", {"limit": 1000}))["sessions"]}
    assert set(acknowledged) <= listed
    for session_id, answered in acknowledged.items():
        session = await host.resume_session(session_id)
        assert session.opened["session"] == answered["session"]
        assert session.opened["providers"] == answered["providers"]
        assert "recovered" not in session.opened
        state = await session.state()
        assert state["state"] == STATE
        assert state["session"]["title"] == f"Session {session_id}"
        assert await session.history() == []


async def whole_or_absent(host: FakeHost, session_ids: set[str]) -> None:
    """A session that was not acknowledged can be made, whether or not it is there already."""
    for session_id in session_ids:
        resumed = await host.ask("resumeSession", {"sessionId": session_id}).message()
        if "error" in resumed:
            assert resumed["error"]["data"]["kind"] == "sessionNotFound"
            continue
        assert (await host.request("getState", {"sessionId": session_id}))["state"] == STATE
        assert (await host.request("createSession", params(session_id)))["session"] == resumed["result"]["session"]


# ---- BR-18 -------------------------------------------------------------------------------------------------------


async def test_two_histories_that_load_are_refused_by_name(host: FakeHost) -> None:
    first, second = {"type": "history", "sourceId": "mine"}, {"type": "history", "sourceId": "yours"}
    for refused in (
        await host.refusal("createSession", {"contextProviders": [first, second]}),
        await host.refusal("createSession", {"agent": {"contextProviders": [first]}, "contextProviders": [second]}),
        await host.refusal("createSession", {"agent": {"contextProviders": [first, second]}}),
    ):
        assert (refused.code, refused.kind) == (4015, "configInvalid")
        assert "'mine'" in refused.message
        assert "'yours'" in refused.message
    assert (await host.request("listSessions"))["sessions"] == []


async def test_each_message_stands_once_in_each_request(start_host: Any, model: FakeModel) -> None:
    host = await start_host(env=model.environment)
    agent = {"contextProviders": [{"type": "history", "sourceId": "mine"}]}
    session = await host.create_session(agent=agent)
    for turn in range(5):
        model.says(f"answer {turn}")
        await session.run(f"question {turn}")
        assert [message["content"] for message in model.last_request.messages if message["role"] != "system"] == [
            *(f"{kind} {earlier}" for earlier in range(turn) for kind in ("question", "answer")),
            f"question {turn}",
        ]


async def test_what_a_provider_adds_is_never_stored_nor_added_twice(start_host: Any, model: FakeModel) -> None:
    host = await start_host(env=model.environment)
    session = await host.create_session(contextProviders=PROVIDERS[:1])
    for turn in range(5):
        model.says("yes")
        await session.run(f"question {turn}")
        assert model.last_request.text.count("note") == 1
        assert len(await session.history()) == 2 * (turn + 1)
    found = await host.request("getHistory", {"sessionId": session.id, "sources": ["provider", "notes"]})
    assert found["messages"] == []
