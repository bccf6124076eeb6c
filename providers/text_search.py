"""Searches documents for what a run is about, and shows the model what was found, with its sources (RAG).

What is searched is the affair of a function or a subclass: `text_search_documents` has the one of a folder.
"""

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import ClassVar, Final, cast

from protocol.base import JsonObject
from protocol.messages import Message, text_message
from providers.api.context import SessionContext
from providers.api.errors import ProviderError
from providers.api.filters import MessageFilter, Sources, filter_of, request_messages
from providers.api.invocation import FunctionInvocationContext
from providers.api.ports import AgentView
from providers.api.provider import ContextProvider, Phase, ProviderConfig, Surroundings
from providers.api.session import Session, State
from providers.api.tool import ToolError, tool_from_schema

from .import_thread import off_loop
from .text_search_config import TextSearchOptions
from .text_words import is_blank

MAX_REMEMBERED_CHARS: Final = 2_000
"""Of one message's text in the session's state; what is beyond is not searched with."""
NOTHING_FOUND: Final = "Nothing was found."

_RECENT: Final = "recentMessages"
_SCHEMA: Final[JsonObject] = {
    "type": "object",
    "properties": {"userQuestion": {"type": "string", "description": "What to search for, in the user's words."}},
    "required": ["userQuestion"],
    "additionalProperties": False,
}


@dataclass(frozen=True, slots=True)
class SearchHit:
    """A passage that was found."""

    text: str
    source_name: str | None = None
    """What the model calls the source."""
    source_link: str | None = None
    """Where the source is."""
    hit_id: str | None = None
    """Names the passage in what `explainRun` tells."""
    score: float | None = None
    """The more, the better; compared with `minScore`."""


SearchFunction = Callable[[str, int], "Sequence[SearchHit] | Awaitable[Sequence[SearchHit]]"]
"""`(query, limit)`: the best passages, best first. Async, or sync: then it is called in a thread."""
Formatter = Callable[[Sequence[SearchHit]], str]
"""Makes the whole text out of what was found; blank: nothing is shown. It must not block."""
Progress = Callable[[str, JsonObject | None], None]
"""Takes what is told of a search under way: for people, and for programs. It may be called from any thread."""


