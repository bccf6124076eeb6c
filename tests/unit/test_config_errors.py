"""What is said of a configuration that is wrong: file, line, key, the nearest right one, and never a secret."""

from pathlib import Path

import pytest

from sidecar.config.files import MAX_CONFIG_BYTES, user_config_file
from sidecar.config.load import Loaded, load
from sidecar.errors import ConfigInvalid


@pytest.fixture(autouse=True)
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's file, in a home of the test's own."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    path = user_config_file()
    path.parent.mkdir()
    return path


def loaded() -> Loaded:
    return load(config_file=None, environ={}, store=None, log_level=None)


def refused(file: Path, text: str | bytes) -> ConfigInvalid:
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(ConfigInvalid) as caught:
        loaded()
    return caught.value


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ('\ndefault_agnt = "x"', 2, "default_agnt: unknown key; did you mean 'default_agent'?"),
        ("[limits]\nmaxTurns = 3", 2, "limits.maxTurns: unknown key; did you mean 'max_turns'?"),
        ("[store]\nzzz = 3", 2, "store.zzz: unknown key; there are: path, durability, keep_event_runs"),
        ("[agents.a]\n[agents.a.options]\ntemprature = 1", 3, "agents.a.options.temprature: unknown key; did you mean"),
        ("[endpoints.e]\n\nbase_ulr = ''", 3, "endpoints.e.base_ulr: unknown key; did you mean 'base_url'?"),
        (
            "[[agents.a.context_providers]]\ntype = 'x'\nsourceid = 'y'",
            3,
            "agents.a.context_providers[0].sourceid: unknown key; did you mean 'source_id'?",
        ),
        ("[[agents.a.context_providers]]\nindependent = true", 1, "agents.a.context_providers[0].type: is missing"),
        ('[limits]\nmax_turns = "3"', 2, "limits.max_turns: must be a whole number"),
        ("[limits]\nmax_turns = true", 2, "limits.max_turns: must be a whole number"),
        ("[limits]\nmax_turns = 0", 2, "limits.max_turns: must be greater than or equal to 1"),
        ("limits = 3", 1, "limits: must be a table"),
        ("default_agent = ['a']", 1, "default_agent: must be text"),
        ("[store]\ndurability = 'ful'", 2, "store.durability: must be 'full' or 'normal'; did you mean 'full'?"),
        ("[store]\npath = 'redis:x'", 2, "store.path: must be memory, or sqlite: and the path of a file"),
        ("default_model = 'gpt'", 1, "default_model: must be endpoint:model, for example openai:gpt-4.1-mini"),
        ("default_model = 'opnai:gpt'", 1, "default_model: no endpoint 'opnai'; did you mean 'openai'?"),
        ("[agents.a]\nmodel = 'gpt'", 2, "agents.a.model: must be endpoint:model"),
        (
            "[agents.a]\noptions.model = 'x:y'",
            2,
            "agents.a.options.model: no endpoint 'x'; there are: embedded, openai",
        ),
        ("default_agent = 'coder'\n[agents.codr]", 1, "default_agent: no agent 'coder'; did you mean 'codr'?"),
        ("[agents.a]\nname = 'b'", 2, "agents.a.name: must be 'a'"),
        ("[endpoints.'a:b']\ntype = 'openai'", 1, 'endpoints."a:b": must be a name without colons and blanks'),
        ("[endpoints.e]\napi_key_env = 'A'\napi_key_secret = 'B'", 1, "endpoints.e: give one of api_key_env"),
        ("[limits]\npage_default = 9000", 1, "limits: page_default must not be above page_max"),
        ("[limits]\nwriter_pause_bytes = 5000", 1, "limits: writer_drain_bytes, writer_pause_bytes and"),
        (
            "[agents.a]\noptions.tool_choice = 3",
            2,
            "agents.a.options.tool_choice: must be 'auto', 'none' or 'required'",
        ),
        (
            "[agents.a]\noptions.tool_choice = { nme = 'x' }",
            2,
            "agents.a.options.tool_choice.nme: unknown key; did you",
        ),
        ("[agents.a]\ninstructions = 'a'\ninstructions_file = 'b'", 3, "agents.a.instructions_file: give either"),
        ("[agents.a]\ndescription = 1979-05-27", 2, "agents.a.description: must not be a date or a time"),
        ("[agents.a]\noptions.temperature = nan", 2, "agents.a.options.temperature: must be a finite number"),
        ("[agents.a]\noptions.seed = 9223372036854775808", 2, "agents.a.options.seed: must fit in 64 bits"),
        ('[agents.a]\ndescription = "a\\u0000b"', 2, "agents.a.description: must not hold a NUL character"),
        ('[agents]\n"a\\u0000b" = {}', 1, "agents: a key here holds a NUL character"),
        ("[agents.a]\nmax_turns = 3\nmax_turns = 4", 3, "not valid TOML: Cannot overwrite a value"),
        ("a = 1\n\nb = ", 3, "not valid TOML: Invalid value"),
        (b"a = 1\nb = '\xff'", 2, "not UTF-8"),
        ("\nx = " + "[" * 100_000, 2, "nested deeper than 200"),
        ("x = " + "{a=" * 201, 1, "nested deeper than 200"),
        (f"[{'.'.join('a' * 201)}]", 1, "nested deeper than 200"),
        ("\n" + ".".join("a" * 500_000) + " = 1", 2, "nested deeper than 200"),
        ("#" * (MAX_CONFIG_BYTES + 1), None, "larger than 1048576 bytes"),
    ],
)
def test_what_is_wrong_is_told_with_its_place(file: Path, text: str | bytes, line: int | None, message: str) -> None:
    error = refused(file, text)

    assert error.message.startswith(f"{file}:{line}: {message}" if line else f"{file}: {message}")
    assert (error.fields["file"], error.fields.get("line")) == (str(file), line)


