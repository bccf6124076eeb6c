"""New ids, and the time as the wire writes it."""

import secrets
import time
from datetime import UTC, datetime
from functools import lru_cache


def new_id(kind: str) -> str:
    """A random id that says what it names: `ses_…`, `run_…`, `msg_…`."""
    return f"{kind}_{secrets.token_hex(10)}"


def now() -> str:
    """RFC 3339, UTC, microseconds."""
    second, nanoseconds = divmod(time.time_ns(), 1_000_000_000)
    return f"{_second(second)}.{nanoseconds // 1000:06}Z"


@lru_cache(maxsize=1)  # a streamed event has a time too: formatting it whole would be a third of its cost
def _second(timestamp: int) -> str:
    return datetime.fromtimestamp(timestamp, UTC).strftime("%Y-%m-%dT%H:%M:%S")
