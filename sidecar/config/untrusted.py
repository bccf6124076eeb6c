"""What a configuration may do that nobody vouches for: add agents, with text and options. It validates nothing."""

from collections.abc import Collection
from typing import Final

from protocol.base import Json, JsonObject

from .keypath import KeyPath, as_table, dotted

_ADMITTED: Final = frozenset({"description", "instructions", "options"})
_MOST_NAMED: Final = 20
_LONGEST_NAME: Final = 100


def admitted(data: JsonObject, defined: Collection[str]) -> tuple[JsonObject, list[KeyPath]]:
    """What counts of the data, and the keys that do not.

    The keys that count are spelt alike in TOML and on the wire, so either may be given.

    Args:
        data: Keys and values as they were read, of any shape.
        defined: The agents that exist already; nothing is changed about these.
    """
    ignored: list[KeyPath] = [(key,) for key in data if key != "agents"]
    agents = as_table(data.get("agents", {}))
    if agents is None:
        return {"agents": {}}, [*ignored, ("agents",)]
    counting: JsonObject = {}
    for name, value in agents.items():
        agent = as_table(value)
        if agent is None or name in defined:
            ignored.append(("agents", name))
            continue
        ignored += [("agents", name, key) for key in agent if key not in _ADMITTED]
        counting[name] = _counting(agent)
    return {"agents": counting}, ignored


def named(ignored: Collection[KeyPath]) -> str:
    """The keys in one short line."""
    first = [shortened(dotted(path), _LONGEST_NAME) for path in list(ignored)[:_MOST_NAMED]]
    more = f" and {len(ignored) - _MOST_NAMED} more" if len(ignored) > _MOST_NAMED else ""
    return ", ".join(first) + more


def shortened(text: str, most: int) -> str:
    """The text, cut where it is longer than a message may be."""
    return text if len(text) <= most else f"{text[:most]}…"


def _counting(agent: JsonObject) -> dict[str, Json]:
    return {key: agent[key] for key in agent if key in _ADMITTED}
