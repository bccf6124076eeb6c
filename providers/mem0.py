"""Long-term memory by Mem0: its library makes memories of what is said, and finds them again. It runs elsewhere."""

import asyncio
import os
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import ClassVar, Final, Literal, Self, cast
from urllib.parse import quote

from protocol.base import JsonObject
from protocol.messages import Message, text_message
from providers.api.context import SessionContext
from providers.api.errors import ProviderError
from providers.api.filters import EXTERNAL, request_messages
from providers.api.memory import Resolved, ScopeKey
from providers.api.ports import AgentView
from providers.api.provider import ContextProvider, ProviderConfig, Surroundings
from providers.api.session import Session, State

from .mem0_config import Mem0Config
from .mem0_process import Mem0Failed, Mem0Process, process_of
from .memory_text import is_said
from .private_folder import UnsafePlace, private_folder
from .scopes import plain, read_settled, settle
from .secret_patterns import redacted

SEARCH_S: Final = 10.0
"""So long a search may take, unless the entry's own limit is shorter. Mem0's start, before the first, is extra."""
MAX_QUESTION: Final = 8_000
"""Characters that are searched with; the rest of a long question is left out."""

_IDS: Final[dict[ScopeKey, str]] = {"userId": "user_id", "agentId": "agent_id", "sessionId": "run_id"}
_ROLES: Final = frozenset({"user", "assistant", "system"})
_NOT_SEARCHED: Final = "nothing is searched: the entry has no searchScope"


class Mem0Provider(ContextProvider):
    """Long-term memory of users, agents and sessions, as Mem0 makes it.

    Sessions whose entries name the same folder share one process. What a run has said is given to Mem0 when the run
    has succeeded, secrets redacted; a failure there costs no reply.
    """

    config_type: ClassVar[type[ProviderConfig]] = Mem0Config
    on_error: ClassVar[Literal["fail", "warn"]] = "warn"

    def __init__(self, source_id: str, config: ProviderConfig, surroundings: Surroundings | None = None) -> None:
        super().__init__(source_id, config, surroundings)
        self._settings = cast("Mem0Config", self.config)
        self._process: Mem0Process | None = None
        self._has_warned = False

    @property
    def detail(self) -> str | None:
        """That nothing is searched, where nothing is."""
        return _NOT_SEARCHED if self._settings.search_scope is None else None

    async def __aenter__(self) -> Self:
        """Nothing is started before it is needed."""
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End the process, if no other session uses it."""
        process, self._process = self._process, None
        if process is not None:
            await process.release()

    def settle(self, session: Session, agent: str, earlier: JsonObject | None = None) -> JsonObject:
        """Whose memory: both scopes, in full; the one that is searched only if there is one.

        Raises:
            ProviderError: a value is missing or empty.
        """
        settings = self._settings
        known = read_settled(earlier["storageScope"]) if earlier else None
        storage = settle(settings.storage_scope, session, agent, known, what=f"{self.source_id}.storageScope")
        settled: JsonObject = {"storageScope": plain(storage)}
        if settings.search_scope is not None:
            settled["searchScope"] = plain({key: storage[key] for key in settings.search_scope.sources})
        return settled

    async def before_run(self, *, agent: AgentView, session: Session, context: SessionContext, state: State) -> None:
        """Bring back what fits what is asked; warn once where there is nothing to be searched.

        Raises:
            ProviderError: Mem0 cannot search now.
        """
        searched = self._settled(session, agent).get("searchScope")
        if searched is None:
            if not self._has_warned:
                context.warn(self, _NOT_SEARCHED)
            self._has_warned = True
            return
        question = "\n".join(_texts(request_messages(context, EXTERNAL)))[:MAX_QUESTION]
        if not question:
            return
        least, most = self._settings.min_score, self._settings.max_results
        request = {"do": "search", "query": question, "ids": _ids(read_settled(searched)), "most": most, "least": least}
        found = await self._ask("search", request, SEARCH_S)
        if found:
            context.extend_messages(self, [self._message(found)])

    async def after_run(self, *, agent: AgentView, session: Session, context: SessionContext, state: State) -> None:
        """Give Mem0 what was asked and answered.

        Raises:
            ProviderError: Mem0 cannot take it now, or did not keep all of it.
        """
        said = [*request_messages(context, EXTERNAL), *(context.response.messages if context.response else ())]
        messages = [
            {"role": message.role, "content": redacted(message.text)}
            for message in said
            if message.role in _ROLES and is_said(message.text)
        ]
        if messages:
            ids = _ids(read_settled(self._settled(session, agent)["storageScope"]))
            await self._ask("remember", {"do": "add", "messages": messages, "ids": ids})

    def _settled(self, session: Session, agent: AgentView) -> JsonObject:
        if self.settled is None:  # in a process of one's own there is no record of the session's beginning
            self.settled = self.settle(session, agent.name)
        return self.settled

    async def _ask(self, what: str, request: JsonObject, seconds: float | None = None) -> list[JsonObject]:
        folder = await asyncio.to_thread(self._folder)
        config = self._mem0_config(folder)
        if self._process is None:
            self._process = process_of(folder)
            self._process.use()
        try:
            await self._process.ready(config)
            async with asyncio.timeout(seconds):
                return await self._process.ask(request)
        except TimeoutError:
            raise ProviderError(f"Mem0 cannot {what}: it gave no answer within {SEARCH_S:g} seconds") from None
        except Mem0Failed as error:
            raise ProviderError(f"Mem0 cannot {what}: {error}") from None

    def _folder(self) -> Path:
        path, cwd = Path(self._settings.path).expanduser(), self.surroundings.cwd
        if os.open not in os.supports_dir_fd:
            raise ProviderError("mem0 needs a POSIX system")
        if not path.is_absolute() and cwd is None:
            raise ProviderError("a relative path needs a session with a working directory")
        base, below = (path, None) if path.is_absolute() else (Path(cwd or ""), path)
        try:
            with private_folder(base, below):
                return Path(os.path.realpath(base / (below or "")))
        except UnsafePlace as error:
            raise ProviderError(str(error)) from None
        except OSError as error:
            raise ProviderError(f"cannot use {base / (below or '')}: {error.strerror}") from None

    def _mem0_config(self, folder: Path) -> JsonObject:
        """What Mem0 is to use, in its own words. It holds keys."""
        store = {
            "path": str(folder / "qdrant"),
            "on_disk": True,  # without it, some versions empty the folder
            "collection_name": "memories",
            "embedding_model_dims": self._settings.embedder.dimensions,
        }
        return {
            "vector_store": {"provider": "qdrant", "config": store},
            "llm": self._settings.llm.mem0(),
            "embedder": self._settings.embedder.mem0(),
            "history_db_path": str(folder / "history.db"),
        }

    def _message(self, found: Sequence[JsonObject]) -> Message:
        prompt = self._settings.context_prompt
        lines = [" ".join(str(one["memory"]).split()) for one in found]
        text = "\n".join([*([prompt] if prompt.strip() else ()), *lines])
        return text_message("user", text, metadata={"memoryIds": [one["id"] for one in found]})


def _texts(messages: Sequence[Message]) -> list[str]:
    return [message.text for message in messages if is_said(message.text)]


def _ids(scope: Resolved) -> dict[str, str]:
    """A scope as Mem0's ids: it cuts blanks off them, and takes an asterisk for anybody."""
    return {_IDS[key]: quote(value, safe="@:/|+=") for key, value in scope.items()}
