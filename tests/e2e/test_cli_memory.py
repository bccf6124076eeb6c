"""`agent-sidecar memory`: people look at what is remembered of them, take it away, and erase it."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.bench.fake_embeddings import FakeEmbeddings
from tests.bench.host import FakeHost
from tests.e2e.cli_process import COMMAND, Cli, Outcome
from tests.e2e.terminal import Terminal

ALICE = ("--scope", "userId=Alice")
CONFIG = """
default_model = "scripted:echo"

[embeddings]
embedder = "none"

[[agents.default.context_providers]]
type = "chat_history_memory"
config = { storageScope = { userId = { fromState = "user_id" } }, storeResponseSources = [] }
"""


@pytest.fixture
def cli(tmp_path: Path) -> Cli:
    (tmp_path / "sidecar.toml").write_text(CONFIG, encoding="utf-8")
    return Cli(tmp_path)


@pytest.fixture
async def host(cli: Cli, start_host: Any) -> FakeHost:
    """Another process on the same store, with memories of Alice and Bob. It stays there."""
    host: FakeHost = await start_host(store=cli.store, args=("--config", str(cli.folder / "sidecar.toml")))
    for user, text in (
        ("Alice", "I cannot eat spicy food."),
        ("Alice", "My cat is\tcalled\nMoritz."),
        ("Bob", "Beer."),
    ):
        session = await host.create_session(state={"user_id": user})
        await session.run(text)
    return host


async def memory(cli: Cli, *arguments: str, stdin: str = "") -> Outcome:
    config = ("--config", str(cli.folder / "sidecar.toml"))
    return await cli("memory", *arguments, "--store", cli.store, *config, stdin=stdin)


async def test_list_is_a_row_a_memory_newest_first(cli: Cli, host: FakeHost) -> None:
    outcome = await memory(cli, "list", *ALICE)

    rows = [line.split("\t") for line in outcome.out.splitlines()]
    assert (outcome.code, outcome.err) == (0, "")
    assert [row[2:] for row in rows] == [["user", "My cat is called Moritz."], ["user", "I cannot eat spicy food."]]


async def test_list_as_json_has_everything(cli: Cli, host: FakeHost) -> None:
    found = json.loads((await memory(cli, "list", *ALICE, "--json")).out)

    assert [item["text"] for item in found] == ["My cat is\tcalled\nMoritz.", "I cannot eat spicy food."]
    assert all(item["scope"] == {"userId": "Alice"} for item in found)
    assert json.loads((await memory(cli, "list", *ALICE, "--json", "--collection", "another")).out) == []
    assert json.loads((await memory(cli, "list", *ALICE, "--scope", "agentId=x", "--json")).out) == []


async def test_search_shows_what_fits_with_its_score(cli: Cli, host: FakeHost) -> None:
    rows = [
        line.split("\t") for line in (await memory(cli, "search", *ALICE, "what is my cat called?")).out.splitlines()
    ]
    assert rows[0][0] == "1.00"
    assert rows[0][-1] == "My cat is called Moritz."

    found = json.loads((await memory(cli, "search", "cat", *ALICE, "--json", "--limit", "1")).out)
    assert [item["text"] for item in found] == ["My cat is\tcalled\nMoritz."]


async def test_export_is_one_json_object_a_line(cli: Cli, host: FakeHost) -> None:
    lines = (await memory(cli, "export", *ALICE)).out.splitlines()

    listed = json.loads((await memory(cli, "list", *ALICE, "--json")).out)
    assert [json.loads(line) for line in lines] == listed


async def test_what_is_deleted_is_gone_for_the_process_that_wrote_it_too(cli: Cli, host: FakeHost) -> None:
    newest = json.loads((await memory(cli, "list", *ALICE, "--json")).out)[0]["memoryId"]

    assert (await memory(cli, "delete", newest, *ALICE, "--yes")).out == "deleted: 1\n"
    left = (await host.request("listMemories", {"scope": {"userId": "Alice"}}))["items"]
    assert [item["text"] for item in left] == ["I cannot eat spicy food."]

    assert (await memory(cli, "delete", "--all", *ALICE, "--yes")).out == "deleted: 1\n"
    assert (await memory(cli, "list", *ALICE)).out == ""
    assert "Beer." in (await memory(cli, "list", "--scope", "userId=Bob")).out


async def test_nothing_is_deleted_where_nobody_can_be_asked(cli: Cli, host: FakeHost) -> None:
    outcome = await memory(cli, "delete", "--all", *ALICE, stdin="y\n")

    assert outcome.code == 2
    assert "--yes" in outcome.err
    assert (await memory(cli, "list", *ALICE)).out.count("\n") == 2


@pytest.mark.parametrize(("answer", "left"), [("n", 2), ("", 2), ("y", 0)])
async def test_on_a_terminal_it_asks_first(cli: Cli, host: FakeHost, answer: str, left: int) -> None:
    config = ["--config", str(cli.folder / "sidecar.toml")]
    command = [*COMMAND, "memory", "delete", "--all", *ALICE, "--store", cli.store, *config]
    with Terminal(command, cli.folder, cli.environment) as shown:
        shown.expect("Erase 2 of the memories of userId=Alice for good? [y/N]")
        shown.type(f"{answer}\r")
        assert shown.end() == (0 if left == 0 else 1)

    assert (await memory(cli, "list", *ALICE)).out.count("\n") == left


async def test_vectors_are_made_anew_by_another_embedder(cli: Cli, host: FakeHost) -> None:
    for dimension in (8, 16):
        async with FakeEmbeddings(dimension=dimension) as endpoint:
            (cli.folder / "sidecar.toml").write_text(
                CONFIG.replace('"none"', f'"e{dimension}:fake-embeddings"')
                + f'\n[endpoints.e{dimension}]\ntype = "openai"\nbase_url = "{endpoint.url}"\n',
                encoding="utf-8",
            )
            search = ("search", *ALICE, "spicy food")
            if dimension == 16:
                assert "agent-sidecar memory embed --collection memory" in (await memory(cli, *search)).err
            outcome = await memory(cli, "embed")
            assert outcome.out.startswith("embedded: 3 of memory by "), outcome.err
            assert "I cannot eat spicy food." in (await memory(cli, *search)).out


async def test_nothing_can_be_embedded_without_an_embedder(cli: Cli) -> None:
    outcome = await memory(cli, "embed")

    assert outcome.code == 1
    assert "agent-sidecar setup embeddings" in outcome.err


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["list"], "--scope"),
        (["list", "--scope", "userid=Alice"], "userId"),
        (["list", "--scope", "userId="], "userId"),
        (["list", "--scope", "userId= "], "userId"),
        (["list", "--scope", "Alice"], "userId"),
        (["list", *ALICE, "--scope", "userId=Bob"], "twice"),
        (["delete", *ALICE, "--yes"], "--all"),
        (["delete", "x", "--all", *ALICE, "--yes"], "--all"),
        (["search", *ALICE], "QUESTION"),
    ],
)
async def test_what_cannot_be_meant_is_told(cli: Cli, arguments: list[str], why: str) -> None:
    outcome = await memory(cli, *arguments)

    assert outcome.code == 2
    assert why in outcome.err
