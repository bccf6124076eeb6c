"""`config show` and `config check`: the merged configuration, where each value came from, and no secret."""

import tomllib
from pathlib import Path

import pytest

from sidecar.config.load import Loaded, load
from sidecar.config.show import report, show


@pytest.fixture
def result(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Loaded:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "home"))
    (tmp_path / "c.toml").write_text(
        r"""
[limits]
max_turns = 7
[endpoints.local]
base_url = "http://me:s3cret@localhost/v1"
headers = { Authorization = "Bearer s3cret" }
[agents."my agent"]
instructions = "line 1\nline \"2\" \\ \u0007"
[agents."my agent".options]
stop = ["a", "b"]
[[agents."my agent".context_providers]]
type = "mem0"
config = { api_key = "s3cret", scope = { user_id = "u" }, max_tokens = 5, empty = {} }
"""
    )
    return load(
        config_file=tmp_path / "c.toml", environ={"AGENT_SIDECAR_STORE": "memory"}, store=None, log_level="info"
    )


def test_the_text_is_toml_and_says_what_holds(result: Loaded) -> None:
    shown = tomllib.loads(show(result))

    assert shown["limits"] == result.config.limits.model_dump(by_alias=False)
    assert shown["store"]["path"] == "memory"
    agent = shown["agents"]["my agent"]
    assert agent["instructions"] == 'line 1\nline "2" \\ \a'
    assert agent["options"] == {"stop": ["a", "b"]}
    assert agent["context_providers"][0]["config"]["scope"] == {"user_id": "u"}
    assert agent["context_providers"][0]["config"]["max_tokens"] == 5
    assert shown["endpoints"]["openai"]["api_key_env"] == "OPENAI_API_KEY"


def test_each_line_names_the_origin_of_its_value(result: Loaded) -> None:
    origins = {
        line.partition(" = ")[0]: line.rpartition(" # ")[2] for line in show(result).splitlines() if " = " in line
    }

    assert origins["max_turns"] == str(result.files[0])
    assert origins["max_tool_calls"] == "default"
    assert origins["path"] == "environment"
    assert origins["level"] == "flag"
    assert origins["context_providers"] == str(result.files[0])


def test_no_secret_is_shown(result: Loaded) -> None:
    text = show(result)

    assert "s3cret" not in text
    assert 'Authorization = "***"' in text
    assert 'base_url = "http://***@localhost/v1"' in text
    assert 'api_key = "***"' in text
    assert "s3cret" not in repr(result)


def test_the_report_names_files_agents_and_endpoints(result: Loaded) -> None:
    text = report(result)

    assert f"read {result.files[0]}" in text
    assert "agents: default, my agent" in text
    assert "local" in text


def test_the_report_repeats_the_warnings_and_says_when_there_is_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    result = load(config_file=None, environ={}, store=None, log_level=None, initialization={"limits": {}})

    assert "no configuration file" in report(result)
    assert f"warning: {result.warnings[0]}" in report(result)
