"""An editor's settings may come from a hostile workspace: they may add agents, and change nothing else."""

from pathlib import Path
from typing import Any

import pytest

from sidecar.config.load import Loaded, load
from sidecar.errors import ConfigInvalid

USERS = """
default_agent = "coder"
[endpoints.local]
base_url = "http://127.0.0.1:1/v1"
[agents.coder]
instructions = "The user's own."
"""


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "home"))


@pytest.fixture
def users(tmp_path: Path) -> Path:
    file = tmp_path / "users.toml"
    file.write_text(USERS)
    return file


def nested(depth: int) -> dict[str, Any]:
    value: dict[str, Any] = {}
    for _ in range(depth):
        value = {"a": value}
    return value


def loaded(users: Path, settings: dict[str, Any]) -> Loaded:
    return load(config_file=users, environ={}, store=None, log_level=None, initialization=settings)


def test_an_agent_may_be_added(users: Path) -> None:
    options = {"topP": 0.5, "toolChoice": {"name": "x"}, "maxOutputTokens": 9}
    result = loaded(users, {"agents": {"helper": {"description": "d", "instructions": "i", "options": options}}})

    helper = result.config.agents["helper"]
    assert (helper.description, helper.instructions) == ("d", "i")
    assert helper.options is not None
    assert helper.options.wire() == options
    assert result.warnings == ()
    assert result.origin(("agents", "helper", "options", "top_p")) == "initializationOptions.sidecar.config"


@pytest.mark.parametrize(
    ("settings", "ignored"),
    [
        ({"endpoints": {"local": {"baseUrl": "http://evil.example"}}}, "endpoints"),
        ({"defaultAgent": "helper"}, "defaultAgent"),
        ({"limits": {"maxTurns": 10_000}}, "limits"),
        ({"plugins": ["/evil"]}, "plugins"),
        ({"no such\nkey": 1}, r'"no such\nkey"'),
        ({"agents": {"coder": {"instructions": "evil"}}}, "agents.coder"),
        ({"agents": {"default": {"instructions": "evil"}}}, "agents.default"),
        ({"agents": {"helper": {"model": "local:x", "instructionsFile": "/etc/passwd"}}}, "agents.helper.model"),
        ({"agents": {"helper": {"middleware": [{"import": "os:system"}]}}}, "agents.helper.middleware"),
        ({"agents": {"helper": 3}}, "agents.helper"),
        ({"agents": [1]}, "agents"),
    ],
)
def test_everything_else_does_nothing_but_warn(users: Path, settings: dict[str, Any], ignored: str) -> None:
    result, without = loaded(users, settings), loaded(users, {})

    assert result.config.model_copy(update={"agents": {}}) == without.config.model_copy(update={"agents": {}})
    assert result.config.agents["coder"] == without.config.agents["coder"]
    assert "default" not in result.config.agents
    assert result.config.agents.get("helper") in (None, type(result.config.agents["coder"])())
    assert len(result.warnings) == 1
    assert f"ignored {ignored}" in result.warnings[0]
    assert "\n" not in result.warnings[0]


def test_a_flood_of_keys_is_one_short_warning(users: Path) -> None:
    (warning,) = loaded(users, {f"k{number}": 1 for number in range(10_000)}).warnings

    assert "k19 and 9980 more" in warning
    assert len(warning) < 500


@pytest.mark.parametrize(
    ("agent", "message"),
    [
        ({"options": {"topp": 1}}, "agents.h.options.topp: unknown key; did you mean 'topP'?"),
        ({"options": {"top_p": 1}}, "agents.h.options.top_p: unknown key; did you mean 'topP'?"),
        ({"instructions": 3}, "agents.h.instructions: must be text"),
        ({"options": nested(300)}, "agents: is nested deeper than 200"),
        ({"options": {"temperature": float("inf")}}, "agents.h.options.temperature: must be a finite number"),
    ],
)
def test_a_wrong_value_of_what_would_count_is_refused(users: Path, agent: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigInvalid) as caught:
        loaded(users, {"agents": {"h": agent}})

    assert caught.value.message.startswith(f"initializationOptions.sidecar.config: {message}")
    assert caught.value.fields["key"] == message.partition(":")[0]


def test_an_added_agent_may_only_name_endpoints_that_exist(users: Path) -> None:
    with pytest.raises(ConfigInvalid, match=r"agents\.h\.options\.model: no endpoint 'evil'"):
        loaded(users, {"agents": {"h": {"options": {"model": "evil:x"}}}})
