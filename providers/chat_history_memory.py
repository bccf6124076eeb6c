"""Remembers what was said, and brings back what fits: before a run, or when the model asks. Another one learns facts.

Whose memory it is, is settled when the session begins, and stands in the session's record. A model's arguments name a
question, never a scope.
"""

from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Final, Literal, cast

from protocol.base import JsonObject
from protocol.messages import Message, text_message
from providers.api.context import SessionContext
from providers.api.errors import ProviderError
from providers.api.filters import MessageFilter, filter_of, request_messages
from providers.api.memory import Memory, MemoryHit, MemoryQuery, MemoryRecord, MemoryUnavailable, Resolved
from providers.api.ports import AgentView
from providers.api.provider import ContextProvider, ProviderConfig, Surroundings
from providers.api.session import Session, State
from providers.api.tool import FunctionTool, tool_from_schema

from .chat_history_memory_config import ChatHistoryMemoryConfig
from .memory_text import noted, shown, spoken
from .scopes import plain, read_settled, scope_of, settle
from .secret_patterns import redacted

_SEARCH_FIRST: Final = (
    "Before you answer, call {tool} with a question about what you would like to know of earlier conversations."
)
_SCHEMA: Final[JsonObject] = {
    "type": "object",
    "properties": {"userQuestion": {"type": "string", "description": "What to look for, in the user's own words."}},
    "required": ["userQuestion"],
    "additionalProperties": False,
}


