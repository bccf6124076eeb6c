"""A run's output while it is being made: its whole messages, and the one that the model is writing. Calls no model."""

import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from protocol.messages import Block, FunctionResultBlock, Message, ReasoningBlock, TextBlock

from .metering import Meter
from .sink import RunSink


@dataclass(slots=True)
class Progress:
    """How far a run has come: read by whoever must end it early."""

    stage: str = "starting"
    """`starting`, `beforeRun`, `model`, `tools`, `approval`, `afterRun` or `ending`."""
    meter: Meter = field(default_factory=Meter)
    messages: list[Message] = field(default_factory=list[Message])
    """Whole messages of the output, all of them stored or on their way to the store."""
    transcript: list[Message] = field(default_factory=list[Message])
    """The output and the input that joined it under way, in the order in which the model saw them."""
    partial_id: str | None = None
    partial: list[str] = field(default_factory=list[str])
    """Text of the message that is being written."""
    answered: bool = False
    """The last message is there: only hooks are still running."""
    stop_reason: str = "endTurn"
    value: Any = None
    value_error: str | None = None
    acted: bool = False
    """A tool was started: what happened stays, however the run ends."""
    batch: dict[str, FunctionResultBlock | None] = field(default_factory=dict[str, FunctionResultBlock | None])
    """Calls whose results are not in the transcript yet: begun (`None`), or with their result."""
    parked_taken: bool = False
    """The calls that an earlier run ended with have begun, or have their results: they are this run's now."""
    is_parked: bool = False
    """The run ends with questions about its last answer's calls."""
    override: tuple[Message, ...] | None = None
    """What run middleware answers in place of the output's messages."""
    left_service: bool = False
    """The session's conversation at a service was not gone on from: the service does not have this run."""
    conversation_id: str | None = None
    """Where the model's service keeps the conversation."""

    def add(self, message: Message) -> None:
        """A message of the output is whole."""
        self.messages.append(message)
        self.transcript.append(message)

    @property
    def partial_text(self) -> str:
        """The text that was cut, if the run ends now."""
        return "".join(self.partial)

    @property
    def text(self) -> str:
        """The text of the output's messages."""
        return "".join(message.text for message in self.answer if message.role == "assistant")

    @property
    def answer(self) -> Sequence[Message]:
        """The messages that the run answers with."""
        return self.messages if self.override is None else self.override


class MessageWriter:
    """The message that a model is writing: tells of each piece, and joins them."""

    def __init__(self, progress: Progress, sink: RunSink, *, silent: bool = False) -> None:
        """`silent`: join the pieces, and tell of none."""
        self.message_id = new_message_id()
        self._progress = progress
        self._sink = sink
        self._reasoning: list[str] = []
        self._started = False
        self._silent = silent
        progress.partial.clear()

    def text(self, text: str) -> None:
        """Some more text."""
        if not text:
            return
        self._start()
        self._progress.partial.append(text)
        if self._silent:
            return
        self._sink.ephemeral("message.delta", {"messageId": self.message_id, "contentIndex": 0, "text": text})

    def reasoning(self, text: str) -> None:
        """Some more reasoning."""
        if not text:
            return
        self._start()
        self._reasoning.append(text)
        if self._silent:
            return
        self._sink.ephemeral("reasoning.delta", {"messageId": self.message_id, "text": text})

    def blocks(self) -> list[Block]:
        """What was written, whole."""
        written: list[Block] = []
        if self._reasoning:
            written.append(ReasoningBlock(text="".join(self._reasoning)))
        if self._progress.partial:
            written.append(TextBlock(text=self._progress.partial_text))
        return written

    def _start(self) -> None:
        if not self._started:
            self._started = True
            self._progress.partial_id = self.message_id
            if self._silent:
                return
            self._sink.ephemeral("message.started", {"messageId": self.message_id, "role": "assistant"})


def new_message_id() -> str:
    """A fresh random id."""
    return f"msg_{secrets.token_hex(10)}"
