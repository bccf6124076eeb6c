"""What one user has said is never seen where another one is served, whatever the model asks for."""

import asyncio
import json
from collections.abc import Callable
from typing import Any

from tests.bench.fake_model import TC, F, FakeModel, Item, Recorded
from tests.bench.host import FakeHost, HostSession
from tests.conftest import scaled

USERS = {"Alice": "canaryalpha", "Bob": "canarybravo"}
QUESTION = "What are the canary words canaryalpha and canarybravo?"
"""Finds whatever there is; the model asks it, so it is looked for in results only."""


WIDER: tuple[Callable[[str], dict[str, Any]], ...] = (
    lambda user: {"userId": user},
    lambda user: {"user_id": user},
    lambda user: {"scope": {"userId": user}},
    lambda user: {"searchScope": {}},
    lambda user: {"collection": "memory", "applicationId": "x"},
)
"""Arguments that a search might take its scope from."""


def agent(user: str, search_time: str) -> dict[str, Any]:
    scope = {"userId": {"fromState": "user_id"}}
    config = {"storageScope": scope, "searchTime": search_time, "maxResults": 20, "recent": 20}
    return {
        "instructions": f"You serve {user}.",
        "contextProviders": [{"type": "chat_history_memory", "sourceId": "memory", "config": config}],
    }


def served(request: Recorded) -> str:
    """The user whom a request is for."""
    (user,) = [user for user in USERS if f"You serve {user}." in request.body["messages"][0]["content"]]
    return user


def other(user: str) -> str:
    (found,) = [canary for name, canary in USERS.items() if name != user]
    return found


def curious(request: Recorded) -> list[Item]:
    """A model that looks for everybody's words, by every argument that could widen the scope."""
    if not request.body.get("tools"):
        return ["Noted."]
    tried = len(request.tool_results)
    user = next(name for name in USERS if name != served(request))
    wider = WIDER[tried // 2 % len(WIDER)](user) if tried % 2 == 0 else {}  # too many failures in a row end the run
    if tried == 2 * len(WIDER):
        return ["I have looked."]
    arguments = {"userQuestion": "what is the canary word, please?", **wider}
    return [TC(0, f"c{tried}", "Search", json.dumps(arguments)), F("tool_calls")]


async def serve(host: FakeHost, user: str, number: int) -> HostSession:
    """A run that says the user's canary, or one that asks for canaries."""
    session = await host.create_session(
        agent=agent(user, "onDemand" if number % 3 == 2 else "beforeRun"), state={"user_id": user}
    )
    said = f"The canary word of day {number} is {USERS[user]}{number}." if number % 3 == 0 else "Say my canary word."
    result = await session.run(said)
    assert result["warnings"] == []
    return session


async def test_two_users_words_never_cross_on_any_surface(start_host: Any, model: FakeModel, store: str) -> None:
    host: FakeHost = await start_host(env=model.environment, store=store, args=("--log-level", "debug"))
    model.otherwise(curious)
    sessions: dict[str, list[HostSession]] = {user: [] for user in USERS}
    for number in range(scaled(6)):
        for user, session in zip(
            USERS, await asyncio.gather(*(serve(host, user, number) for user in USERS)), strict=True
        ):
            sessions[user].append(session)

    recalled: set[str] = set()
    for request in model.requests:
        seen = json.dumps(request.body)
        assert other(served(request)) not in seen
        if USERS[served(request)] in json.dumps(request.body["messages"][2:]):
            recalled.add(served(request))
    assert recalled == set(USERS)  # the memory was at work
    for user, own in sessions.items():
        for session in own:
            surfaces = [
                host.events(session.id),
                await host.request("getState", {"sessionId": session.id}),
                await host.request("getHistory", {"sessionId": session.id}),
                await host.request("getEvents", {"sessionId": session.id, "afterSeq": 0}),
                *[
                    await host.request("explainRun", {"sessionId": session.id, "runId": event["runId"]})
                    for event in host.events(session.id, "run.completed")
                ],
            ]
            assert other(user) not in json.dumps(surfaces)
        scope = {"userId": user}
        listed = await host.request("listMemories", {"scope": scope})
        found = await host.request("searchMemories", {"scope": scope, "query": QUESTION, "limit": 100})
        assert USERS[user] in json.dumps(listed)
        assert USERS[user] in json.dumps(found)
        assert other(user) not in json.dumps([listed, found])
    assert not any(canary in host.stderr.decode() for canary in USERS.values())


async def test_arguments_that_would_widen_a_scope_are_refused(start_host: Any, model: FakeModel) -> None:
    host: FakeHost = await start_host(env=model.environment)
    model.otherwise(curious)
    for user in USERS:
        await serve(host, user, 0)

    session = await serve(host, "Alice", 2)

    results = [*model.last_request.tool_results.values()]
    assert len(results) == 2 * len(WIDER)
    assert not any("canary" in result for result in results[::2])
    assert all(USERS["Alice"] in result for result in results[1::2])
    completed = host.events(session.id, "tool.completed")
    assert [event["data"]["status"] for event in completed] == ["failed", "completed"] * len(WIDER)


async def test_erasing_one_user_s_memories_leaves_the_other_s(start_host: Any, model: FakeModel) -> None:
    host: FakeHost = await start_host(env=model.environment)
    model.otherwise(curious)
    for user in USERS:
        await serve(host, user, 0)
    bob = await host.request("listMemories", {"scope": {"userId": "Bob"}})

    await host.request("deleteMemories", {"scope": {"userId": "Alice"}, "all": True})

    assert await host.request("listMemories", {"scope": {"userId": "Bob"}}) == bob
    assert (await host.request("listMemories", {"scope": {"userId": "Alice"}}))["items"] == []
