"""Keys whose feature this build lacks are refused by name when they would make a difference, and never ignored."""

from pathlib import Path

import pytest

from sidecar.config.keypath import ABSENT, lookup
from sidecar.config.load import load
from sidecar.config.unavailable import UNAVAILABLE, unavailable_keys
from sidecar.errors import CapabilityRequired, ConfigInvalid


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "home"))


def load_text(tmp_path: Path, text: str) -> None:
    file = tmp_path / "c.toml"
    file.write_text(text)
    load(config_file=file, environ={}, store=None, log_level=None)


ASKS = [
    ('[mcp_servers.files]\ncommand = "c"', 1, "mcp_servers", "mcp"),
    ("[telemetry]\nenabled = true", 2, "telemetry.enabled", "telemetry"),
    ("[agents.a]\nharness = { todo = false }", 2, "agents.a.harness", "harness"),
    ('[agents.a.compaction]\nstrategy = "context_window"', 1, "agents.a.compaction", "compaction"),
]


@pytest.mark.parametrize(("text", "line", "key", "feature"), ASKS)
def test_a_key_that_asks_for_a_missing_feature_is_refused(
    tmp_path: Path, text: str, line: int, key: str, feature: str
) -> None:
    with pytest.raises(CapabilityRequired) as caught:
        load_text(tmp_path, text)

    assert caught.value.message.startswith(f"{tmp_path / 'c.toml'}:{line}: {key} needs the feature {feature!r}")
    assert caught.value.fields == {"feature": feature}


def test_every_row_of_the_table_is_tried_here() -> None:
    assert {row.feature for row in UNAVAILABLE} == {feature for _, _, _, feature in ASKS}


def test_the_same_keys_may_say_that_the_feature_is_not_wanted(tmp_path: Path) -> None:
    load_text(
        tmp_path,
        """
plugins = []
tools = []
[mcp_servers]
[telemetry]
enabled = false
[endpoints.e]
type = "openai"
[agents.a]
tools = []
middleware = []
harness = false
per_service_call_history = false
""",
    )


def test_a_misspelt_key_is_told_before_a_missing_feature(tmp_path: Path) -> None:
    with pytest.raises(ConfigInvalid, match="did you mean 'limits'") as caught:
        load_text(tmp_path, "[limts]\n[agents.a]\nharness = true")

    assert "agents.a.harness" not in caught.value.message


def test_a_configuration_of_the_wrong_shape_asks_for_nothing() -> None:
    data = {"agents": 3, "endpoints": [{"type": "a:b"}], "telemetry": "on"}

    assert list(unavailable_keys(data)) == []
    assert lookup(data, ("endpoints", 4)) is ABSENT
