"""`doctor --bundle`: what a bug report needs in one file, and nothing that a stranger must not see."""

import json
import re
import stat
import zipfile
from pathlib import Path

import pytest

from protocol.version import VERSION
from tests.bench.fake_model import FakeModel
from tests.bench.model_script import Raw, Reply
from tests.e2e.cli_process import Cli, Outcome

CONFIG = """
default_agent = "helper"
default_model = "local:a-model"
plugins = ["plugins"]

[endpoints.local]
base_url = "http://canaryuser:canary-password@127.0.0.1:9/v1?sig=canary-query&x=canary"
api_key_command = ["sh", "-c", "echo canary-command"]
organization = "canary-organization"
headers = { X-Key = "canary-header" }

[endpoints.other]
base_url = "https://other.example/v1"
api_key_env = "MY_OWN_VARIABLE"

[endpoints.plugged]
type = "chat:Client"
config = { url = "canary-plugin-config", retries = 3 }

[agents.helper]
description = "canary-description"
instructions = "canary-instructions"
options = { temperature = 0.5, stop = ["canary-stop"], instructions = "canary-more" }
harness = false

[[agents.helper.context_providers]]
type = "static_messages"
source_id = "reminder"
config = { messages = [{ role = "user", content = [{ type = "text", text = "canary-message" }] }] }

[agents.helper.approvals]
rules = [{ decision = "deny", tool = "run_shell", arguments = { command = "canary-argument" } }]

[limits]
max_queued_runs = 7
"""


@pytest.fixture
def cli(tmp_path: Path) -> Cli:
    (tmp_path / "mine.toml").write_text(CONFIG)
    (tmp_path / "plugins").mkdir()
    (tmp_path / "plugins" / "chat.py").write_text('PROMPT = "canary-source"\n')
    return Cli(tmp_path)


async def bundle(cli: Cli, *arguments: str, **env: str) -> tuple[Outcome, dict[str, str]]:
    """What was printed, and the parts of the archive."""
    before = set(cli.folder.glob("*.zip"))
    outcome = await cli("doctor", "--config", "mine.toml", "--store", cli.store, *arguments, **env)
    (path,) = set(cli.folder.glob("*.zip")) - before
    with zipfile.ZipFile(path) as archive:
        return outcome, {name: archive.read(name).decode() for name in archive.namelist()}


async def test_no_secret_and_no_prompt_is_in_any_part(cli: Cli, tmp_path: Path) -> None:
    await cli("run", "canary-prompt", "--session", "s", "--model", "scripted:echo", "--store", cli.store)
    log = tmp_path / "log.txt"
    log.write_text(
        "asked https://me:canary-in-log@host/?q=canary with sk-canaryabcdefghijklmnop and canary-environment\n"
    )

    outcome, parts = await bundle(
        cli,
        "--bundle",
        "--log-file",
        str(log),
        OPENAI_API_KEY="canary-environment",
        MY_OWN_VARIABLE="canary-own",
        SOME_TOKEN="canary-token",
    )

    assert outcome.code == 0
    assert outcome.err == ""
    assert {name: text for name, text in parts.items() if "canary" in text} == {}
    assert str(tmp_path) not in "".join(parts.values())


async def test_what_a_maintainer_asks_for_is_in_it(cli: Cli, tmp_path: Path) -> None:
    await cli("run", "hello", "--session", "s", "--model", "scripted:echo", "--store", cli.store)
    (tmp_path / "log.txt").write_text("a line\n")

    _, parts = await bundle(cli, "--bundle", "--log-file", "log.txt", MY_OWN_VARIABLE="x", HTTPS_PROXY="http://p")

    assert json.loads(parts["versions.json"])["agent-sidecar"] == VERSION
    assert "default model" in {check["name"] for check in json.loads(parts["doctor.json"])}
    configuration = parts["configuration.toml"]
    for shown in (
        'base_url = "http://<secret>@127.0.0.1:9/v1?<secret>"',
        'api_key_command = ["sh", "(2 characters)", "(19 characters)"]',
        'instructions = "(19 characters)"',
        "retries = 3",
        'model = "local:a-model"',
    ):
        assert shown in configuration
    assert re.search(r"max_queued_runs = 7 +# mine\.toml", configuration)
    assert re.search(r'type = "static_messages"', configuration)
    assert {"MY_OWN_VARIABLE", "HTTPS_PROXY", "HOME"} <= set(json.loads(parts["environment.json"]))
    store = json.loads(parts["store.json"])
    assert store["path"] == "~/sessions.db"
    assert (store["rows"]["sessions"], store["rows"]["runs"], store["rows"]["messages"]) == (1, 1, 2)
    assert json.loads(parts["plugins.json"])["folders"] == {"~/plugins": ["chat.py"]}
    assert parts["log.txt"] == "a line\n"


