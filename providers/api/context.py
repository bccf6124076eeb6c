"""What providers put before the model in one run, each piece with its source. Made fresh for every run."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from protocol.agents import RunOptions
from protocol.base import JsonObject
from protocol.messages import Message, Source


@runtime_checkable
class HasSourceId(Protocol):
    """A provider, as far as attribution needs it."""

    source_id: str


Contributor = str | HasSourceId
"""Who adds something: a provider, or a bare source id."""


@dataclass(frozen=True, slots=True)
class Instruction:
    """A piece of the system instructions, and who said it."""

    text: str
    source: Source


@dataclass(frozen=True, slots=True)
class Response:
    """What the run answered."""

    messages: Sequence[Message]
    text: str


class SessionContext:
    """One run's context: the input, what providers add to it, and afterwards the response."""

    def __init__(
        self,
        *,
        session_id: str | None,
        input_messages: Sequence[Message],
        options: RunOptions,
        service_session_id: str | None = None,
        properties: JsonObject | None = None,
    ) -> None:
        self.session_id = session_id
        self.service_session_id = service_session_id
        self.input_messages: tuple[Message, ...] = tuple(input_messages)
        self.options = options
        self.properties: JsonObject = properties or {}
        """What the host says of this run; stored nowhere."""
        self.run_messages: tuple[Message, ...] = ()
        """Messages that the run itself puts before the input, and that are not kept."""
        self.context_messages: dict[str, Sequence[Message]] = {}
        self.instructions: list[Instruction] = []
        self.response: Response | None = None
        self.metadata: dict[str, Any] = {}
        """A scratch pad that providers share in this run; stored nowhere."""

    def extend_messages(
        self, source: Contributor, messages: Iterable[Message], origin_session_ids: Sequence[str] = ()
    ) -> None:
        """Add messages, attributed to `source`. A message that is attributed already keeps its attribution."""
        stamp = source_of(source)
        added = tuple(_attributed(message, stamp, origin_session_ids) for message in messages)
        self._append(_id_of(source), added)

    def load_history(self, source: Contributor, messages: Sequence[Message]) -> None:
        """Add earlier turns as they are: they keep the attribution that they were stored with, and are not copied."""
        self._append(_id_of(source), messages)

    def _append(self, source_id: str, messages: Sequence[Message]) -> None:
        known = self.context_messages.get(source_id)
        self.context_messages[source_id] = messages if not known else (*known, *messages)

    def extend_instructions(self, source: Contributor, instructions: str | Sequence[str]) -> None:
        """Add to the system instructions; blank ones add nothing."""
        texts = (instructions,) if isinstance(instructions, str) else instructions
        stamp = source_of(source)
        self.instructions.extend(Instruction(text, stamp) for text in texts if text.strip())

    def get_messages(
        self,
        *,
        sources: Sequence[str] | None = None,
        exclude_sources: Sequence[str] = (),
        include_input: bool = False,
        include_response: bool = False,
    ) -> list[Message]:
        """Context messages in provider order, then the input, then the response."""
        found = [
            message
            for source_id, messages in self.context_messages.items()
            if (sources is None or source_id in sources) and source_id not in exclude_sources
            for message in messages
        ]
        if include_input:
            found.extend(self.input_messages)
        if include_response and self.response is not None:
            found.extend(self.response.messages)
        return found


def source_of(contributor: Contributor) -> Source:
    """The attribution of what a provider adds."""
    if isinstance(contributor, str):
        return Source(type="provider", source_id=contributor)
    return Source(type="provider", source_id=contributor.source_id, source_type=type(contributor).__name__)


def _id_of(contributor: Contributor) -> str:
    return contributor if isinstance(contributor, str) else contributor.source_id


def _attributed(message: Message, stamp: Source, origins: Sequence[str]) -> Message:
    """The message with its attribution; the caller's object is never touched."""
    known = message.source
    if known is not None and known.type != "external":
        merged = tuple(dict.fromkeys((*(known.origin_session_ids or ()), *origins)))
        if merged == (known.origin_session_ids or ()):
            return message
        return message.model_copy(update={"source": known.model_copy(update={"origin_session_ids": merged})})
    if origins:
        stamp = stamp.model_copy(update={"origin_session_ids": tuple(dict.fromkeys(origins))})
    return message.model_copy(update={"source": stamp})
