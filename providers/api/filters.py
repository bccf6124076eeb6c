"""Which messages a provider looks at: by where they come from. It changes none, and asks for none."""

from collections.abc import Callable, Iterable, Sequence
from typing import Final

from protocol.messages import Message, Source

from .context import SessionContext

SOURCE_TYPES: Final = frozenset({"external", "history", "provider", "agent", "run", "middleware"})
"""Names that mean a type of source; any other name means the source with that id."""

MessageFilter = Callable[[Sequence[Message]], Sequence[Message]]
"""What is left of the messages."""

Sources = Sequence[str] | MessageFilter
"""Types of sources and ids of providers, or a filter of one's own."""


class SourceFilter:
    """Keeps messages of some sources. A message that says nothing of its source is `external`: the host sent it."""

    def __init__(self, sources: Iterable[str]) -> None:
        names = frozenset(sources)
        self._types = names & SOURCE_TYPES
        self._ids = names - SOURCE_TYPES

    def __call__(self, messages: Sequence[Message]) -> list[Message]:
        """Those that are admitted, in their order."""
        return [message for message in messages if self.admits(message.source)]

    def admits(self, source: Source | None) -> bool:
        """Whether messages of that source are kept."""
        kind = "external" if source is None else source.type
        return kind in self._types or (source is not None and source.source_id in self._ids)


EXTERNAL: Final = SourceFilter(["external"])
"""What the host sent for this run: neither history, nor what other providers have added."""


def everything(messages: Sequence[Message]) -> Sequence[Message]:
    """The filter that keeps them all."""
    return messages


def filter_of(sources: Sources) -> MessageFilter:
    """The filter that `sources` means.

    Raises:
        TypeError: it is one string, which would be taken for its letters.
    """
    if isinstance(sources, str):
        raise TypeError(f"sources must be a sequence of names, not the one name {sources!r}")
    return sources if callable(sources) else SourceFilter(sources)


def request_messages(context: SessionContext, keep: MessageFilter) -> list[Message]:
    """What the run is about to ask the model, or has asked it: context, then the run's own, then the input.

    Earlier turns keep the source that they were stored with; here they count as `history`, so that what a user said
    in an earlier turn is not taken for what they say now.

    Args:
        context: The run.
        keep: Which messages are wanted. A history is not looked at where a `SourceFilter` cannot want it.
    """
    found: list[Message] = []
    for source_id, messages in context.context_messages.items():
        history = Source(type="history", source_id=source_id)
        if isinstance(keep, SourceFilter) and not keep.admits(history):
            found.extend(message for message in messages if not _is_loaded(message))
        else:
            found.extend(_as_history(message, history) if _is_loaded(message) else message for message in messages)
    return list(keep([*found, *context.run_messages, *context.input_messages]))


def _is_loaded(message: Message) -> bool:
    """Whether it stands in the context because a history has loaded it: what others add is stamped as theirs."""
    return message.source is None or message.source.type not in ("provider", "middleware")


def _as_history(message: Message, history: Source) -> Message:
    return message.model_copy(update={"source": history})
