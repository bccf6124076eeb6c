"""What stands in a store, read past the sidecar: for promises about what no method shows yet. Tests only."""

import json
from typing import Any

from sidecar.stores.base import Owner
from sidecar.stores.registry import make_store


async def stored_run(spec: str, session_id: str, run_id: str) -> dict[str, Any]:
    """A run's record. Fails if there is none."""
    store = make_store(spec)
    await store.open(Owner(id="reader", pid=0, since="2026-01-01T00:00:00Z"))
    try:
        record = await store.find_run(session_id, run_id)
    finally:
        await store.close()
    assert record is not None, f"no run {run_id!r}"
    return json.loads(record.body)
