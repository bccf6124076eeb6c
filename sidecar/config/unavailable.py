"""Keys of the configuration whose feature this build does not have. They are refused by name, never ignored."""

from collections.abc import Iterator
from typing import Final, NamedTuple

from protocol.base import Json

from .keypath import ABSENT, KeyPath, as_table, step


class Unavailable(NamedTuple):
    """A key, and the feature that it needs. Values that are false or empty make no difference."""

    path: KeyPath
    """`*` stands for any key of a table."""
    feature: str


UNAVAILABLE: Final = (
    Unavailable(("mcp_servers",), "mcp"),
    Unavailable(("telemetry", "enabled"), "telemetry"),
    Unavailable(("agents", "*", "harness"), "harness"),
    Unavailable(("agents", "*", "compaction"), "compaction"),
)
"""A feature that arrives takes its rows out of here."""


def unavailable_keys(data: Json) -> Iterator[tuple[KeyPath, str]]:
    """The keys of raw configuration that ask for what this build lacks, each with the feature's name."""
    for row in UNAVAILABLE:
        for path, value in _matches(data, row.path, ()):
            if value:
                yield path, row.feature


def _matches(data: Json, pattern: KeyPath, path: KeyPath) -> Iterator[tuple[KeyPath, Json]]:
    if not pattern:
        yield path, data
        return
    head, rest = pattern[0], pattern[1:]
    keys = (as_table(data) or {}) if head == "*" else (head,)
    for key in keys:
        value = step(data, key)
        if value is not ABSENT:
            yield from _matches(value, rest, (*path, key))
