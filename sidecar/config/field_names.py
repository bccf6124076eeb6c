"""The key `import`, which no field of a Python class can be called: renamed for validation, and back for messages."""

from typing import Final

from protocol.base import Json, JsonObject

from .keypath import as_list, as_table

_KEY: Final = "import"
_FIELD: Final = "import_"
_LISTS: Final = ("tools", "middleware")
"""Lists of an agent whose entries may have the key."""


def by_field_name(data: JsonObject) -> JsonObject:
    """A configuration whose agents' entries have the names of the types' fields; the rest is shared."""
    agents = as_table(data.get("agents"))
    if agents is None:
        return data
    return {**data, "agents": {name: _agent(agent) for name, agent in agents.items()}}


def key_of(field: str) -> str:
    """What a field is called in a file."""
    return _KEY if field == _FIELD else field


def _agent(agent: Json) -> Json:
    table = as_table(agent)
    if table is None:
        return agent
    lists = {key: items for key in _LISTS if (items := as_list(table.get(key))) is not None}
    return {**table, **{key: [_entry(item) for item in items] for key, items in lists.items()}}


def _entry(entry: Json) -> Json:
    table = as_table(entry)
    if table is None or (_KEY not in table and _FIELD not in table):
        return entry
    # Whoever writes the field's name is told that there is no such key.
    swapped = {_KEY: _FIELD, _FIELD: _KEY}
    return {swapped.get(key, key): value for key, value in table.items()}
