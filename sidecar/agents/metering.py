"""Counts the tokens of every model call of a run, a provider's own included. Estimates where an endpoint is silent."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from itertools import islice
from typing import Final

from protocol.base import JsonObject
from protocol.messages import Message, Source, Usage, text_length
from providers.api.ports import (
    CallRequested,
    ChatClient,
    ChatRequest,
    ChatUpdate,
    Finished,
    ModelTraits,
    ReasoningDelta,
    TextDelta,
)

from .explain import CallLog

CHARACTERS_A_TOKEN: Final = 4


def tokens_of(characters: int) -> int:
    """A rough count: four characters a token, rounded up."""
    return -(-characters // CHARACTERS_A_TOKEN)


class GrowingText:
    """The length of a text history that only grows: what one run has counted, the next does not count again."""

    def __init__(self) -> None:
        self._messages: tuple[Message, ...] = ()
        self._characters = 0

    def length(self, messages: Sequence[Message]) -> int:
        """Characters in all. Messages that the last call has seen cost a comparison, which identity cuts short."""
        if not messages:
            return 0
        messages = tuple(messages)
        known = len(self._messages)
        if messages[:known] != self._messages:
            known = self._characters = 0
        self._characters += text_length(islice(messages, known, None))
        self._messages = messages
        return self._characters


class Meter:
    """A run's usage so far, and the calls that it is of."""

    def __init__(self, within: "Meter | None" = None) -> None:
        """`within`: the meter of the run that this one is delegated by, where its usage counts too."""
        self.usage = Usage()
        self.calls = CallLog()
        self._within = within

    def add(self, usage: Usage) -> None:
        """Count a finished call."""
        self.usage += usage
        if self._within is not None:
            self._within.add(usage)

    def context(self) -> JsonObject:
        """How full the model's context was after the agent's last call, in the form of `usage.updated`."""
        for note in reversed(self.calls.notes):
            if note.maker.type == "agent" and note.usage is not None:
                used = {"contextUsed": note.usage.input_tokens + note.usage.output_tokens}
                return used if note.context_size is None else {**used, "contextSize": note.context_size}
        return {}


class MeteredClient:
    """A chat client whose calls count in a meter, and are noted there as `maker`'s."""

    def __init__(self, client: ChatClient, meter: Meter, maker: Source) -> None:
        self._client = client
        self._meter = meter
        self._maker = maker

    @property
    def name(self) -> str:
        """`endpoint:model`."""
        return self._client.name

    @property
    def traits(self) -> ModelTraits:
        """What the model can do."""
        return self._client.traits

    async def stream(self, request: ChatRequest) -> AsyncGenerator[ChatUpdate, None]:
        """The client's own stream, counted at its end. One that is cut counts too, by estimate: hosts pay for it."""
        written = 0
        note = self._meter.calls.begin(self._client.name, request, self._maker)
        try:
            async with aclosing(self._client.stream(request)) as updates:
                async for update in updates:
                    match update:
                        case TextDelta(text) | ReasoningDelta(text):
                            written += len(text)
                            note.token()
                        case CallRequested(call):
                            written += len(call.name) + len(str(call.arguments))
                            note.token()
                        case Finished():
                            note.usage = update.usage or _estimate(request, written)
                            self._meter.add(note.usage)
                        case _:
                            pass
                    yield update
        finally:
            if written and note.usage is None:
                note.usage = _estimate(request, written)
                self._meter.add(note.usage)
            note.model = self._client.name  # one that looks its model up when it is called knows it now
            note.context_size = self._client.traits.context_size
            note.end()


def _estimate(request: ChatRequest, written: int) -> Usage:
    return Usage(
        input_tokens=tokens_of(len(request.instructions) + text_length(request.messages)),
        output_tokens=tokens_of(written),
        estimated=True,
    )
