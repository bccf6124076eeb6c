"""Two providers over a memory service: one that leaves filtering and stamping to its base class, one that does it."""

from dataclasses import dataclass
from typing import Any, Final

from memory_service import ServiceClient

from protocol.messages import text_message
from providers.api.context import SessionContext
from providers.api.filters import EXTERNAL
from providers.api.ports import AgentView
from providers.api.provider import ContextProvider
from providers.api.session import Session, State
from providers.api.simple import Contribution, Exchange, ProvideRequest, SimpleProvider
from providers.api.state import ProviderState

_HEADING: Final = "Memories that may help to answer:"


@dataclass
class MemoryState:
    """What a session keeps of its memories: where they are. A provider holds a client, and never such an id."""

    memories_id: str | None = None


class SimpleServiceMemoryProvider(SimpleProvider):
    """Two functions: what to add before a run, what to keep after it."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._client = ServiceClient()
        self._memory = ProviderState(MemoryState, key=self.state_key)

    async def provide(self, request: ProvideRequest) -> Contribution:
        """The memories that fit what the user says."""
        memories_id = self._memory.get(request.session).memories_id
        if memories_id is None:
            return None
        # `request.text` is the host's input alone: a question made of older memories would find itself again.
        memories = await self._client.load_memories(memories_id, request.text)
        return text_message("user", "\n".join([_HEADING, *memories])) if memories else None

    async def store(self, exchange: Exchange) -> None:
        """Keep what was said. It is called only where the run succeeded."""
        memory = self._memory.get(exchange.session)
        if memory.memories_id is None:
            memory.memories_id = await self._client.create_memory_container()
            self._memory.save(exchange.session, memory)
        said = [message.text for message in (*exchange.request, *exchange.response)]
        await self._client.store_memories(memory.memories_id, said)


class AdvancedServiceMemoryProvider(ContextProvider):
    """The same in the hooks themselves, which see the whole run and filter it on their own."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._client = ServiceClient()
        self._memory = ProviderState(MemoryState, key=self.state_key)

    async def before_run(self, *, agent: AgentView, session: Session, context: SessionContext, state: State) -> None:
        """Put the memories before the model."""
        memories_id = self._memory.get(session).memories_id
        if memories_id is None:
            return
        question = "\n".join(message.text for message in EXTERNAL(context.input_messages))
        memories = await self._client.load_memories(memories_id, question)
        if memories:  # the message is stamped as this provider's, which is how others tell it from the user's words
            context.extend_messages(self, [text_message("user", "\n".join([_HEADING, *memories]))])

    async def after_run(self, *, agent: AgentView, session: Session, context: SessionContext, state: State) -> None:
        """Keep what was said; after a run that failed, `on_failure` is called in its place."""
        memory = self._memory.get(session)
        if memory.memories_id is None:
            memory.memories_id = await self._client.create_memory_container()
            self._memory.save(session, memory)
        # Only what is new: history and memories are in the service already, and stored again they would feed back.
        answered = context.response.messages if context.response is not None else ()
        said = [message.text for message in (*EXTERNAL(context.input_messages), *answered)]
        await self._client.store_memories(memory.memories_id, said)
