"""Whether a unit may be written: the rules that every store shares. Pure; it reads and writes nothing."""

from collections.abc import Mapping
from typing import Final

from .base import Fenced, PutMessage, PutSession, Refused, SeqConflict, Unit
from .memory_rules import check_write

MAX_UNIT_BYTES: Final = 256 << 20
"""The most that one unit may hold; more is `Refused`. Four messages of the largest size that the wire lets in."""

REMEMBERED_UNITS: Final = 16
"""How many written units of a session are remembered, to tell a retry from a second write."""


def check(unit: Unit, max_bytes: int = MAX_UNIT_BYTES) -> None:
    """Look at what can be seen without the store.

    Raises:
        Refused: the unit is too large, its id cannot be kept, or it remembers what cannot be remembered.
        SeqConflict: its events are not numbered `expect_seq + 1 … n`.
    """
    if not unit.id or "\n" in unit.id:
        raise Refused("a unit's id is one line of text")
    if (size := unit_bytes(unit)) > max_bytes:
        raise Refused(f"the unit holds {size} bytes, the limit is {max_bytes}")
    for write in unit.memory:
        check_write(write)
    for expected, event in enumerate(unit.events, unit.expect_seq + 1):
        if event.seq != expected:
            raise SeqConflict(f"session {unit.session!r}: event {event.seq} stands where {expected} belongs")


def check_first(session: str, unit: Unit) -> None:
    """Look at the unit that creates a session.

    Raises:
        Refused: it is another session's, or lacks the session's record.
        SeqConflict: it does not start at the beginning.
    """
    if unit.session != session or not any(isinstance(put, PutSession) for put in unit.puts):
        raise Refused(f"the first unit of session {session!r} must be its own and hold its record")
    if (unit.epoch, unit.expect_seq) != (1, 0):
        raise SeqConflict(f"the first unit of session {session!r} has epoch 1 and expects seq 0")


def admit(unit: Unit, *, epoch: int, seq: int, mine: bool, written: Mapping[str, int]) -> int | None:
    """Compare a unit with what is stored. `written` maps remembered unit ids to the seq that they reached.

    Returns:
        `None` if the unit is to be written now, else the answer that it got before.

    Raises:
        Fenced: the session has changed hands, or was released.
        SeqConflict: the unit expects another sequence number.
    """
    if unit.epoch != epoch:
        raise Fenced(f"session {unit.session!r} is in epoch {epoch}, the unit is of epoch {unit.epoch}")
    if (answer := written.get(unit.id)) is not None:
        return answer
    if not mine:
        raise Fenced(f"session {unit.session!r} is not held by this process")
    if unit.expect_seq != seq:
        raise SeqConflict(f"session {unit.session!r} is at seq {seq}, the unit expects {unit.expect_seq}")
    return None


def referenced(unit: Unit) -> set[str]:
    """Messages that the unit's events refer to, and that the unit does not bring along itself."""
    named = {event.message_id for event in unit.events if event.message_id is not None}
    return named - {put.message_id for put in unit.puts if isinstance(put, PutMessage)} if named else named


def unit_bytes(unit: Unit) -> int:
    """The size of a unit's bodies."""
    size = sum([len(event.data) for event in unit.events])
    for put in unit.puts:
        body = getattr(put, "body", None) or getattr(put, "value", None)
        size += len(body) if body else 0
    return size + sum([len(write.body) + len(write.text) + len(write.context) for write in unit.memory])
