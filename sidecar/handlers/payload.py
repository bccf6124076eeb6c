"""The fingerprint of a request's payload: tells a retry from another request with the same id."""

import hashlib
import json
from collections.abc import Collection

from protocol.base import JsonObject


def payload_hash(raw: JsonObject, without: Collection[str]) -> str:
    """SHA-256 of the params' canonical JSON, leaving out fields that do not change what is asked for."""
    payload = {key: value for key, value in raw.items() if key not in without and value is not None}
    text = json.dumps(payload, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()
