"""The base class of histories: they feed earlier turns to the model and keep new ones. It keeps nothing itself."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice
from operator import is_
from typing import Any, ClassVar, Final, TypedDict, Unpack

from protocol.base import Flag
from protocol.messages import ApprovalRequestBlock, ApprovalResponseBlock, Block, Message

from .context import SessionContext
from .errors import ProviderError
from .ports import AgentView
from .provider import ContextProvider, Phase, ProviderConfig, Surroundings
from .session import Session, State


class HistoryError(ProviderError):
    """A history cannot be read or kept. The text says where and why, and repeats nothing of what is in it."""


class HistoryFlags(TypedDict, total=False):
    """What a history loads and what it keeps."""

    load_messages: bool
    store_inputs: bool
    store_outputs: bool
    store_context_messages: bool
    store_context_from: Sequence[str] | None


class HistoryConfig(ProviderConfig):
    """What a history loads and what it keeps; the base of every history's config."""

    load_messages: Flag = True
    """Feed what was kept to the model. Without it the history only keeps: an audit."""
    store_inputs: Flag = True
    """Keep the input of each run."""
    store_outputs: Flag = True
    """Keep the answer of each run, its tool calls and results included."""
    store_context_messages: Flag = False
    """Keep what other providers add, too. Turns that another history has loaded are never kept again."""
    store_context_from: tuple[str, ...] | None = None
    """Source ids; keep what these providers add, and nothing of others."""


class HistoryProvider(ContextProvider, ABC):
    """Feeds earlier turns to the model. A session has at most one that loads.

    A subclass says where messages are kept: `get_messages` and `save_messages`. The flags come from the entry's
    config, or else from the constructor, or else from the class.
    """

    config_type: ClassVar[type[ProviderConfig]] = HistoryConfig

    load_messages: bool = True
    store_inputs: bool = True
    store_outputs: bool = True
    store_context_messages: bool = False
    store_context_from: Sequence[str] | None = None

    @property
    def is_transcript(self) -> bool:
        """Whether it feeds the session's transcript, which is stored in any case: there is nothing to save."""
        return False

    def __init__(
        self,
        source_id: str,
        config: ProviderConfig | None = None,
        surroundings: Surroundings | None = None,
        **flags: Unpack[HistoryFlags],
    ) -> None:
        super().__init__(source_id, config, surroundings)
        self._approvals = _Approvals()
        for name, value in {**flags, **_configured(self.config)}.items():
            if name not in HistoryFlags.__annotations__:
                raise TypeError(f"a history has no flag {name!r}")
            setattr(self, name, value)

    @abstractmethod
    async def get_messages(self, session_id: str | None, *, state: State) -> Sequence[Message]:
        """The earlier turns, oldest first; `session_id` is `None` in a run without a session."""

    @abstractmethod
    async def save_messages(self, session_id: str | None, messages: Sequence[Message], *, state: State) -> None:
        """Keep these messages; there is at least one.

        A message with an id that is kept already should not be kept again. Never compare texts: the same words may be
        said twice.
        """

    @property
    def keeps_context(self) -> bool:
        """Whether it keeps messages that other providers add."""
        return self.store_context_messages or self.store_context_from is not None

    def takes_part(self, phase: Phase) -> bool:
        """Before a run if it loads, after it if there is anything to save."""
        if phase == "beforeRun":
            return self.load_messages and super().takes_part(phase)
        return not self.is_transcript and super().takes_part(phase)

    async def before_run(self, *, agent: AgentView, session: Session, context: SessionContext, state: State) -> None:
        """Load, where this history loads."""
        if self.load_messages:
            await self.load(context, state)

    async def after_run(self, *, agent: AgentView, session: Session, context: SessionContext, state: State) -> None:
        """Keep the run's messages, all at once."""
        outputs = context.response.messages if context.response is not None else ()
        await self.store(context, context.input_messages, outputs, state)

    async def load(self, context: SessionContext, state: State) -> None:
        """Put the earlier turns before the model. Loading again in one run takes the place of the first time."""
        messages = self._approvals.without_settled(await self.get_messages(context.session_id, state=state))
        loaded = _this_run(context).loaded
        if self.source_id in loaded:
            context.context_messages[self.source_id] = ()
        loaded[self.source_id] = messages
        context.load_history(self, messages)

    async def store(
        self, context: SessionContext, inputs: Sequence[Message], outputs: Sequence[Message], state: State
    ) -> None:
        """Keep a piece of a run, as the flags say; nothing to keep is no call.

        Args:
            context: The run's. What others have added to it is kept the first time only.
            inputs: What the model was newly told.
            outputs: What it answered.
            state: This provider's own.
        """
        added = [*self._added_by_others(context)] if self.keeps_context else []
        kept = [*added, *(inputs if self.store_inputs else ()), *(outputs if self.store_outputs else ())]
        if kept:
            await self.save_messages(context.session_id, kept, state=state)
        _this_run(context).kept.setdefault(self.source_id, []).extend(added)

    def _added_by_others(self, context: SessionContext) -> Iterator[Message]:
        this_run = _this_run(context)
        known = [*chain(this_run.kept.get(self.source_id, ()), *this_run.loaded.values())]
        ids = {message.message_id for message in known} - {None}
        objects = {id(message) for message in known}
        contents = {id(message.content) for message in known}
        for source_id, messages in context.context_messages.items():
            if source_id == self.source_id:
                continue
            if self.store_context_from is not None and source_id not in self.store_context_from:
                continue
            loads = source_id in this_run.loaded
            for message in messages:
                # A turn that was put back in its place under another attribution is a copy, with the same content.
                same = id(message.content) in contents if loads else id(message) in objects
                if not same and message.message_id not in ids:
                    yield message


