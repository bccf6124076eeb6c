"""What the configuration is made of: the files, the environment and the flags that are read, and which of them wins."""

import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from sidecar.config.files import MAX_INSTRUCTIONS_BYTES, user_config_file
from sidecar.config.load import Loaded, load
from sidecar.errors import ConfigInvalid

Write = Callable[[str], Path]


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home of the test's own; the user's real configuration is never read."""
    home = tmp_path / "home"
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home))
    return home


@pytest.fixture
def user_file() -> Write:
    def write(text: str) -> Path:
        path = user_config_file()
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    return write


@pytest.fixture
def extra_file(tmp_path: Path) -> Write:
    def write(text: str) -> Path:
        path = tmp_path / "extra" / "mine.toml"
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        return path

    return write


def loaded(file: Path | None = None, environ: Mapping[str, str] | None = None, **flags: Any) -> Loaded:
    return load(config_file=file, environ=environ or {}, **{"store": None, "log_level": None, **flags})


def test_without_any_file_the_defaults_hold() -> None:
    result = loaded()

    assert result.files == ()
    assert result.config.default_agent == "default"
    assert result.config.default_model is None
    assert result.config.limits.max_message_bytes == 64 * 1024 * 1024
    assert set(result.config.endpoints) == {"openai", "openai-responses", "embedded", "scripted"}
    assert result.origin(("limits", "max_turns")) == "default"


def test_the_example_of_a_full_configuration_loads(extra_file: Write) -> None:
    result = loaded(
        extra_file(
            """
