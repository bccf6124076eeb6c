"""Counts the tokens of every model call of a run, a provider's own included. Estimates where an endpoint is silent."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Final

from protocol.messages import Usage
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

CHARACTERS_A_TOKEN: Final = 4


def estimate_tokens(*texts: str) -> int:
    """A rough count: four characters a token, rounded up."""
    return -(-sum(map(len, texts)) // CHARACTERS_A_TOKEN)


class Meter:
    """A run's usage so far."""

    def __init__(self) -> None:
        self.usage = Usage()

    def add(self, usage: Usage) -> None:
        """Count a finished call."""
        self.usage += usage


class MeteredClient:
    """A chat client whose calls count in a meter."""

    def __init__(self, client: ChatClient, meter: Meter) -> None:
        self._client = client
        self._meter = meter

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
        counted = False
        try:
            async with aclosing(self._client.stream(request)) as updates:
                async for update in updates:
                    match update:
                        case TextDelta(text) | ReasoningDelta(text):
                            written += len(text)
                        case CallRequested(call):
                            written += len(call.name) + len(str(call.arguments))
                        case Finished():
                            counted = True
                            self._meter.add(update.usage or _estimate(request, written))
                        case _:
                            pass
                    yield update
        finally:
            if written and not counted:
                self._meter.add(_estimate(request, written))


def _estimate(request: ChatRequest, written: int) -> Usage:
    return Usage(
        input_tokens=estimate_tokens(request.instructions, *(message.text for message in request.messages)),
        output_tokens=-(-written // CHARACTERS_A_TOKEN),
        estimated=True,
    )
