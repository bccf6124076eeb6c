"""The default history: the transcript that the sidecar keeps; or, by its flags, a list in the session's state."""

from collections.abc import Sequence
from typing import Annotated, Any, Final, Self, cast

from pydantic import Field, TypeAdapter, ValidationError, model_validator

from protocol.base import Whole
from protocol.messages import Message
from providers.api.history import HistoryConfig, HistoryError, HistoryProvider
from providers.api.session import State

MAX_MESSAGES: Final = 10_000
"""Messages that a list of its own holds, unless the entry says otherwise."""

_MESSAGES: Final = TypeAdapter(tuple[Message, ...])


class TranscriptHistoryConfig(HistoryConfig):
    """Which history this is: with the default flags the transcript, with others a list of its own."""

    max_messages: Annotated[Whole, Field(ge=1, le=1_000_000)] = MAX_MESSAGES
    """Messages in a list of its own; the oldest go first, and `droppedMessages` in its state counts them."""

    @model_validator(mode="after")
    def _limits_only_its_own(self) -> Self:
        others = self.model_fields_set - {"max_messages"}
        if "max_messages" in self.model_fields_set and all(
            getattr(self, name) == TranscriptHistoryConfig.model_fields[name].default for name in others
        ):
            raise ValueError("maxMessages limits an own list, which a history with the default flags does not keep")
        return self


class TranscriptHistory(HistoryProvider):
    """Feeds the model from the session's transcript, which the sidecar stores with the run itself: nothing to save.

    Where a flag differs from its default it keeps a list of its own instead, in its corner of the session's state,
    and feeds the model from that, if it loads at all. Each run reads and writes the whole state: an audit of many
    thousand messages belongs into a file (`file_history`).
    """

    config_type = TranscriptHistoryConfig

    @property
    def is_transcript(self) -> bool:
        """With the default flags."""
        return not self._keeps_own_list

    @property
    def _keeps_own_list(self) -> bool:
        return not (self.load_messages and self.store_inputs and self.store_outputs) or self.keeps_context

    async def get_messages(self, session_id: str | None, *, state: State) -> Sequence[Message]:
        """The transcript, shared and frozen; or the own list. Empty in a run without a session.

        Raises:
            HistoryError: the own list holds something that is no message.
        """
        if self._keeps_own_list:
            try:
                return _MESSAGES.validate_python(state.get("messages", ()))
            except ValidationError as error:
                place = "".join(f"[{part}]" for part in error.errors()[0]["loc"][:1])
                raise HistoryError(f"the state of history {self.source_id!r}: messages{place} is no message") from None
        store = self.surroundings.history
        return () if store is None or session_id is None else await store.load(session_id)

    async def save_messages(self, session_id: str | None, messages: Sequence[Message], *, state: State) -> None:
        """Nothing for the transcript, which has them already; the own list gets what it has not by id.

        Raises:
            HistoryError: what stands in the own list's place is no list.
        """
        if not self._keeps_own_list:
            return
        kept: object = state.setdefault("messages", [])
        if not isinstance(kept, list):
            raise HistoryError(f"the state of history {self.source_id!r}: messages is no list")
        own = cast("list[Any]", kept)
        known: set[object] = {_id_of(message) for message in own}
        for message in messages:
            if message.message_id is None or message.message_id not in known:
                known.add(message.message_id)
                own.append(message.wire())
        surplus = len(own) - cast("TranscriptHistoryConfig", self.config).max_messages
        if surplus > 0:
            del own[:surplus]
            state["droppedMessages"] = state.get("droppedMessages", 0) + surplus


def _id_of(message: object) -> object:
    return cast("dict[str, object]", message).get("messageId") if isinstance(message, dict) else None
