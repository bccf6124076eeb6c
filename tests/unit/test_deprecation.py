"""What is deprecated stays, and says so in both documents of the contract."""

from typing import Any

import pytest
from pydantic import Field

from protocol import schema
from protocol.base import Empty, Params
from protocol.methods import METHODS, NOTIFICATIONS, Method, Notification


class OldParams(Params):
    """Look."""

    fresh: str | None = None
    stale: str | None = Field(default=None, json_schema_extra={"deprecated": True})


OLD_METHOD = Method("look", OldParams, Empty, deprecated="use getState")
OLD_NOTIFICATION = Notification("looked", Empty, deprecated="nobody listens")


@pytest.fixture
def aged(monkeypatch: pytest.MonkeyPatch) -> None:
    """A contract with a method and a notification that are deprecated."""
    monkeypatch.setattr(schema, "METHODS", (*METHODS, OLD_METHOD))
    monkeypatch.setattr(schema, "NOTIFICATIONS", (*NOTIFICATIONS, OLD_NOTIFICATION))


@pytest.mark.usefixtures("aged")
def test_the_schema_marks_methods_notifications_and_fields() -> None:
    document = schema.json_schema()

    method = document["x-methods"]["look"]
    assert (method["deprecated"], method["description"]) == (True, "Deprecated: use getState")
    assert method["params"] == {"$ref": "#/$defs/OldParams"}
    sent = document["x-notifications"]["client"]["looked"]
    assert (sent["deprecated"], sent["description"]) == (True, "Deprecated: nobody listens")
    assert _deprecated(document["$defs"]["OldParams"]["properties"]) == ["stale"]


@pytest.mark.usefixtures("aged")
def test_the_openrpc_document_marks_methods_and_params() -> None:
    (method,) = (one for one in schema.openrpc()["methods"] if one["name"] == "look")

    assert (method["deprecated"], method["description"]) == (True, "Deprecated: use getState")
    assert _deprecated({param["name"]: param for param in method["params"]}) == ["stale"]


def test_reading_a_deprecated_field_warns_nobody() -> None:
    assert OldParams(stale="still here").stale == "still here"


def _deprecated(fields: dict[str, Any]) -> list[str]:
    return [name for name, field in fields.items() if field.get("deprecated")]
