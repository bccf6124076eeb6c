"""A fake model that wants tools called, and what it was told of them."""

import json
from typing import Any

from tests.bench.fake_model import TC, F, FakeModel, Item


def wanted(*calls: tuple[str, dict[str, Any]]) -> list[Item]:
    """An answer that calls these tools; their ids are `c0`, `c1`, …."""
    chunks = [TC(i, f"c{i}", name, json.dumps(arguments)) for i, (name, arguments) in enumerate(calls)]
    return [*chunks, F("tool_calls")]


def wants(model: FakeModel, *calls: tuple[str, dict[str, Any]]) -> None:
    """The same is the model's next answer."""
    model.says(*wanted(*calls))


def told(model: FakeModel) -> list[tuple[str, str]]:
    """The results that the model was given last: call id and text."""
    return [(m["tool_call_id"], m["content"]) for m in model.last_request.body["messages"] if m["role"] == "tool"]
