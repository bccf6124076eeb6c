"""JSON-RPC 2.0 envelopes: what a message is, and how an answer looks. Knows no method and no params."""

from dataclasses import dataclass
from typing import Any, cast

from protocol.base import Json, JsonObject
from sidecar.errors import InvalidRequest, SidecarError
from sidecar.transport.decode import encode_json

RequestId = str | int


@dataclass(frozen=True, slots=True)
class Request:
    """A message that wants an answer."""

    id: RequestId
    method: str
    params: Json


@dataclass(frozen=True, slots=True)
class Notification:
    """A message that wants none."""

    method: str
    params: Json


@dataclass(frozen=True, slots=True)
class Response:
    """An answer to a request of ours."""

    id: Json
    message: JsonObject


class BadEnvelope(Exception):
    """The message is no JSON-RPC 2.0; `id` is what can be answered to."""

    def __init__(self, why: str, request_id: RequestId | None = None, *, is_answer: bool = False) -> None:
        super().__init__(why)
        self.is_answer = is_answer
        """It names no method: if it is anything, it is an answer."""
        self.error = InvalidRequest(why)
        self.id = request_id


def classify(message: Json) -> Request | Notification | Response:
    """What a message is. Only the envelope is looked at: a nested `jsonrpc` key is data.

    Raises:
        BadEnvelope: it is none of the three.
    """
    if isinstance(message, list):
        raise BadEnvelope("batches are not supported; send one message at a time")
    if not isinstance(message, dict):
        raise BadEnvelope("a message is a JSON object")
    fields = cast("JsonObject", message)
    request_id = fields.get("id")
    known_id = request_id if _is_id(request_id) else None
    if fields.get("jsonrpc") != "2.0":
        raise BadEnvelope('a message holds "jsonrpc": "2.0"', known_id, is_answer="method" not in fields)
    if "method" not in fields:
        if "result" in fields or "error" in fields:
            return Response(request_id, fields)
        raise BadEnvelope("a message holds a method, a result or an error", known_id, is_answer=True)
    method = fields["method"]
    if not isinstance(method, str):
        raise BadEnvelope("method is a string", known_id)
    if "id" not in fields:
        return Notification(method, fields.get("params"))
    if known_id is None:
        raise BadEnvelope("id is a string or a whole number")
    return Request(known_id, method, fields.get("params"))


def _is_id(value: Any) -> bool:
    return isinstance(value, str | int) and not isinstance(value, bool)


def result_answer(request_id: RequestId, result: Json) -> bytes:
    """The answer of a request that went well."""
    return encode_json({"jsonrpc": "2.0", "id": request_id, "result": result})


def error_answer(request_id: RequestId | None, error: SidecarError) -> bytes:
    """The answer of a request that did not; `null` as id where none could be read."""
    return encode_json({"jsonrpc": "2.0", "id": request_id, "error": error.wire()})


def notification(method: str, params: JsonObject) -> bytes:
    """A message to the client that wants no answer."""
    return encode_json({"jsonrpc": "2.0", "method": method, "params": params})


def request(request_id: RequestId, method: str, params: JsonObject) -> bytes:
    """A message to the client that wants an answer."""
    return encode_json({"jsonrpc": "2.0", "id": request_id, "method": method, "params": params})
