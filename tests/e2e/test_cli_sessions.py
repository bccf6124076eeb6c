"""`agent-sidecar sessions`: what is stored can be listed, looked at, taken away and brought back."""

import json
import stat
from pathlib import Path

import pytest

from tests.e2e.cli_process import COMMAND, Cli, Outcome
from tests.e2e.terminal import Terminal


@pytest.fixture
def cli(tmp_path: Path) -> Cli:
    return Cli(tmp_path)


@pytest.fixture
async def stored(cli: Cli) -> Cli:
    """A store with the sessions `one` and `two`."""
    for name in ("one", "two"):
        await cli("run", f"hello from {name}", "--session", name, "--model", "scripted:echo", "--store", cli.store)
    return cli


async def sessions(cli: Cli, *arguments: str, stdin: str = "") -> Outcome:
    return await cli("sessions", *arguments, "--store", cli.store, stdin=stdin)


async def test_list_is_a_row_a_session_newest_first(stored: Cli) -> None:
    outcome = await sessions(stored, "list")
    rows = [line.split("\t") for line in outcome.out.splitlines()]
    assert (outcome.code, outcome.err) == (0, "")
    assert [(row[0], row[2], row[5]) for row in rows] == [("two", "default", "idle"), ("one", "default", "idle")]


async def test_list_as_json_has_everything_and_can_be_filtered(stored: Cli) -> None:
    found = json.loads((await sessions(stored, "list", "--json", "--query", "on")).out)
    assert [(session["sessionId"], session["lastSeq"] > 0) for session in found] == [("one", True)]
    assert json.loads((await sessions(stored, "list", "--json", "--archived")).out) == []


async def test_the_store_may_be_named_before_the_action_too(stored: Cli) -> None:
    outcome = await stored("sessions", "--store", stored.store, "list")
    assert outcome.out.count("\n") == 2


async def test_list_on_a_terminal_is_a_table_without_control_characters(stored: Cli) -> None:
    document = json.loads((await sessions(stored, "export", "one")).out)
    document["session"]["title"] = "red \x1b[31malert"
    await sessions(stored, "import", "-", "--as", "three", stdin=json.dumps(document))
    with Terminal([*COMMAND, "sessions", "list", "--store", stored.store], stored.folder, stored.environment) as shown:
        assert shown.end() == 0
        heading, *rows = shown.shown.splitlines()
    assert heading.split() == ["session", "title", "agent", "model", "updated", "status"]
    assert sorted(row.split()[0] for row in rows) == ["one", "three", "two"]
    assert any("red [31malert" in row for row in rows)


async def test_show_tells_state_and_messages(stored: Cli) -> None:
    shown = (await sessions(stored, "show", "one")).out
    assert shown.startswith("sessionId: one\nagent: default\n")
    assert shown.endswith("user: hello from one\ndefault: hello from one\n")
    told = json.loads((await sessions(stored, "show", "one", "--json")).out)
    assert told["state"]["session"]["sessionId"] == "one"
    assert [message["role"] for message in told["messages"]] == ["user", "assistant"]


async def test_an_exported_session_comes_back_as_it_was(stored: Cli) -> None:
    file = stored.folder / "one.json"
    exported = await sessions(stored, "export", "one", "--file", str(file))
    assert exported.out == f"exported: one to {file}, 2 messages\n"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert file.read_text(encoding="utf-8") == (await sessions(stored, "export", "one")).out
    assert [path.name for path in stored.folder.glob("*.json*")] == ["one.json"]

    assert (await sessions(stored, "delete", "one")).out == "deleted: one\n"
    assert (await sessions(stored, "show", "one")).code == 1
    assert (await sessions(stored, "import", str(file))).out == "imported: one\n"
    assert (await sessions(stored, "show", "one")).out.endswith("user: hello from one\ndefault: hello from one\n")
    again = await sessions(stored, "import", str(file))
    assert (again.code, again.out) == (1, "")
    assert "exists already" in again.err


async def test_a_session_longer_than_a_message_usually_may_be_is_exported_whole(cli: Cli) -> None:
    (cli.folder / "small.toml").write_text("[limits]\nmax_outbound_bytes = 65536\n")
    text = "é" * 200_000
    await cli("run", "-", "--session", "long", "--model", "scripted:echo", "--store", cli.store, stdin=text)
    document = json.loads((await sessions(cli, "export", "long", "--config", "small.toml")).out)
    assert [message["content"][0]["text"] for message in document["messages"]] == [text, text]


async def test_delete_goes_on_after_one_that_is_not_there_and_says_so(stored: Cli) -> None:
    outcome = await sessions(stored, "delete", "one", "none", "two")
    assert (outcome.code, outcome.out) == (1, "deleted: one\ndeleted: two\n")
    assert "none" in outcome.err
    assert (await sessions(stored, "list")).out == ""


@pytest.mark.parametrize(
    ("content", "said"), [("no json", "is no JSON document"), ("[1]", "is no exported session"), ("{}", "format")]
)
async def test_what_is_no_exported_session_is_refused(cli: Cli, content: str, said: str) -> None:
    (cli.folder / "wrong.json").write_text(content)
    outcome = await sessions(cli, "import", "wrong.json")
    assert (outcome.code, outcome.out) == (1, "")
    assert said in outcome.err


async def test_a_file_that_cannot_be_read_or_written_is_named(stored: Cli) -> None:
    reading = await sessions(stored, "import", "nowhere.json")
    writing = await sessions(stored, "export", "one", "--file", "nowhere/one.json")
    assert (reading.code, writing.code) == (1, 1)
    assert "cannot read nowhere.json" in reading.err
    assert "cannot write nowhere/one.json" in writing.err


async def test_an_action_is_needed(cli: Cli) -> None:
    assert (await cli("sessions")).code == 2
