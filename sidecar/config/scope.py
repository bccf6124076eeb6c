"""For how much a key counts: one connection, one process, or each session's folder. Names only; it enforces nothing."""

from typing import Final

from protocol.base import JsonObject

from .keypath import KeyPath, as_table
from .model import Config

_CONNECTION_LIMITS: Final = frozenset(
    {
        "max_header_bytes",
        "max_in_flight",
        "max_json_depth",
        "max_message_bytes",
        "max_queued_runs",
        "writer_cap_bytes",
        "writer_drain_bytes",
        "writer_pause_bytes",
        "writer_stuck_ms",
    }
)
"""Needed, or told to the client, before it is known in which folder that works."""

_PROCESS_LIMITS: Final = frozenset(
    {
        "history_cache_bytes",
        "max_outbound_bytes",
        "max_queued_runs_total",
        "page_bytes",
        "page_default",
        "page_max",
    }
)
_PROCESS_TABLES: Final = ("store", "telemetry", "logging", "embeddings")


def connection_keys(data: JsonObject) -> list[KeyPath]:
    """The keys of valid data that count only where a process is started: in the user's file and in `--config`."""
    return _limits_in(data, _CONNECTION_LIMITS)


def process_keys(data: JsonObject) -> list[KeyPath]:
    """The keys of valid data that count once a process: those of the project in whose folder it starts."""
    tables: list[KeyPath] = [(name,) for name in _PROCESS_TABLES if data.get(name)]
    return tables + _limits_in(data, _PROCESS_LIMITS)


def fixed_keys(before: Config, after: Config) -> list[KeyPath]:
    """The keys whose values differ and that a process takes up only when it starts."""
    tables: list[KeyPath] = [(name,) for name in _PROCESS_TABLES if getattr(before, name) != getattr(after, name)]
    limits: list[KeyPath] = [
        ("limits", name)
        for name in sorted(_CONNECTION_LIMITS | _PROCESS_LIMITS)
        if getattr(before.limits, name) != getattr(after.limits, name)
    ]
    return tables + limits


def _limits_in(data: JsonObject, names: frozenset[str]) -> list[KeyPath]:
    return [("limits", name) for name in as_table(data.get("limits")) or {} if name in names]
