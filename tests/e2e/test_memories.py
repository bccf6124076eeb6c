"""`listMemories`, `searchMemories`, `deleteMemories`: people see what is remembered of them, and erase it."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.bench.fake_model import FakeModel
from tests.bench.host import FakeHost, HostSession
from tests.bench.stored import stored_run

MEMORY = {"type": "chat_history_memory", "sourceId": "memory"}
ALICE = {"userId": "Alice"}


async def session_of(host: FakeHost, user: str, **more: Any) -> HostSession:
    """A session with a memory of its user."""
    scope = {"userId": {"fromState": "user_id"}, **more.pop("scope", {})}
    entry = {**MEMORY, "config": {"storageScope": scope, **more.pop("config", {})}}
    return await host.create_session(agent={"contextProviders": [entry]}, state={"user_id": user}, **more)


async def tell(host: FakeHost, user: str, *said: str, **more: Any) -> None:
    for text in said:
        await (await session_of(host, user, **more)).run(text)


async def listed(host: FakeHost, scope: dict[str, str], **more: Any) -> list[dict[str, Any]]:
    return (await host.request("listMemories", {"scope": scope, **more}))["items"]


def echo(model: FakeModel) -> None:
    model.otherwise(lambda request: "Noted.")


def words_of_memories(store: str) -> str:
    """All that the tables of long-term memory hold, in small letters."""
    with closing(sqlite3.connect(store.removeprefix("sqlite:"))) as connection:
        names = [row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE name LIKE 'memor%'")]
        tables = [name for name in names if connection.execute(f"PRAGMA table_info({name})").fetchall()]
        return "".join(str(row) for name in tables for row in connection.execute(f"SELECT * FROM {name}")).lower()


async def test_what_is_remembered_is_listed_newest_first_with_its_origin(start_host: Any, model: FakeModel) -> None:
    host: FakeHost = await start_host(env=model.environment)
    echo(model)
    session = await session_of(host, "Alice")
    await session.run("I cannot eat spicy food.")

    reply, request = await listed(host, ALICE)

    assert (request["role"], request["text"]) == ("user", "I cannot eat spicy food.")
    assert (reply["role"], reply["text"]) == ("assistant", "Noted.")
    assert {item["sessionId"] for item in (reply, request)} == {session.id}
    assert reply["scope"] == request["scope"] == ALICE
    assert request["createdAt"] <= reply["createdAt"]
    assert request["memoryId"] != reply["memoryId"]


async def test_a_scope_matches_exactly_what_is_given_and_nothing_wider(start_host: Any, model: FakeModel) -> None:
    host: FakeHost = await start_host(env=model.environment)
    echo(model)
    await tell(host, "Alice", "tea at home")
    await tell(host, "Alice", "coffee at work", scope={"agentId": "barista"})
    await tell(host, "Bob", "beer")

    def texts(items: list[dict[str, Any]]) -> set[str]:
        return {item["text"] for item in items if item["role"] == "user"}

    assert texts(await listed(host, ALICE)) == {"tea at home", "coffee at work"}
    assert texts(await listed(host, {**ALICE, "agentId": "barista"})) == {"coffee at work"}
    assert texts(await listed(host, {"agentId": "barista"})) == {"coffee at work"}
    assert await listed(host, {**ALICE, "agentId": "waiter"}) == []
    assert await listed(host, {"userId": "alice"}) == []
    assert await listed(host, ALICE, collection="another") == []


async def test_pages_follow_each_other_without_a_gap(start_host: Any, model: FakeModel) -> None:
    host: FakeHost = await start_host(env=model.environment)
    echo(model)
    await tell(host, "Alice", *(f"thing {number}" for number in range(4)))
    whole = await listed(host, ALICE)

    found: list[dict[str, Any]] = []
    page: dict[str, Any] = {"nextCursor": None}
    while "nextCursor" in page:
        cursor = {"cursor": page["nextCursor"]} if page["nextCursor"] else {}
        page = await host.request("listMemories", {"scope": ALICE, "limit": 3, **cursor})
        assert len(page["items"]) <= 3
        found += page["items"]

    assert len(whole) == 8
    assert found == whole


async def test_a_page_is_cut_by_bytes_too(start_host: Any, model: FakeModel, tmp_path: Path) -> None:
    config = tmp_path / "sidecar.toml"
    config.write_text("[limits]\npage_bytes = 4096\n", encoding="utf-8")
    host: FakeHost = await start_host(env=model.environment, args=("--config", str(config)))
    echo(model)
    await tell(host, "Alice", *(f"{number} " + "long " * 500 for number in range(4)))

    page = await host.request("listMemories", {"scope": ALICE})
    found = list(page["items"])
    while "nextCursor" in page:
        assert sum(len(item["text"]) for item in page["items"]) <= 4096
        page = await host.request("listMemories", {"scope": ALICE, "cursor": page["nextCursor"]})
        found += page["items"]

    assert [item["text"][0] for item in found if item["role"] == "user"] == ["3", "2", "1", "0"]


async def test_a_search_gives_what_fits_best_first_with_scores(start_host: Any, model: FakeModel) -> None:
    host: FakeHost = await start_host(env=model.environment)
    echo(model)
    await tell(host, "Alice", "I cannot eat spicy food.", "My cat is called Moritz.", "My cat is called Moritz.")
    await tell(host, "Bob", "My cat is called Felix.")

    found = (await host.request("searchMemories", {"scope": ALICE, "query": "what is my cat called?"}))["items"]

    best = found[0]
    assert best["text"] == "My cat is called Moritz."
    assert best["count"] == 2
    assert 0 < best["score"] <= 1
    assert [item["score"] for item in found] == sorted((item["score"] for item in found), reverse=True)
    assert "Felix" not in json.dumps(found)
    one = await host.request("searchMemories", {"scope": ALICE, "query": "cat", "limit": 1})
    assert len(one["items"]) == 1
    blank = await host.request("searchMemories", {"scope": ALICE, "query": " \n"})
    assert blank["items"] == []


@pytest.mark.parametrize("method", ["listMemories", "searchMemories", "deleteMemories"])
@pytest.mark.parametrize(
    "scope",
    [
        pytest.param({}, id="of everybody"),
        pytest.param({"userId": ""}, id="empty"),
        pytest.param({"userId": " \t"}, id="blank"),
        pytest.param({"userId": None}, id="null"),
        pytest.param({"userid": "Alice"}, id="misspelt"),
        pytest.param({"userId": "Alice", "tenant": "x"}, id="with another key"),
        pytest.param({"userId": 7}, id="no text"),
        pytest.param("Alice", id="no object"),
        pytest.param(None, id="missing"),
    ],
)
async def test_a_scope_that_says_nothing_is_refused(host: FakeHost, method: str, scope: Any) -> None:
    rest = {"searchMemories": {"query": "x"}, "deleteMemories": {"all": True}}.get(method, {})

    refused = await host.refusal(method, {"scope": scope, **rest} if scope is not None else rest)

    assert (refused.code, refused.kind) == (-32602, "invalidParams")


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("listMemories", {"scope": ALICE, "cursor": "what?"}),
        ("listMemories", {"scope": ALICE, "limit": 0}),
        ("listMemories", {"scope": ALICE, "type": "todo"}),
        ("searchMemories", {"scope": ALICE}),
        ("searchMemories", {"scope": ALICE, "query": "x", "limit": 0}),
        ("deleteMemories", {"scope": ALICE}),
        ("deleteMemories", {"scope": ALICE, "all": False}),
        ("deleteMemories", {"scope": ALICE, "all": True, "memoryIds": ["x"]}),
    ],
)
async def test_what_cannot_be_meant_is_refused(host: FakeHost, method: str, params: dict[str, Any]) -> None:
    assert (await host.refusal(method, params)).code == -32602


async def test_what_is_erased_by_id_is_gone_with_its_turn_and_nothing_else_is(
    start_host: Any, model: FakeModel, store: str
) -> None:
    host: FakeHost = await start_host(env=model.environment, store=store)
    echo(model)
    await tell(host, "Alice", "My diagnosis is zebrafever.", "My cat is called Moritz.")
    await tell(host, "Bob", "I like walks.")
    (doomed,) = [item for item in await listed(host, ALICE) if "zebrafever" in item["text"]]
    (foreign,) = [item for item in await listed(host, {"userId": "Bob"}) if item["role"] == "user"]

    ids = [doomed["memoryId"], foreign["memoryId"], "none such"]
    answer = await host.request("deleteMemories", {"scope": ALICE, "memoryIds": ids})

    assert answer == {"deleted": 2}  # what was said, and the reply, which is kept with what was said as its context
    assert {item["text"] for item in await listed(host, ALICE)} == {"My cat is called Moritz.", "Noted."}
    assert len(await listed(host, {"userId": "Bob"})) == 2
    assert words_of_memories(store).count("zebrafever") == 0
    assert words_of_memories(store).count("moritz") > 0
    again = await host.request("deleteMemories", {"scope": ALICE, "memoryIds": ids})
    assert again == {"deleted": 0}


async def test_erased_is_gone_from_the_store_s_files_and_from_the_explanations_of_earlier_runs(
    start_host: Any, model: FakeModel, store: str
) -> None:
    host: FakeHost = await start_host(env=model.environment, store=store)
    echo(model)
    first = await session_of(host, "Alice")
    await first.run("My diagnosis is zebrafever.")
    second = await session_of(host, "Alice")
    result = await second.run("What was my diagnosis?")
    asked = {"sessionId": second.id, "runId": result["runId"]}
    before = _injected(await host.request("explainRun", asked))
    assert "My diagnosis is zebrafever." in before["text"]
    assert "zebrafever" in model.last_request.body["messages"][-1]["content"]
    assert before["text"] == model.last_request.body["messages"][-1]["content"]

    await host.request("deleteMemories", {"scope": ALICE, "all": True})

    after = _injected(await host.request("explainRun", asked))
    assert "zebrafever" not in json.dumps(after)
    assert after["memoryIds"] == before["memoryIds"]
    assert after["text"].count("(erased)") == len(after["memoryIds"])
    assert await listed(host, ALICE) == []
    await host.request(
        "deleteSession", {"sessionId": first.id}
    )  # its transcript is no memory: it goes with its session
    host.hang_up()
    await host.wait()
    record = await stored_run(store, second.id, result["runId"])
    assert "zebrafever" not in json.dumps(record)


async def test_an_explanation_holds_no_text_of_a_memory_even_while_there_is_one(
    start_host: Any, model: FakeModel, store: str
) -> None:
    host: FakeHost = await start_host(env=model.environment, store=store)
    echo(model)
    await tell(host, "Alice", "My diagnosis is zebrafever.")
    session = await session_of(host, "Alice", config={"recent": 2, "contextPrompt": "Once upon a time:"})
    result = await session.run("What was my diagnosis?")

    record = json.dumps(await stored_run(store, session.id, result["runId"]))

    assert "Once upon a time:" in record
    assert "zebrafever" not in record


async def test_a_run_that_is_explained_in_another_process_shows_its_memories(
    start_host: Any, model: FakeModel, store: str
) -> None:
    writer: FakeHost = await start_host(env=model.environment, store=store)
    echo(model)
    await tell(writer, "Alice", "I cannot eat spicy food.")
    session = await session_of(writer, "Alice")
    result = await session.run("spicy food?")
    reader: FakeHost = await start_host(env=model.environment, store=store)

    told = await reader.request("explainRun", {"sessionId": session.id, "runId": result["runId"]})

    assert "I cannot eat spicy food." in _injected(told)["text"]


async def test_one_process_erases_what_another_has_written_and_has_open(
    start_host: Any, model: FakeModel, store: str
) -> None:
    owner: FakeHost = await start_host(env=model.environment, store=store)
    echo(model)
    session = await session_of(owner, "Alice")
    await session.run("My diagnosis is zebrafever.")
    other: FakeHost = await start_host(env=model.environment, store=store)

    assert len(await listed(other, ALICE)) == 2
    assert await other.request("deleteMemories", {"scope": ALICE, "all": True}) == {"deleted": 2}

    assert await listed(owner, ALICE) == []
    await (await session_of(owner, "Alice")).run("What was my diagnosis?")
    assert all("zebrafever" not in message["content"] for message in model.last_request.body["messages"])


async def test_a_memory_can_be_seen_and_erased_where_its_embedder_cannot_be_had(
    start_host: Any, model: FakeModel, store: str, tmp_path: Path
) -> None:
    host: FakeHost = await start_host(env=model.environment, store=store)
    echo(model)
    await tell(host, "Alice", "I cannot eat spicy food.")
    config = tmp_path / "sidecar.toml"
    config.write_text('[embeddings]\nembedder = "nowhere:model"\n', encoding="utf-8")
    without: FakeHost = await start_host(env=model.environment, store=store, args=("--config", str(config)))

    refused = await without.refusal("searchMemories", {"scope": ALICE, "query": "spicy"})

    assert refused.kind == "modelNotFound"
    assert len(await listed(without, ALICE)) == 2
    assert await without.request("deleteMemories", {"scope": ALICE, "all": True}) == {"deleted": 2}


async def test_the_files_of_a_scope_are_memories_too(start_host: Any, model: FakeModel, tmp_path: Path) -> None:
    host: FakeHost = await start_host(env={**model.environment, "XDG_DATA_HOME": str(tmp_path / "data")})
    place = {"type": "filesystem", "path": str(tmp_path / "notes")}
    for user, where in (("Alice", {"store": place}), ("Alice", {}), ("Bob", {})):
        config = {"scope": {"userId": {"fromState": "user_id"}}, **where}
        session = await host.create_session(
            agent={"contextProviders": [{"type": "file_memory", "config": config}]}, state={"user_id": user}
        )
        name = f"{user}-{len(where)}.md"
        model.calls("file_memory_write", {"file_name": name, "content": f"{user} likes tea.", "description": "Drinks"})
        model.says("Done.")
        await session.run("Write that down.")
    files = {"type": "file_memory", "scope": ALICE}

    page = await host.request("listMemories", {**files, "limit": 1})
    rest = await host.request("listMemories", {**files, "cursor": page["nextCursor"]})
    (found,) = (await host.request("searchMemories", {**files, "query": "tea", "limit": 1}))["items"]

    items = [*page["items"], *rest["items"]]
    assert [item["memoryId"] for item in items] == ["Alice-0.md", "Alice-1.md"]
    assert len(alices_files(tmp_path)) == 4  # with what the indexes say of them
    assert {item["text"] for item in items} == {"Drinks\n\nAlice likes tea."}
    assert "nextCursor" not in rest
    assert "likes tea" in found["text"]
    assert found["scope"] == ALICE
    assert await host.request("deleteMemories", {**files, "memoryIds": ["Alice-1.md", "../x"]}) == {"deleted": 1}
    assert await host.request("deleteMemories", {**files, "all": True}) == {"deleted": 1}
    assert alices_files(tmp_path) == []
    bob = await host.request("listMemories", {"type": "file_memory", "scope": {"userId": "Bob"}})
    assert len(bob["items"]) == 1
    assert (await host.request("deleteMemories", {**files, "scope": {"userId": "Nobody"}, "all": True}))["deleted"] == 0


async def test_an_explanation_does_not_keep_what_a_memory_of_files_holds(
    start_host: Any, model: FakeModel, store: str, tmp_path: Path
) -> None:
    host: FakeHost = await start_host(env=model.environment, store=store)
    place = {"type": "filesystem", "path": str(tmp_path / "notes")}
    entry = {"type": "file_memory", "config": {"scope": ALICE, "store": place}}
    session = await host.create_session(agent={"contextProviders": [entry]})
    arguments = {"file_name": "health.md", "content": "ill", "description": "zebrafever"}
    model.calls("file_memory_write", arguments)
    model.says("Done.")
    await session.run("Write that down.")
    model.says("Fine.")
    result = await session.run("Thanks.")
    assert "zebrafever" in json.dumps(model.last_request.body["messages"][1:])

    told = await host.request("explainRun", {"sessionId": session.id, "runId": result["runId"]})

    (index,) = [one for one in told["calls"][0]["messages"] if one["source"].get("sourceId") == "file_memory"]
    assert index["tokens"] > 0
    assert "zebrafever" not in json.dumps(told)


def alices_files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file() and b"Alice" in path.read_bytes()]


def _injected(told: dict[str, Any]) -> dict[str, Any]:
    (found,) = [one for one in told["calls"][0]["messages"] if one["source"].get("sourceId") == "memory"]
    return found
