"""New ids, and the time as the wire writes it."""

import secrets
from datetime import UTC, datetime


def new_id(kind: str) -> str:
    """A random id that says what it names: `ses_…`, `run_…`, `msg_…`."""
    return f"{kind}_{secrets.token_hex(10)}"


def now() -> str:
    """RFC 3339, UTC, microseconds."""
    return datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
