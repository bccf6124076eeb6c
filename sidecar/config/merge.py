"""Lays configurations over each other, and remembers which one each value came from. Validates nothing."""

from collections.abc import Mapping
from typing import Final

from protocol.base import Json, JsonObject

from .keypath import KeyPath, as_list, as_table

_EXCLUSIVE: Final[dict[KeyPath, tuple[tuple[str, ...], ...]]] = {
    ("endpoints", "*"): (("api_key_env",), ("api_key_command",), ("api_key_secret",)),
    ("mcp_servers", "*"): (("command", "args", "env"), ("url", "headers")),
}
"""Keys of a table that stand for one choice: a later layer that chooses anew drops the earlier choice."""

_RULES: Final[KeyPath] = ("agents", "*", "approvals", "rules")


def origin_in(origins: Mapping[KeyPath, str], path: KeyPath) -> str | None:
    """Where the value at a path came from; what stands in a list came with the list."""
    for position, part in enumerate(path):
        if isinstance(part, int):
            return origins.get(path[:position])
    return origins.get(path)


class Merged:
    """The layers so far: tables merged by key, lists replaced, deny rules kept."""

    def __init__(self) -> None:
        self.data: JsonObject = {}
        self.origins: dict[KeyPath, str] = {}

    def add(self, layer: JsonObject, origin: str) -> None:
        """Lay one more layer on top. `origin` is what its values' origin is called."""
        self._merge(self.data, layer, (), origin)

    def _merge(self, below: JsonObject, layer: JsonObject, path: KeyPath, origin: str) -> None:
        self._drop_other_choices(below, layer, path)
        for key, value in layer.items():
            here = (*path, key)
            self.origins[here] = origin
            table = as_table(value)
            if table is None:
                below[key] = _with_earlier_denials(below.get(key), value) if _matches(here, _RULES) else value
                continue
            under = as_table(below.get(key))
            if under is None:
                under = below[key] = {}
            self._merge(under, table, here, origin)

    def _drop_other_choices(self, below: JsonObject, layer: JsonObject, path: KeyPath) -> None:
        for pattern, choices in _EXCLUSIVE.items():
            chosen = [choice for choice in choices if not layer.keys().isdisjoint(choice)]
            if not chosen or not _matches(path, pattern):
                continue
            for key in {key for choice in choices if choice not in chosen for key in choice} & below.keys():
                del below[key]
                del self.origins[*path, key]


def _with_earlier_denials(earlier: Json, later: Json) -> Json:
    rules = as_list(later) or []
    denials = [rule for rule in as_list(earlier) or () if (as_table(rule) or {}).get("decision") == "deny"]
    return [*(rule for rule in denials if rule not in rules), *rules]


def _matches(path: KeyPath, pattern: KeyPath) -> bool:
    return len(path) == len(pattern) and all(want in ("*", part) for part, want in zip(path, pattern, strict=True))