class ChatHistoryMemory(ContextProvider):
    """Long-term memory of conversations, scoped by user, session, agent or application."""

    config_type: ClassVar[type[ProviderConfig]] = ChatHistoryMemoryConfig
    on_error: ClassVar[Literal["fail", "warn"]] = "warn"
    position: ClassVar[Literal["before_input", "after_input"]] = "after_input"
    retrieves: ClassVar[bool] = True

    def __init__(
        self,
        source_id: str,
        config: ProviderConfig,
        surroundings: Surroundings | None = None,
        *,
        redactor: Callable[[str], str] = redacted,
        search_filter: MessageFilter | None = None,
        store_request_filter: MessageFilter | None = None,
        store_response_filter: MessageFilter | None = None,
    ) -> None:
        """Made by a configuration, or in Python.

        Args:
            source_id: What it is called.
            config: A `ChatHistoryMemoryConfig`.
            surroundings: Has the memory.
            redactor: Takes out of a text what must not be remembered.
            search_filter: Which messages are searched with, instead of the config's sources.
            store_request_filter: Which messages of the request are kept, likewise.
            store_response_filter: Which messages of the answer are kept, likewise.
        """
        super().__init__(source_id, config, surroundings)
        self._settings = settings = cast("ChatHistoryMemoryConfig", self.config)
        self._redactor = redactor
        self._asks = search_filter or _of(settings.search_sources)
        self._keeps_request = store_request_filter or _of(settings.store_request_sources)
        self._keeps_response = store_response_filter or _of(settings.store_response_sources)

    @property
    def detail(self) -> str | None:
        """That there are no vectors, where there are none."""
        memory = self.surroundings.memory
        if memory is None:
            return "there is no long-term memory here"
        return None if memory.embedder is not None else "full text alone: no embedder is installed or configured"

    def settle(self, session: Session, agent: str, earlier: JsonObject | None = None) -> JsonObject:
        """Whose memory: both scopes, in full.

        Raises:
            ProviderError: a value is missing or empty.
        """
        settings = self._settings
        known = read_settled(earlier["storageScope"]) if earlier else None
        storage = settle(settings.storage_scope, session, agent, known, what=f"{self.source_id}.storageScope")
        searched: Resolved = {key: storage[key] for key in settings.searched.sources}
        return {"storageScope": plain(storage), "searchScope": plain(searched)}

    async def before_run(self, *, agent: AgentView, session: Session, context: SessionContext, state: State) -> None:
        """Bring back what fits, or offer the tool.

        Raises:
            ProviderError: memory cannot be searched now.
        """
        settings = self._settings
        searched = self._scopes(session, agent)[1]
        if settings.search_time == "onDemand":
            context.extend_tools(self, self._tool(searched))
            if settings.search_first:
                context.extend_instructions(self, _SEARCH_FIRST.format(tool=settings.function_tool_name))
            return
        question = await self._question(agent, context)
        recent = await self._recent(searched)
        hits = await self._found(searched, question, apart_from=recent)
        if question.strip() and (problem := self._memory.problem) is not None:
            context.warn(self, f"memory was searched by full text alone: {problem}")
        if hits or recent:
            context.extend_messages(self, [self._message(searched, hits, recent)], _origins(hits, recent))

    async def after_run(self, *, agent: AgentView, session: Session, context: SessionContext, state: State) -> None:
        """Keep what was asked and answered; it is committed with the run."""
        storage = self._scopes(session, agent)[0]
        request = spoken(request_messages(context, self._keeps_request))
        answered = context.response.messages if context.response is not None else ()
        response = spoken(self._keeps_response(answered))
        asked, said = _joined(request), _joined(response)
        records = [self._record(message, storage, context, said) for message in request]
        records += [self._record(message, storage, context, asked) for message in response]
        context.remember([record for record in records if record.text.strip()])

    def _scopes(self, session: Session, agent: AgentView) -> tuple[Resolved, Resolved]:
        if self.settled is None:  # in a process of one's own there is no record of the session's beginning
            self.settled = self.settle(session, agent.name)
        return read_settled(self.settled["storageScope"]), read_settled(self.settled["searchScope"])

    async def _question(self, agent: AgentView, context: SessionContext) -> str:
        """What is searched with, newest first: a long question is cut at its end. Blank if nobody has said anything."""
        asked = [message.text for message in request_messages(context, self._asks) if message.text.strip()]
        if not asked:
            return ""
        settings, store = self._settings, self.surroundings.history
        if settings.query_turns and store is not None and context.session_id is not None:
            earlier = [message for message in await store.load(context.session_id) if message.role == "user"]
            asked = [*(message.text for message in earlier[-settings.query_turns :]), *asked]
        if settings.query_instructions and agent.instructions:
            asked.insert(0, agent.instructions)
        return "\n".join(reversed(asked))

    async def _found(
        self, searched: Resolved, question: str, apart_from: Sequence[MemoryRecord] = ()
    ) -> Sequence[MemoryHit]:
        """What fits, apart from what is shown anyway."""
        settings, known = self._settings, {record.memory_id for record in apart_from}
        if not question.strip():
            return ()
        query = MemoryQuery(
            settings.collection,
            scope_of(searched),
            question,
            limit=settings.max_results + len(known),
            min_score=settings.min_score,
            recency_half_life_days=settings.recency_half_life_days,
            diversity=settings.diversity,
        )
        try:
            hits = await self._memory.search(query)
        except MemoryUnavailable as error:
            raise ProviderError(f"memory cannot be searched: {error}") from error
        return [hit for hit in hits if hit.record.memory_id not in known][: settings.max_results]

    async def _recent(self, searched: Resolved) -> Sequence[MemoryRecord]:
        """The newest turns, whole and oldest first, whatever is searched for: which one was the last must be plain."""
        wanted = self._settings.recent
        if not wanted:
            return ()
        try:
            newest = await self._memory.newest(self._settings.collection, scope_of(searched), wanted * _PER_TURN)
        except MemoryUnavailable as error:
            raise ProviderError(f"memory cannot be read: {error}") from error
        turns = list(dict.fromkeys(record.metadata.get("runId", record.memory_id) for record in reversed(newest)))
        kept = set(turns[:wanted])
        return [record for record in newest if record.metadata.get("runId", record.memory_id) in kept]

    def _message(self, searched: Resolved, hits: Sequence[MemoryHit], recent: Sequence[MemoryRecord]) -> Message:
        prompt = self._settings.context_prompt
        metadata = noted(prompt, hits, recent, self._settings.collection, searched)
        return text_message("user", shown(prompt, hits, recent)).model_copy(update={"metadata": metadata})

    def _tool(self, searched: Resolved) -> FunctionTool:
        async def search(arguments: JsonObject, context: Any) -> str:
            del context
            hits = await self._found(searched, str(arguments["userQuestion"]))
            return shown(self._settings.context_prompt, hits, ()) if hits else ""

        settings = self._settings
        return tool_from_schema(
            search, name=settings.function_tool_name, description=settings.function_tool_description, schema=_SCHEMA
        )

    def _record(self, message: Message, storage: Resolved, context: SessionContext, neighbours: str) -> MemoryRecord:
        return MemoryRecord(
            memory_id=str(message.message_id),
            collection=self._settings.collection,
            scope=scope_of(storage),
            text=self._redactor(message.text),
            created_at=str(message.created_at),
            role=message.role,
            author_name=message.author_name,
            message_id=message.message_id,
            session_id=context.session_id,
            context=self._redactor(neighbours),
            metadata={"runId": message.run_id} if message.run_id is not None else {},
        )

    @property
    def _memory(self) -> Memory:
        memory = self.surroundings.memory
        if memory is None:
            raise ProviderError("there is no long-term memory here")
        return memory


_PER_TURN: Final = 4
"""Records that a turn has at most, as far as looking back goes."""


def _of(sources: Sequence[str] | None) -> MessageFilter:
    """A filter by sources; an empty list keeps nothing, none keeps all."""
    if sources is None:
        return lambda messages: messages
    return filter_of(sources) if sources else lambda messages: ()


def _joined(messages: Sequence[Message]) -> str:
    return "\n".join(message.text for message in messages)


def _origins(hits: Sequence[MemoryHit], recent: Sequence[MemoryRecord]) -> list[str]:
    records = [*(hit.record for hit in hits), *recent]
    return [record.session_id for record in records if record.session_id is not None]
