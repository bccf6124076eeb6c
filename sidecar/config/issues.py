"""What is wrong with a raw configuration, each thing with the key where it stands. Raises nothing, reads no files."""

import math
import re
from collections.abc import Iterator
from datetime import date, time
from difflib import get_close_matches
from functools import cache
from typing import TYPE_CHECKING, Final, NamedTuple

from pydantic import ValidationError
from pydantic_core import to_json

from protocol.base import Json, JsonObject

from .field_names import by_field_name, key_of
from .keypath import ABSENT, MAX_DEPTH, KeyPath, as_list, as_table, lookup, step
from .model import PATTERN_MEANINGS, Config

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

_LARGEST_INT: Final = 2**63 - 1
_MANY_KEYS: Final = 12
_NO_TEXT: Final = re.compile(r"[\0\ud800-\udfff]")

_MESSAGES: Final = {
    "bool_type": "must be true or false",
    "int_type": "must be a whole number",
    "float_type": "must be a number",
    "string_type": "must be text",
    "tuple_type": "must be a list",
    "dict_type": "must be a table",
    "model_type": "must be a table",
}


class Issue(NamedTuple):
    """One thing that is wrong."""

    path: KeyPath
    message: str


class _Found(NamedTuple):
    issue: Issue
    of_union: bool


def issues_of(data: JsonObject, *, partial: bool = False, wire: bool = False) -> list[Issue]:
    """All that is wrong with a configuration; empty if nothing is.

    Args:
        data: Keys and values as they were read.
        partial: More layers are to come, so what a table lacks, and how its keys fit together, is not judged yet.
        wire: The keys are those of JSON (camelCase), not those of TOML (snake_case).
    """
    unfit = list(_unfit(data, ()))
    if unfit:
        return unfit
    try:
        given = data if wire else by_field_name(data)
        Config.model_validate_json(to_json(given), strict=True, by_alias=wire, by_name=not wire)
    except ValidationError as error:
        found = [
            _Found(_issue(data, detail, wire=wire), _of_union(data, detail))
            for detail in error.errors(include_url=False, include_input=False)
            if not (partial and _may_come_later(data, detail))
        ]
        return _plain(found)
    return []


def nearest(word: str, known: list[str]) -> str:
    """A hint for a misspelt word: the nearest known one, else all if they are few, else nothing."""
    close = get_close_matches(word, known, n=1)
    if close:
        return f"; did you mean {close[0]!r}?"
    return f"; there are: {', '.join(known)}" if 0 < len(known) <= _MANY_KEYS else ""


def _unfit(value: Json, path: KeyPath) -> Iterator[Issue]:
    """What TOML or JSON can say and a session could not keep."""
    if len(path) > MAX_DEPTH:
        yield Issue(path[:1], f"is nested deeper than {MAX_DEPTH}")
        return
    table, items = as_table(value), as_list(value)
    if table is not None:
        for key, below in table.items():
            if _NO_TEXT.search(key):
                yield Issue(path, "a key here holds a NUL character, or is no valid Unicode")
            yield from _unfit(below, (*path, key))
    elif items is not None:
        for index, below in enumerate(items):
            yield from _unfit(below, (*path, index))
    else:
        message = _unfit_scalar(value)
        if message:
            yield Issue(path, message)


def _unfit_scalar(value: Json) -> str | None:
    if isinstance(value, (date, time)):
        return "must not be a date or a time; write it as text"
    if isinstance(value, float) and not math.isfinite(value):
        return "must be a finite number"
    if isinstance(value, int) and not -_LARGEST_INT - 1 <= value <= _LARGEST_INT:
        return "must fit in 64 bits"
    if isinstance(value, str) and _NO_TEXT.search(value):
        return "must not hold a NUL character, and be valid Unicode"
    return None


def _issue(data: JsonObject, detail: "ErrorDetails", *, wire: bool) -> Issue:
    path = _data_path(data, detail)
    kind, context = detail["type"], detail.get("ctx", {})
    if kind == "extra_forbidden":
        message = f"unknown key{nearest(str(path[-1]), _keys_at(path[:-1], wire=wire))}"
    elif kind == "missing":
        message = "is missing"
    elif kind == "value_error":
        message = str(context["error"])
    elif kind == "string_pattern_mismatch":
        message = f"must be {PATTERN_MEANINGS.get(context['pattern'], context['pattern'])}"
    elif kind == "literal_error":
        value = lookup(data, path)
        choices = [choice.strip("'") for choice in context["expected"].replace(" or ", ", ").split(", ")]
        close = get_close_matches(value, choices, n=1) if isinstance(value, str) else []
        message = f"must be {context['expected']}" + (f"; did you mean {close[0]!r}?" if close else "")
    else:
        message = _MESSAGES.get(kind) or detail["msg"].replace("Input should be", "must be")
    return Issue(path, message)


def _data_path(data: JsonObject, detail: "ErrorDetails") -> KeyPath:
    """The place in the data: the error's own, without the names of union members that stand between the keys."""
    location = detail["loc"]
    path: KeyPath = ()
    here: Json = data
    for position, part in enumerate(location):
        part = key_of(part) if isinstance(part, str) else part
        below = step(here, part)
        if below is not ABSENT:
            path, here = (*path, part), below
        elif detail["type"] == "missing" and position == len(location) - 1:
            path = (*path, part)
    return path


def _of_union(data: JsonObject, detail: "ErrorDetails") -> bool:
    return len(_data_path(data, detail)) < len(detail["loc"]) and detail["loc"][-1] != "[key]"


def _may_come_later(data: JsonObject, detail: "ErrorDetails") -> bool:
    path = _data_path(data, detail)
    if any(isinstance(part, int) for part in path):
        return False  # lists are replaced whole, so nothing is added to one
    return detail["type"] == "missing" or (detail["type"] == "value_error" and as_table(lookup(data, path)) is not None)


def _plain(found: list[_Found]) -> list[Issue]:
    """One issue a key. Of the members of a union the one that got furthest into the value speaks."""
    messages: dict[KeyPath, list[str]] = {}
    around = {issue.path[:length] for issue, _ in found for length in range(len(issue.path))}
    for (path, message), of_union in found:
        if not (of_union and path in around) and message not in messages.get(path, ()):
            messages.setdefault(path, []).append(message)
    return [Issue(path, ", or ".join(texts)) for path, texts in messages.items()]


def _keys_at(path: KeyPath, *, wire: bool) -> list[str]:
    """The keys that a table may have."""
    schema = _schema(wire=wire)
    nodes = [schema]
    for part in path:
        nodes = [below for node in nodes for below in _below(node, part, schema)]
    return [key_of(key) for node in nodes for key in node.get("properties", {})]


@cache
def _schema(*, wire: bool) -> JsonObject:
    return Config.model_json_schema(by_alias=wire)


def _below(node: JsonObject, part: str | int, schema: JsonObject) -> Iterator[JsonObject]:
    if isinstance(part, int):
        inner = as_table(node.get("items"))
    else:
        by_pattern = next(iter(node.get("patternProperties", {}).values()), None)
        inner = as_table(node.get("properties", {}).get(part) or by_pattern or node.get("additionalProperties"))
    members: list[JsonObject] = inner.get("anyOf", [inner]) if inner else []
    for member in members:
        reference: str = member.get("$ref", "")
        yield schema["$defs"][reference.rpartition("/")[2]] if reference else member
