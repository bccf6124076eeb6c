"""The merged configuration as text for a person, each value with where it came from and secrets masked. Pure."""

import re
from collections.abc import Iterator
from typing import Final

from protocol.base import Json, JsonObject

from .field_names import key_of
from .keypath import KeyPath, as_list, as_table, toml_key, toml_string
from .load import Loaded

MASK: Final = "***"

_SECRET_KEY: Final = re.compile(r"(^|[_-])(api_?key|token|secret|password|authorization)$", re.IGNORECASE)
_URL_USER: Final = re.compile(r"(?<=://)[^/@\s]+(?=@)")
_COMMENT_COLUMN: Final = 48


def show(loaded: Loaded) -> str:
    """All of the configuration, defaults included, as TOML with a comment on each line: the value's origin."""
    data = loaded.config.model_dump(mode="json", by_alias=False, exclude_none=True)
    return "\n".join(_table(loaded, data, ())).strip("\n") + "\n"


def report(loaded: Loaded) -> str:
    """What `config check` says of a configuration that was loaded: the files, the counts, the warnings."""
    files = [f"read {path}" for path in loaded.files] or ["no configuration file; the defaults are used"]
    agents = sorted({"default", *loaded.config.agents})
    return "\n".join(
        [
            *files,
            f"agents: {', '.join(agents)}",
            f"endpoints: {', '.join(loaded.config.endpoints)}",
            *(f"warning: {warning}" for warning in loaded.warnings),
        ]
    )


def _table(loaded: Loaded, data: JsonObject, path: KeyPath) -> Iterator[str]:
    tables = {key: table for key, value in data.items() if (table := as_table(value))}
    if path and len(tables) < len(data):
        yield f"\n[{'.'.join(toml_key(str(part)) for part in path)}]"
    for key, value in data.items():
        if key not in tables:
            here = (*path, key)
            line = f"{toml_key(key)} = {_value(value, here)}"
            yield f"{line:<{_COMMENT_COLUMN}} # {_one_line(loaded.origin(here))}"
    for key, table in tables.items():
        yield from _table(loaded, table, (*path, key))


def _value(value: Json, path: KeyPath) -> str:
    table, items = as_table(value), as_list(value)
    if table is not None:
        inner = ", ".join(f"{toml_key(key_of(key))} = {_value(below, (*path, key))}" for key, below in table.items())
        return f"{{ {inner} }}" if inner else "{}"
    if items is not None:
        return f"[{', '.join(_value(below, (*path, index)) for index, below in enumerate(items))}]"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return toml_string(MASK if _is_secret(path) else _URL_USER.sub(MASK, value))
    return str(value)


def _is_secret(path: KeyPath) -> bool:
    """Headers, environments, and what a plug-in's or provider's configuration calls a key or password."""
    if path[0] in ("endpoints", "mcp_servers") and ("headers" in path[2:] or "env" in path[2:]):
        return True
    may_hold_some = path[0] == "agents" or (path[0] == "endpoints" and path[2:3] == ("config",))
    return may_hold_some and any(isinstance(part, str) and _SECRET_KEY.search(part) for part in path[3:])


def _one_line(text: str) -> str:
    return "".join(char if char.isprintable() else "?" for char in text)