async def test_it_says_what_it_holds_and_to_look_before_it_is_sent(cli: Cli) -> None:
    outcome, parts = await bundle(cli, "--bundle", "mine.zip")
    assert "Look through it before you send it" in outcome.out
    assert "mine.zip" in outcome.out
    assert all(f"\n{name} " in outcome.out for name in parts if name != "README.txt")
    assert parts["README.txt"] in outcome.out


async def test_it_is_this_users_alone_and_named_by_its_date(cli: Cli) -> None:
    await bundle(cli, "--bundle")
    (path,) = cli.folder.glob("*.zip")
    assert re.fullmatch(r"agent-sidecar-report-\d{8}-\d{6}\.zip", path.name)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


async def test_another_file_is_never_overwritten(cli: Cli) -> None:
    (cli.folder / "mine.zip").write_text("mine")
    outcome = await cli("doctor", "--bundle", "mine.zip", "--config", "mine.toml")
    assert (outcome.code, outcome.out) == (1, "")
    assert "mine.zip exists already" in outcome.err
    assert (cli.folder / "mine.zip").read_text() == "mine"


async def test_a_folder_that_is_missing_is_named(cli: Cli) -> None:
    outcome = await cli("doctor", "--bundle", "nowhere/mine.zip", "--config", "mine.toml")
    assert outcome.code == 1
    assert "nowhere is no folder; create it first" in outcome.err


async def test_what_is_wrong_with_a_configuration_or_a_store_is_reported_too(cli: Cli) -> None:
    (cli.folder / "mine.toml").write_text('default_modle = "x:y"\n')
    (cli.folder / "sessions.db").write_text("a diary, not a database" * 50)

    outcome, parts = await bundle(cli, "--bundle")

    assert outcome.code == 0
    assert "did you mean 'default_model'?" in parts["configuration.toml"]
    assert "problem" in json.loads(parts["store.json"])
    assert "diary" not in "".join(parts.values())


async def test_only_the_end_of_a_long_log_is_taken(cli: Cli) -> None:
    (cli.folder / "log.txt").write_text("".join(f"line {number}\n" for number in range(50_000)))
    _, parts = await bundle(cli, "--bundle", "--log-file", "log.txt")
    first, *_, last = parts["log.txt"].splitlines()
    assert re.fullmatch(r"line \d{5}", first)
    assert last == "line 49999"
    assert len(parts["log.txt"]) <= 256 * 1024


async def test_an_endpoint_that_repeats_its_key_gives_none_away(cli: Cli, model: FakeModel) -> None:
    """Without a default model it is asked for its models, with the key that the command prints."""
    (cli.folder / "key").write_text("canary-printed")
    (cli.folder / "mine.toml").write_text('[endpoints.openai]\napi_key_command = ["cat", "key"]\n')
    refusal = json.dumps({"error": {"message": "wrong key: canary-printed", "type": "auth"}}).encode()
    model.lists(Reply([Raw(refusal)], 401, {"Content-Type": "application/json", "Content-Length": str(len(refusal))}))

    outcome, parts = await bundle(cli, "--bundle", OPENAI_BASE_URL=model.url)

    assert model.other_requests[0].headers["authorization"] == "Bearer canary-printed"
    (found,) = [check for check in json.loads(parts["doctor.json"]) if check["name"] == "default model"]
    assert found["status"] == "problem"
    assert "canary" not in "".join(parts.values()) + outcome.out + outcome.err
