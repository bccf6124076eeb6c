"""Finds stretches of a transcript: among messages that a model saw, and again by their ends. Reads no store."""

from collections.abc import Callable, Sequence
from functools import cached_property
from itertools import islice
from operator import is_

from protocol.messages import Message


class Stretches:
    """The messages of one transcript, by their places."""

    def __init__(self, transcript: Sequence[Message]) -> None:
        self._transcript = transcript

    def __getitem__(self, place: int) -> Message:
        return self._transcript[place]

    def place(self, message: Message) -> int | None:
        """Where a message stands, by its id."""
        if not self._transcript or message.message_id is None:
            return None
        return 0 if message is self._transcript[0] else self._places.get(message.message_id)

    def holds(self, message: Message) -> bool:
        """Whether just this object stands in the transcript."""
        place = self.place(message)
        return place is not None and self._transcript[place] is message

    def follows(self, first: str, second: str) -> bool:
        """Whether the message with the second id comes right after that with the first."""
        before, after = self._places.get(first), self._places.get(second)
        return before is not None and after == before + 1

    def length(self, place: int, messages: Sequence[Message], at: int, is_other: Callable[[Message], bool]) -> int:
        """How many of `messages`, from `at` on, are just those of the transcript from `place` on; the first one is.

        Args:
            place: Where the stretch begins in the transcript.
            messages: Where to look.
            at: Where the stretch begins there.
            is_other: Whether a copy of a message of the transcript is there for another reason.
        """
        transcript = self._transcript
        whole = len(transcript) - place
        most = min(whole, len(messages) - at)
        if most == whole and all(map(is_, islice(transcript, place, None), islice(messages, at, at + whole))):
            return whole
        for n in range(1, most):
            ours, theirs = transcript[place + n], messages[at + n]
            if ours is not theirs and (ours.message_id != theirs.message_id or is_other(theirs)):
                return n
        return most

    def between(self, first: str, last: str, count: int | None, started_at: str) -> Sequence[Message]:
        """The stretch with these ends; none, if one of them is gone.

        Args:
            first: The id of its first message.
            last: The id of its last one.
            count: How many there were.
            started_at: If there are more by now, what was created later is left out.
        """
        start, end = self._places.get(first), self._places.get(last)
        if start is None or end is None:
            return ()
        found = self._transcript[start : end + 1]
        if len(found) == count:
            return found
        return [message for message in found if (message.created_at or "") <= started_at]

    @cached_property
    def _places(self) -> dict[str | None, int]:
        return {message.message_id: place for place, message in enumerate(self._transcript)}