def test_everything_that_is_wrong_in_a_file_is_told_at_once_in_the_order_of_lines(file: Path) -> None:
    error = refused(file, "[limits]\nmax_turn = 3\npage_max = 'x'\n[stor]\n")

    assert error.message.split("\n") == [
        f"{file}:2: limits.max_turn: unknown key; did you mean 'max_turns'?",
        f"{file}:3: limits.page_max: must be a whole number",
        f"{file}:4: stor: unknown key; did you mean 'store'?",
    ]
    assert (error.fields["line"], error.fields["key"]) == (2, "limits.max_turn")
    assert [(row["line"], row["key"]) for row in error.fields["errors"]] == [
        (2, "limits.max_turn"),
        (3, "limits.page_max"),
        (4, "stor"),
    ]


def test_a_flood_of_mistakes_is_told_in_part(file: Path) -> None:
    error = refused(file, "".join(f"k{number} = 1\n" for number in range(5000)))

    assert len(error.message.split("\n")) == 21
    assert error.message.endswith("and 4980 more")
    assert len(error.fields["errors"]) == 20


def test_nesting_up_to_the_limit_is_read(file: Path) -> None:
    file.write_text("[[agents.a.context_providers]]\ntype = 't'\nconfig." + ".".join("a" * 195) + " = 1")

    assert loaded().config.agents["a"].context_providers is not None


def test_what_does_not_fit_together_is_told_of_the_file_that_said_it_last(file: Path, tmp_path: Path) -> None:
    file.write_text("[limits]\npage_max = 50\npage_default = 40\n")
    extra = tmp_path / "extra.toml"
    extra.write_text("\n[limits]\npage_default = 60\n")
    with pytest.raises(ConfigInvalid) as caught:
        load(config_file=extra, environ={}, store=None, log_level=None)

    assert caught.value.message == f"{extra}:2: limits: page_default must not be above page_max"


@pytest.mark.parametrize(
    "headers", ["headers = { A = ['s3cret'] }", "headers = 's3cret'", "headers.A = { s3cret = 1 }"]
)
def test_a_secret_of_the_wrong_type_is_never_repeated(file: Path, headers: str) -> None:
    error = refused(file, f"[endpoints.e]\n{headers}")

    assert "must be" in error.message
    assert "s3cret" not in str(error.wire())


@pytest.mark.parametrize("kind", ["missing", "folder"])
def test_a_named_file_that_cannot_be_read_is_refused(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "named.toml"
    if kind == "folder":
        path.mkdir()
    with pytest.raises(ConfigInvalid, match=r"named\.toml: cannot be read") as caught:
        load(config_file=path, environ={}, store=None, log_level=None)

    assert caught.value.fields["file"] == str(path)


@pytest.mark.parametrize(
    ("environ", "flag", "message"),
    [
        (
            {"AGENT_SIDECAR_LOG": "warn"},
            None,
            "AGENT_SIDECAR_LOG: must be 'debug', 'info', 'warning' or 'error'; did you",
        ),
        ({"AGENT_SIDECAR_STORE": "here.db"}, None, "AGENT_SIDECAR_STORE: must be memory, or sqlite:"),
        (
            {"AGENT_SIDECAR_STORE": "sqlite:\udcff"},
            None,
            "AGENT_SIDECAR_STORE: must not hold a NUL character, and be valid",
        ),
        ({}, "loud", "--log-level: must be 'debug'"),
    ],
)
def test_a_wrong_variable_or_flag_is_named(environ: dict[str, str], flag: str | None, message: str) -> None:
    with pytest.raises(ConfigInvalid) as caught:
        load(config_file=None, environ=environ, store=None, log_level=flag)

    assert caught.value.message.startswith(message)
    assert "file" not in caught.value.fields