class TextSearchProvider(ContextProvider):
    """Searches before each run, or offers the model a tool that does. What is searched is a function's or subclass's.

        async def search(query: str, limit: int) -> list[SearchHit]: ...

        class Articles(TextSearchProvider):
            def __init__(self, source_id, config=None, surroundings=None):
                super().__init__(source_id, config, surroundings, search=search)

    Or override `search`. A search that fails costs no run: it is a warning, or the tool's error.
    """

    config_type: ClassVar[type[ProviderConfig]] = TextSearchOptions
    on_error = "warn"
    position = "after_input"

    def __init__(
        self,
        source_id: str,
        config: ProviderConfig | None = None,
        surroundings: Surroundings | None = None,
        *,
        search: SearchFunction | None = None,
        formatter: Formatter | None = None,
        search_sources: Sources | None = None,
    ) -> None:
        """Describe a search.

        Args:
            source_id: What its contributions are attributed to.
            config: `TextSearchOptions`.
            surroundings: Of the process that hosts it.
            search: What finds passages, where the class does not.
            formatter: What makes text of them, instead of the prompts of the config.
            search_sources: Whose messages are searched with; the config's are then not looked at.

        Raises:
            TypeError: neither a function nor the class says how to search.
        """
        super().__init__(source_id, config, surroundings)
        if search is None and type(self).search is TextSearchProvider.search:
            raise TypeError(f"provider {source_id!r} has nothing to search with: give it search=, or override it")
        self._options = cast("TextSearchOptions", self.config)
        self._function = search
        self._formatter = formatter or self._formatted
        self._asked: MessageFilter = filter_of(
            self._options.search_sources if search_sources is None else search_sources
        )
        self._tool = tool_from_schema(
            self._on_demand,
            name=self._options.function_tool_name,
            description=self._options.function_tool_description,
            schema=_SCHEMA,
        )

    async def search(self, query: str, limit: int, progress: Progress) -> Sequence[SearchHit]:
        """The best passages, best first.

        Args:
            query: Never blank.
            limit: How many are shown at most; what is beyond is left out.
            progress: Told how it gets on.

        Raises:
            Exception: it cannot be searched now. Of a `ProviderError` the text is told, of others the name.
        """
        del progress
        function = cast("SearchFunction", self._function)
        if inspect.iscoroutinefunction(function):
            return await function(query, limit)
        found = await off_loop(lambda: function(query, limit))
        return await found if inspect.isawaitable(found) else found

    def takes_part(self, phase: Phase) -> bool:
        """After a run there is something to do only where messages are remembered."""
        return phase == "beforeRun" or self._remembers

    async def before_run(self, *, agent: AgentView, session: Session, context: SessionContext, state: State) -> None:
        """Search and show what was found, or offer the tool."""
        if self._options.search_time == "onDemand":
            context.extend_tools(self, self._tool)
            return
        texts = _texts(request_messages(context, self._asked))
        if not texts:
            return
        recent = self._recent(state) if self._remembers else []
        try:
            hits = await self._hits("\n".join([*recent, *texts]), _teller(partial(context.progress, self)))
        finally:
            await asyncio.sleep(0)  # what other threads have told arrives before the hook ends
        text = self._formatter(hits) if hits else ""
        if not is_blank(text):
            ids = [hit.hit_id for hit in hits if hit.hit_id is not None]
            message = text_message("user", text, metadata={"memoryIds": ids} if ids else None)
            context.extend_messages(self, [message])

    async def after_run(self, *, agent: AgentView, session: Session, context: SessionContext, state: State) -> None:
        """Remember what was said, for the next queries."""
        answered = context.response.messages if context.response is not None else ()
        said = [*request_messages(context, self._asked), *answered]
        texts = _texts([message for message in said if message.role in self._options.recent_message_roles])
        if texts:
            recent = [*self._recent(state), *(text[:MAX_REMEMBERED_CHARS] for text in texts)]
            state[_RECENT] = recent[-self._options.recent_message_memory_limit :]

    @property
    def _remembers(self) -> bool:
        return self._options.recent_message_memory_limit > 0 and self._options.search_time == "beforeRun"

    def _recent(self, state: State) -> list[str]:
        """What is remembered; a host may have written anything there."""
        kept: object = state.get(_RECENT)
        texts = cast("list[object]", kept) if isinstance(kept, list) else []
        return [text for text in texts if isinstance(text, str)][-self._options.recent_message_memory_limit :]

    async def _on_demand(self, *, arguments: JsonObject, context: FunctionInvocationContext) -> str:
        question: str = arguments["userQuestion"]
        if is_blank(question):
            return NOTHING_FOUND
        try:
            hits = await self._hits(question, lambda message, _: context.progress(message))
            text = self._formatter(hits) if hits else ""
        except ProviderError as error:
            raise ToolError(f"The search failed: {error}.") from error
        except Exception as error:
            raise ToolError(f"The search failed: {type(error).__name__}.") from error
        return NOTHING_FOUND if is_blank(text) else text

    async def _hits(self, query: str, progress: Progress) -> list[SearchHit]:
        options = self._options
        least = options.min_score
        found = cast("Sequence[object]", await self.search(query, options.max_results, progress))
        hits = [hit for hit in found if isinstance(hit, SearchHit)]
        if len(hits) < len(found):
            raise ProviderError("what searches must return SearchHits")
        good = [hit for hit in hits if least is None or hit.score is None or hit.score >= least]
        return [hit for hit in good if not is_blank(hit.text)][: options.max_results]

    def _formatted(self, hits: Sequence[SearchHit]) -> str:
        prompts = (self._options.context_prompt, self._options.citations_prompt)
        above, below = (() if is_blank(prompt) else (prompt,) for prompt in prompts)
        return "\n".join((*above, *(_shown(hit) for hit in hits), *below))


def _texts(messages: Sequence[Message]) -> list[str]:
    return [message.text for message in messages if not is_blank(message.text)]


def _teller(tell: Progress) -> Progress:
    """Lets what is for the event loop be called from any thread."""
    loop = asyncio.get_running_loop()

    def told(message: str, data: JsonObject | None) -> None:
        with suppress(RuntimeError):  # the loop has ended, and with it the run
            loop.call_soon_threadsafe(tell, message, data)

    return told


def _shown(hit: SearchHit) -> str:
    named = (("SourceDocName", hit.source_name), ("SourceDocLink", hit.source_link))
    lines = [f"{key}: {' '.join(value.split())}" for key, value in named if value and not is_blank(value)]
    return "\n".join((*lines, "Contents:", hit.text, "----"))
