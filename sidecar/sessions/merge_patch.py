"""Changes to the state bag by two writers: RFC 7386 merge patches, and a three-way merge. Pure."""

import json
from typing import Any, cast

from protocol.base import Json, JsonObject


def merge_patch(target: Any, patch: Any) -> Any:
    """RFC 7386: objects are merged, `null` removes, everything else replaces."""
    if not isinstance(patch, dict):
        return patch
    merged: JsonObject = dict(cast("JsonObject", target)) if isinstance(target, dict) else {}
    for key, value in cast("JsonObject", patch).items():
        if value is None:
            merged.pop(key, None)
        else:
            merged[key] = merge_patch(merged.get(key), value)
    return merged


def carry_over(base: Json, ours: Json, theirs: Json) -> Json:
    """`theirs` with what changed from `base` to `ours`, object by object. Where both have changed, ours counts."""
    if not (isinstance(base, dict) and isinstance(ours, dict) and isinstance(theirs, dict)):
        return cast("Json", ours)
    before, mine = cast("JsonObject", base), cast("JsonObject", ours)
    merged = {key: value for key, value in cast("JsonObject", theirs).items() if key in mine or key not in before}
    for key, value in mine.items():
        if key not in before:
            merged[key] = carry_over({}, value, merged[key]) if key in merged else value
        elif not _same(before[key], value):
            merged[key] = carry_over(before[key], value, merged[key]) if key in merged else value
    return merged


def _same(one: Json, other: Json) -> bool:
    """Equal as JSON: in Python `1 == True`."""
    return json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)