default_agent = "coder"
default_model = "local:qwen3"
[store]
path = "memory"
durability = "normal"
[endpoints.local]
base_url = "http://localhost:11434/v1"
headers = { "X-Team" = "blue" }
[agents.coder]
description = "Writes code"
instructions = "Be brief."
model = "openai:gpt-4.1-mini"
options = { temperature = 1, stop = ["END"] }
max_turns = 7
after_run_order = "forward"
[[agents.coder.context_providers]]
type = "chat_history_memory"
source_id = "memory"
config = { storage_scope = { user_id = { from_state = "user_id" } }, search_time = "beforeRun" }
"""
        )
    )

    coder = result.config.agents["coder"]
    assert coder.options is not None
    assert (coder.options.temperature, coder.options.stop, coder.max_turns) == (1, ("END",), 7)
    assert coder.context_providers is not None
    assert coder.context_providers[0].config == {
        "storage_scope": {"user_id": {"from_state": "user_id"}},
        "search_time": "beforeRun",
    }
    assert result.config.endpoints["local"].headers["X-Team"].get_secret_value() == "blue"


def test_later_sources_win_and_each_value_knows_its_own(user_file: Write, extra_file: Write) -> None:
    user = user_file(
        '[store]\npath = "sqlite:/u"\nkeep_event_runs = 1\n[logging]\nlevel = "debug"\n[limits]\nmax_turns = 3'
    )
    extra = extra_file('[store]\npath = "sqlite:/e"\n[limits]\nmax_tool_calls = 4')

    by_file = loaded(extra)
    by_environment = loaded(extra, {"AGENT_SIDECAR_STORE": "memory", "AGENT_SIDECAR_LOG": "INFO"})
    by_flag = loaded(extra, {"AGENT_SIDECAR_STORE": "memory"}, store="sqlite:/f", log_level="error")

    assert by_file.files == (user, extra)
    assert (by_file.config.store.path, by_file.origin(("store", "path"))) == ("sqlite:/e", str(extra))
    assert (by_file.config.limits.max_turns, by_file.origin(("limits", "max_turns"))) == (3, str(user))
    assert by_file.config.limits.max_tool_calls == 4
    assert by_environment.config.store.path == "memory"
    assert by_environment.config.store.keep_event_runs == 1
    assert (by_environment.config.logging.level, by_environment.origin(("logging", "level"))) == ("info", "environment")
    assert (by_flag.config.store.path, by_flag.origin(("store", "path"))) == ("sqlite:/f", "flag")
    assert by_flag.config.logging.level == "error"


def test_an_empty_variable_counts_as_not_set(extra_file: Write) -> None:
    result = loaded(extra_file('[store]\npath = "memory"'), {"AGENT_SIDECAR_STORE": "", "AGENT_SIDECAR_LOG": ""})

    assert result.config.store.path == "memory"
    assert result.config.logging.level == "warning"


def test_a_built_in_endpoint_is_changed_key_by_key(extra_file: Write) -> None:
    endpoint = loaded(extra_file("[endpoints.openai]\nmax_retries = 5")).config.endpoints["openai"]
    with_secret = loaded(extra_file('[endpoints.openai]\napi_key_secret = "k"')).config.endpoints["openai"]

    assert (endpoint.max_retries, endpoint.api_key_env) == (5, "OPENAI_API_KEY")
    assert (with_secret.api_key_secret, with_secret.api_key_env) == ("k", None)


def test_paths_are_relative_to_the_file_that_names_them(extra_file: Write, home: Path) -> None:
    file = extra_file('[store]\npath = "sqlite:data/s.db"\n[logging]\nfile = "log.txt"')

    assert loaded(file).config.store.path == f"sqlite:{file.parent / 'data' / 's.db'}"
    assert loaded(file).config.logging.file == str(file.parent / "log.txt")
    assert loaded(file, store="sqlite:s.db").config.store.path == f"sqlite:{Path.cwd() / 's.db'}"


def test_two_files_may_describe_one_agent(user_file: Write, extra_file: Write) -> None:
    user_file('[agents.default]\ninstructions = "one"\n[agents.default.options]\nseed = 1\ntemperature = 1')
    agent = loaded(extra_file("[agents.default.options]\ntemperature = 0.5")).config.agents["default"]

    assert agent.instructions == "one"
    assert agent.options is not None
    assert (agent.options.seed, agent.options.temperature) == (1, 0.5)


def test_what_one_file_lacks_another_may_bring(user_file: Write, extra_file: Write) -> None:
    user_file("[limits]\nwriter_pause_bytes = 200_000_000")
    limits = loaded(extra_file("[limits]\nwriter_cap_bytes = 300_000_000")).config.limits

    assert (limits.writer_pause_bytes, limits.writer_cap_bytes) == (200_000_000, 300_000_000)


def test_instructions_are_read_from_a_file_beside_the_configuration(extra_file: Write) -> None:
    file = extra_file('[agents.a]\ninstructions_file = "sub/a.md"')
    (file.parent / "sub").mkdir()
    instructions = file.parent / "sub" / "a.md"
    instructions.write_bytes("\ufeffGrüße,\r\nagent".encode())
    result = loaded(file)

    assert result.config.agents["a"].instructions == "Grüße,\nagent"
    assert result.config.agents["a"].instructions_file is None
    assert result.files == (file, instructions)


def test_later_instructions_replace_those_of_a_file(user_file: Write, extra_file: Write) -> None:
    user = user_file('[agents.a]\ninstructions_file = "a.md"')
    (user.parent / "a.md").write_text("from the file")

    assert loaded(extra_file('[agents.a]\ninstructions = "inline"')).config.agents["a"].instructions == "inline"


@pytest.mark.parametrize("name", ["../outside.md", "link.md", "linked/outside.md", "/etc/hostname"])
def test_instructions_outside_the_folder_are_refused(name: str, extra_file: Write) -> None:
    file = extra_file(f'[agents.a]\n\ninstructions_file = "{name}"')
    (file.parent.parent / "outside.md").write_text("secret")
    (file.parent / "link.md").symlink_to(file.parent.parent / "outside.md")
    (file.parent / "linked").symlink_to(file.parent.parent)
    with pytest.raises(ConfigInvalid, match="leads out of the folder") as refused:
        loaded(file)

    assert refused.value.fields == {"file": str(file), "line": 3, "key": "agents.a.instructions_file"}
    assert "secret" not in refused.value.message


def test_a_link_that_stays_inside_is_followed(extra_file: Write) -> None:
    file = extra_file('[agents.a]\ninstructions_file = "link.md"')
    (file.parent / "real.md").write_text("hello")
    (file.parent / "link.md").symlink_to("real.md")

    assert loaded(file).config.agents["a"].instructions == "hello"


@pytest.mark.parametrize(
    ("content", "why"),
    [(b"x" * (MAX_INSTRUCTIONS_BYTES + 1), "larger than 65536 bytes"), (b"\xff", "not UTF-8"), (None, "No such file")],
)
def test_instructions_that_are_no_short_text_are_refused(content: bytes | None, why: str, extra_file: Write) -> None:
    file = extra_file('[agents.a]\ninstructions_file = "a.md"')
    if content is not None:
        (file.parent / "a.md").write_bytes(content)

    with pytest.raises(ConfigInvalid, match=why):
        loaded(file)


def test_instructions_of_exactly_the_limit_are_read(extra_file: Write) -> None:
    file = extra_file('[agents.a]\ninstructions_file = "a.md"')
    (file.parent / "a.md").write_bytes(b"x" * MAX_INSTRUCTIONS_BYTES)

    assert len(loaded(file).config.agents["a"].instructions or "") == MAX_INSTRUCTIONS_BYTES


def test_a_loop_of_links_is_refused(extra_file: Write) -> None:
    file = extra_file('[agents.a]\ninstructions_file = "a.md"')
    (file.parent / "a.md").symlink_to("a.md")

    with pytest.raises(ConfigInvalid, match=r"agents\.a\.instructions_file"):
        loaded(file)


def test_a_refused_file_leaves_nothing_open(extra_file: Write) -> None:
    def next_descriptor() -> int:
        descriptor = os.open(os.devnull, os.O_RDONLY)
        os.close(descriptor)
        return descriptor

    file = extra_file('[agents.a]\ninstructions_file = "."')
    before = next_descriptor()
    with pytest.raises(ConfigInvalid, match="no regular file"):
        loaded(file)

    assert next_descriptor() == before


def test_a_link_of_the_user_that_leads_nowhere_is_told_and_a_missing_folder_is_not(home: Path) -> None:
    home.write_text("no folder")
    assert loaded().files == ()

    home.unlink()
    user_config_file().parent.mkdir(parents=True)
    user_config_file().symlink_to("nowhere")
    with pytest.raises(ConfigInvalid, match="No such file"):
        loaded()


def test_a_user_file_that_cannot_be_looked_at_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", "/" + "x" * 1000)

    with pytest.raises(ConfigInvalid, match="cannot be read: File name too long"):
        loaded()


def test_a_fifo_is_refused_and_never_waited_for(extra_file: Write) -> None:
    file = extra_file('[agents.a]\ninstructions_file = "a.md"')
    os.mkfifo(file.parent / "a.md")

    with pytest.raises(ConfigInvalid, match="no regular file"):
        loaded(file)
    with pytest.raises(ConfigInvalid, match="no regular file"):
        loaded(file.parent / "a.md")


def test_reading_the_configuration_imports_neither_openai_nor_rich_nor_pygls() -> None:
    program = (
        "import sys, sidecar.config.load, sidecar.config.show;"
        "print({m.split('.')[0] for m in sys.modules} & {'openai', 'rich', 'pygls', 'lsprotocol', 'httpx2', 'asyncio'})"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "set()"