@dataclass(slots=True)
class _ThisRun:
    """What the histories of a run have done in it, each by its source id."""

    loaded: dict[str, Sequence[Message]] = field(default_factory=dict[str, Sequence[Message]])
    kept: dict[str, list[Message]] = field(default_factory=dict[str, list[Message]])
    """Messages of other providers."""


_THIS_RUN: Final = "providers.api.history"


def _this_run(context: SessionContext) -> _ThisRun:
    found: _ThisRun = context.metadata.setdefault(_THIS_RUN, _ThisRun())
    return found


def _configured(config: ProviderConfig) -> Mapping[str, Any]:
    """The flags that the entry sets."""
    if not isinstance(config, HistoryConfig):
        return {}
    names = HistoryFlags.__annotations__.keys() & config.model_fields_set
    return {name: getattr(config, name) for name in names}


class _Approvals:
    """Takes decided approvals out of a history: a model is told of calls and results, not of who allowed them.

    A history mostly grows, and is the same objects from run to run: what was looked at is not looked at again.
    """

    def __init__(self) -> None:
        self._free: tuple[Message, ...] = ()

    def without_settled(self, messages: Sequence[Message]) -> Sequence[Message]:
        """The same messages without decided requests and their decisions; `messages` itself if there are none."""
        known = len(self._free)
        if known > len(messages) or not all(map(is_, self._free, messages)):
            known = 0
        if any(_has_control(message) for message in islice(messages, known, None)):
            return _without_settled(messages)
        self._free = tuple(messages)
        return messages


_Control = ApprovalRequestBlock | ApprovalResponseBlock


def _has_control(message: Message) -> bool:
    return any(isinstance(block, _Control) for block in message.content)


def _without_settled(messages: Sequence[Message]) -> list[Message]:
    blocks = [block for message in messages for block in message.content]
    asked = {block.request_id for block in blocks if isinstance(block, ApprovalRequestBlock)}
    settled = asked & {block.request_id for block in blocks if isinstance(block, ApprovalResponseBlock)}

    def stays(block: Block) -> bool:
        return not isinstance(block, _Control) or block.request_id not in settled

    kept: list[Message] = []
    for message in messages:
        content = tuple(block for block in message.content if stays(block))
        if len(content) == len(message.content):
            kept.append(message)
        elif content:
            kept.append(message.model_copy(update={"content": content}))
    return kept
