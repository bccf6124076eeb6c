"""Token counts of OpenAI-compatible endpoints, under the names of either API. Counts only."""

from typing import Any, cast

from protocol.messages import Usage


def read_usage(value: Any) -> Usage | None:
    """Token counts in the endpoint's form; `None` if there are none."""
    if not isinstance(value, dict):
        return None
    fields = cast(dict[str, Any], value)
    given = _count(fields, "prompt_tokens", "input_tokens")
    made = _count(fields, "completion_tokens", "output_tokens")
    if given is None and made is None:
        return None
    return Usage(
        input_tokens=given or 0,
        output_tokens=made or 0,
        cached_input_tokens=_detail(fields, ("prompt_tokens_details", "input_tokens_details"), "cached_tokens"),
        reasoning_tokens=_detail(fields, ("completion_tokens_details", "output_tokens_details"), "reasoning_tokens"),
    )


def _detail(fields: dict[str, Any], places: tuple[str, ...], name: str) -> int | None:
    counts = (_count(fields.get(place), name) for place in places)
    return next((count for count in counts if count is not None), None)


def _count(fields: Any, *names: str) -> int | None:
    if not isinstance(fields, dict):
        return None
    values = (cast(dict[str, Any], fields).get(name) for name in names)
    return next((value for value in values if type(value) is int and value >= 0), None)
