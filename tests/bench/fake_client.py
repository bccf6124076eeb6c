"""A chat client in this process that plays prepared answers, and a source that finds it by name. Tests only."""

import asyncio
import json
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass, field
from typing import Any

from protocol.messages import FunctionCallBlock, Usage
from providers.api.ports import (
    CallRequested,
    ChatClient,
    ChatRequest,
    ChatUpdate,
    Finished,
    FinishReason,
    ModelTraits,
    TextDelta,
)


@dataclass
class Hang:
    """The model says nothing more. `reached` is set when the call gets here."""

    reached: asyncio.Event = field(default_factory=asyncio.Event)


Step = ChatUpdate | Exception | Hang
Answer = list[Step] | Callable[[ChatRequest], list[Step]]


def says(*pieces: str, reason: FinishReason = "stop", usage: Usage | None = None) -> list[Step]:
    """An answer of text pieces."""
    return [*map(TextDelta, pieces), Finished(reason, usage)]


def gives(value: Any, *, usage: Usage | None = None) -> list[Step]:
    """An answer of JSON."""
    return says(json.dumps(value, ensure_ascii=False), usage=usage)


def calls(*names: str, reason: FinishReason = "toolCalls") -> list[Step]:
    """An answer that calls tools."""
    wanted = [CallRequested(FunctionCallBlock(call_id=f"c-{name}", name=name, arguments={})) for name in names]
    return [*wanted, Finished(reason)]


class FakeClient:
    """Plays its answers in turn and keeps the requests. A call too many fails the test."""

    def __init__(self, *answers: Answer, name: str = "fake:model", single_field: bool = False) -> None:
        self.requests: list[ChatRequest] = []
        self.answers = list(answers)
        self.closed = 0
        """Calls that were ended, by themselves or early."""
        self._name = name
        self._traits = ModelTraits(single_field_extraction=single_field)

    @property
    def name(self) -> str:
        return self._name

    @property
    def traits(self) -> ModelTraits:
        return self._traits

    async def stream(self, request: ChatRequest) -> AsyncGenerator[ChatUpdate, None]:
        self.requests.append(request)
        assert self.answers, f"a model call that nobody expected: {request}"
        answer = self.answers.pop(0)
        try:
            for step in answer(request) if callable(answer) else answer:
                if isinstance(step, Exception):
                    raise step
                if isinstance(step, Hang):
                    step.reached.set()
                    await asyncio.Event().wait()
                else:
                    yield step
        finally:
            self.closed += 1


class FakeModels:
    """Where a run finds its model: the first client is the default one."""

    def __init__(self, *clients: FakeClient) -> None:
        self._clients = {client.name: client for client in clients}
        self._default = clients[0].name

    def get(self, model: str) -> ChatClient:
        return self._clients[model]

    async def ready(self, model: str) -> ChatClient:
        return self._clients[model]

    async def default(self) -> str:
        return self._default
