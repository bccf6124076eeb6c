"""RFC 7386 merge patches: how a host changes a part of the state bag. Pure."""

from typing import Any, cast

from protocol.base import JsonObject


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
