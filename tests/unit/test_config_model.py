"""The types of the configuration hold what the contract says, also for features that are not there yet."""

from typing import Any

import pytest
from pydantic import ValidationError

from sidecar.config.limits import Limits
from sidecar.config.model import Config, McpServerConfig

MIB = 1024 * 1024


def test_the_limits_are_those_of_the_contract() -> None:
    assert Limits().model_dump(by_alias=False) == {
        "max_message_bytes": 64 * MIB,
        "max_outbound_bytes": 64 * MIB,
        "page_bytes": 4 * MIB,
        "max_header_bytes": 8192,
        "max_json_depth": 200,
        "max_in_flight": 4096,
        "max_queued_runs": 16,
        "max_queued_runs_total": 1024,
        "writer_drain_bytes": MIB,
        "writer_pause_bytes": 8 * MIB,
        "writer_cap_bytes": 64 * MIB,
        "writer_stuck_ms": 900_000,
        "run_timeout_ms": 0,
        "max_turns": 40,
        "max_tool_calls": 64,
        "truncated_call_rounds": 2,
        "delegation_depth": 4,
        "tool_timeout_ms": 600_000,
        "tool_result_bytes": 5 * MIB,
        "provider_timeout_ms": 60_000,
        "retrieval_timeout_ms": 10_000,
        "middleware_timeout_ms": 60_000,
        "page_default": 100,
        "page_max": 1000,
        "history_cache_bytes": 64 * MIB,
    }


@pytest.mark.parametrize("field", Limits.model_fields)
def test_every_limit_has_a_lowest_and_a_highest_value(field: str) -> None:
    for value in (-1, 2**62):
        with pytest.raises(ValidationError):
            Limits.model_validate({field: value})


@pytest.mark.parametrize("server", [{}, {"command": "c", "url": "u"}])
def test_an_mcp_server_is_a_command_or_a_url(server: dict[str, Any]) -> None:
    with pytest.raises(ValidationError, match="either command or url"):
        McpServerConfig.model_validate(server)


def test_the_same_keys_are_understood_in_camel_case() -> None:
    config = Config.model_validate({"defaultAgent": "a", "mcpServers": {"m": {"url": "u"}}, "limits": {"maxTurns": 2}})

    assert (config.default_agent, config.mcp_servers["m"].url, config.limits.max_turns) == ("a", "u", 2)


def test_a_secret_is_not_in_the_text_of_the_model() -> None:
    config = Config.model_validate(
        {"mcp_servers": {"m": {"url": "u", "headers": {"A": "s3cret"}, "env": {"B": "s3cret"}}}}
    )

    assert "s3cret" not in repr(config) + config.model_dump_json()
