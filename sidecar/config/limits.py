"""Every limit of the contract that can be set, with its default: `[limits]` of `sidecar.toml`. Enforces nothing itself.

The limits of one model call stand with its endpoint; the lengths of ids and tool names are part of the contract and
cannot be set.
"""

from typing import Annotated, Final

from pydantic import Field, model_validator

from protocol.base import StrictModel

_KIB: Final = 1024
_MIB: Final = 1024 * _KIB
_GIB: Final = 1024 * _MIB
_DAY_MS: Final = 24 * 60 * 60 * 1000

Duration = Annotated[int, Field(gt=0, le=30 * _DAY_MS)]
"""Milliseconds, at most 30 days."""


class Limits(StrictModel):
    """What one sidecar accepts, holds and waits for. Sizes are in bytes, times in milliseconds."""

    max_message_bytes: int = Field(default=64 * _MIB, ge=64 * _KIB, le=_GIB)
    """Longest message that is read; over it: `messageTooLarge`, and the next one is served."""
    max_outbound_bytes: int = Field(default=64 * _MIB, ge=64 * _KIB, le=_GIB)
    """Longest message that is sent, to a client that names no limit of its own."""
    page_bytes: int = Field(default=4 * _MIB, ge=4 * _KIB, le=_GIB)
    """What a page of results aims at; a page holds at least one item."""
    max_header_bytes: int = Field(default=8 * _KIB, ge=64, le=_MIB)
    """Longest header block of a framed message."""
    max_json_depth: int = Field(default=200, ge=16, le=200)
    """Deepest nesting of a message."""
    max_in_flight: int = Field(default=4096, ge=1, le=1_000_000)
    """Requests that may be unanswered at a time; over it: `overloaded`."""
    max_queued_runs: int = Field(default=16, ge=0, le=100_000)
    """Runs that may wait on one session; over it: `overloaded`."""
    max_queued_runs_total: int = Field(default=1024, ge=0, le=1_000_000)
    """Runs that may wait on all sessions together; over it: `overloaded`."""

    writer_drain_bytes: int = Field(default=_MIB, ge=4 * _KIB, le=_GIB)
    """Unsent output above which deltas are merged."""
    writer_pause_bytes: int = Field(default=8 * _MIB, ge=4 * _KIB, le=_GIB)
    """Unsent output above which no more is read."""
    writer_cap_bytes: int = Field(default=64 * _MIB, ge=4 * _KIB, le=4 * _GIB)
    """Unsent output (or one message, if that is larger) above which the client counts as gone."""
    writer_stuck_ms: Duration = 15 * 60_000
    """How long a client may take nothing before it counts as gone."""

    run_timeout_ms: Annotated[int, Field(ge=0, le=30 * _DAY_MS)] = 0
    """Longest run, where `run` names no `timeoutMs`; 0: none."""
    max_turns: int = Field(default=40, ge=1, le=10_000)
    """Model calls in one run, where agent and run name none; then one closing call without tools."""
    max_tool_calls: int = Field(default=64, ge=1, le=10_000)
    """Tool calls in one model answer; the rest get an error result."""
    truncated_call_rounds: int = Field(default=2, ge=0, le=100)
    """Model answers with truncated tool calls that a run bears; then it fails."""
    delegation_depth: int = Field(default=4, ge=0, le=64)
    """How deep agents may call agents as tools; over it: an error result."""

    tool_timeout_ms: Duration = 600_000
    """Longest call of a tool of the sidecar's own; over it: an error result."""
    tool_result_bytes: int = Field(default=5 * _MIB, ge=_KIB, le=_GIB)
    """Longest result text of a tool of the sidecar's own; over it: cut, with a note."""
    provider_timeout_ms: Duration = 60_000
    """Longest provider hook, where the provider's entry names none; over it: its `on_error`."""
    retrieval_timeout_ms: Duration = 10_000
    """The same for hooks that retrieve."""
    middleware_timeout_ms: Duration = 60_000
    """Longest time of middleware around a tool call or run, the wrapped work not counted; over it: the call fails."""

    page_default: int = Field(default=100, ge=1, le=100_000)
    """Items on a page of a list, where the request names no number."""
    page_max: int = Field(default=1000, ge=1, le=100_000)
    """Most items on a page of a list; more are cut."""
    history_cache_bytes: int = Field(default=64 * _MIB, ge=0, le=64 * _GIB)
    """Memory for the histories of open sessions; what is over it is read from the store again."""

    @model_validator(mode="after")
    def _in_order(self) -> "Limits":
        if not self.writer_drain_bytes <= self.writer_pause_bytes <= self.writer_cap_bytes:
            raise ValueError("writer_drain_bytes, writer_pause_bytes and writer_cap_bytes must rise in this order")
        if self.page_default > self.page_max:
            raise ValueError("page_default must not be above page_max")
        return self
