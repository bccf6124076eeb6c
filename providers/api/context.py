"""What providers put before the model in one run, each piece with its source. Made fresh for every run."""

import operator
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol, cast, runtime_checkable

from protocol.agents import RunOptions
from protocol.base import JsonObject
from protocol.messages import Message, Source, Usage

from .clean_text import clean_text
from .errors import DuplicateToolError, ProviderError
from .tool_result import cleaned_block

if TYPE_CHECKING:
    from .approval import ApprovalRule
    from .memory import MemoryRecord
    from .middleware import Middleware, MiddlewareKind
    from .modes import PlanEntry
    from .tool import FunctionTool


@runtime_checkable
class HasSourceId(Protocol):
    """A provider, as far as attribution needs it."""

    source_id: str


MAX_PROGRESS: Final = 2_000
"""Longest text of a provider's progress, in characters."""

NO_USAGE: Final = Usage()

Contributor = str | HasSourceId
"""Who adds something: a provider, or a bare source id."""


@dataclass(frozen=True, slots=True)
class Instruction:
    """A piece of the system instructions, and who said it."""

    text: str
    source: Source


@dataclass(frozen=True, slots=True)
class OfferedTool:
    """A tool, and who offers it."""

    tool: "FunctionTool"
    source: Source


@dataclass(frozen=True, slots=True)
class AddedMiddleware:
    """A middleware that a provider adds, and who it is."""

    middleware: "Middleware"
    kind: "MiddlewareKind"
    source: Source


@dataclass(frozen=True, slots=True)
class Removal:
    """Something that a provider took from the model, or put something else in its place."""

    what: Literal["message", "tool", "instruction"]
    ref: str
    """A message's id, a tool's name, or the beginning of an instruction's text."""
    by: Source


@dataclass(frozen=True, slots=True)
class Response:
    """What the run answered."""

    messages: Sequence[Message]
    text: str
    usage: Usage = NO_USAGE


class SessionContext:
    """One run's context: the input, what providers add to it, and afterwards the response."""

    def __init__(
        self,
        *,
        session_id: str | None,
        input_messages: Sequence[Message],
        options: RunOptions,
        service_session_id: str | None = None,
        properties: JsonObject | None = None,
    ) -> None:
        self.session_id = session_id
        self.service_session_id = service_session_id
        self.input_messages: tuple[Message, ...] = tuple(input_messages)
        self.options = options
        self.properties: JsonObject = properties or {}
        """What the host says of this run; stored nowhere."""
        self.run_messages: tuple[Message, ...] = ()
        """Messages that the run itself puts before the input, and that are not kept."""
        self.context_messages: dict[str, Sequence[Message]] = {}
        self.instructions: list[Instruction] = []
        self.tools: list[OfferedTool] = []
        """The agent's and the session's own first, then what providers add."""
        self.middleware: list[AddedMiddleware] = []
        self.approval_rules: list[ApprovalRule] = []
        """Say which tool calls of this run need consent, beside the configuration."""
        self.removed: list[Removal] = []
        self.memories: list[MemoryRecord] = []
        """What is to be remembered: it is stored with the run, or dropped with it."""
        self.response: Response | None = None
        self.on_progress: Callable[[str, str | None, Any], None] | None = None
        """Where `progress` goes: a source id, some text, and data."""
        self.on_warning: Callable[[str, str], None] | None = None
        """Where `warn` goes: a source id, and what is wrong."""
        self.on_plan: Callable[[Source, Sequence[PlanEntry]], None] | None = None
        """Where `show_plan` goes."""
        self.metadata: dict[str, Any] = {}
        """A scratch pad that providers share in this run; stored nowhere."""
        self._forked_from: tuple[dict[str, Sequence[Message]], int, int, int, int] = ({}, 0, 0, 0, 0)

    def extend_messages(
        self, source: Contributor, messages: Iterable[Message], origin_session_ids: Sequence[str] = ()
    ) -> None:
        """Add messages, attributed to `source`. A message that is attributed already keeps its attribution."""
        stamp = source_of(source)
        added = tuple(_attributed(message, stamp, origin_session_ids) for message in messages)
        self._append(_id_of(source), added)

    def load_history(self, source: Contributor, messages: Sequence[Message]) -> None:
        """Add earlier turns as they are: they keep the attribution that they were stored with, and are not copied."""
        self._append(_id_of(source), messages)

    def _append(self, source_id: str, messages: Sequence[Message]) -> None:
        known = self.context_messages.get(source_id)
        self.context_messages[source_id] = messages if not known else (*known, *messages)

    def extend_instructions(self, source: Contributor, instructions: str | Sequence[str]) -> None:
        """Add to the system instructions; blank ones add nothing."""
        texts = (instructions,) if isinstance(instructions, str) else instructions
        stamp = source_of(source)
        self.instructions.extend(Instruction(clean_text(text), stamp) for text in texts if text.strip())

    def extend_tools(self, source: Contributor, tools: "FunctionTool | Sequence[FunctionTool]") -> None:
        """Offer tools for this run only. The tool objects are not touched.

        Raises:
            DuplicateToolError: another tool of that name is offered already; the same object again is no fault.
            ProviderError: something is no tool: a function that `@tool` was not put on, for example.
        """
        from .tool import FunctionTool

        stamp = source_of(source)
        before = list(self.tools)
        try:
            for tool in tools if isinstance(tools, Sequence) else (tools,):
                if not isinstance(cast("object", tool), FunctionTool):
                    raise ProviderError(f"it offers a {type(tool).__name__} that is no tool; @tool makes one")
                self._offer(OfferedTool(tool, stamp))
        except ProviderError:
            self.tools[:] = before
            raise

    def _offer(self, offered: OfferedTool) -> None:
        known = next((one.tool for one in self.tools if one.tool.name == offered.tool.name), None)
        if known is None:
            self.tools.append(offered)
        elif known is not offered.tool:
            raise DuplicateToolError(offered.tool.name)

    def extend_middleware(self, source: Contributor, middleware: "Middleware | Sequence[Middleware]") -> None:
        """Stand around this run's model calls or tool calls, inside the agent's and the run's own middleware.

        Raises:
            MiddlewareError: it stands around runs, which a provider is part of, or it is no middleware.
        """
        from .middleware import MiddlewareError, kind_of, name_of

        stamp = source_of(source)
        added: list[AddedMiddleware] = []
        items: Sequence[Middleware] = (
            cast("Sequence[Middleware]", middleware) if isinstance(middleware, Sequence) else (middleware,)
        )
        for item in items:
            kind = kind_of(item)
            if kind == "agent":
                raise MiddlewareError(f"provider {_id_of(source)!r} cannot add {name_of(item)}: it stands around runs")
            added.append(AddedMiddleware(item, kind, stamp))
        self.middleware.extend(added)

    def extend_approval_rules(self, source: Contributor, rules: "ApprovalRule | Sequence[ApprovalRule]") -> None:
        """Decide about this run's tool calls, before a person is asked: see `providers.api.approval`."""
        del source
        items: Sequence[ApprovalRule] = (
            cast("Sequence[ApprovalRule]", rules) if isinstance(rules, Sequence) else (rules,)
        )
        self.approval_rules.extend(items)

    def extend_options(self, source: Contributor, options: RunOptions) -> None:
        """Set what neither the agent nor the run has set; what they have set stays."""
        del source
        given = options.model_fields_set - self.options.model_fields_set
        self.options = self.options.model_copy(update={name: getattr(options, name) for name in given})

    def remember(self, records: "Sequence[MemoryRecord]") -> None:
        """Keep these in long-term memory, if the run is kept: they are committed with it, once."""
        self.memories.extend(records)

    def get_middleware(self, kind: "MiddlewareKind | None" = None) -> "list[Middleware]":
        """What providers have added, in provider order."""
        return [added.middleware for added in self.middleware if kind is None or added.kind == kind]

    def replace_messages(
        self, source: Contributor, messages: Iterable[Message], *, of: Sequence[str] | None = None
    ) -> None:
        """Put other messages in the place of context messages. Who did it, and which went, is recorded.

        Args:
            source: Who replaces them.
            messages: What stands there from now on; a message that was there already keeps its attribution.
            of: Sources whose messages go; default: every one but the run's own input.
        """
        stamp = source_of(source)
        kept = tuple(_attributed(message, stamp, ()) for message in messages)
        same = set(map(id, kept))
        still = {message.message_id for message in kept if message.message_id is not None}
        sources = [name for name in self.context_messages if of is None or name in of]
        place = sources[0] if sources else _id_of(source)
        for name in sources:
            for message in self.context_messages[name]:
                if id(message) not in same and message.message_id not in still:
                    self.removed.append(Removal("message", message.message_id or name, stamp))
            self.context_messages[name] = ()
        self.context_messages[place] = kept

    def replace_instructions(self, source: Contributor, instructions: str | Sequence[str]) -> None:
        """Let these stand in the place of every instruction that providers have added so far."""
        stamp = source_of(source)
        texts = (instructions,) if isinstance(instructions, str) else instructions
        texts = tuple(map(clean_text, texts))
        known = {instruction.text: instruction for instruction in self.instructions}
        for instruction in self.instructions:
            if instruction.text not in texts:
                self.removed.append(Removal("instruction", instruction.text[:80], stamp))
        self.instructions[:] = [known.get(text) or Instruction(text, stamp) for text in texts if text.strip()]

    def remove_tools(self, source: Contributor, names: Sequence[str]) -> None:
        """Keep tools from the model in this run; unknown names are passed over."""
        stamp = source_of(source)
        gone = {offered.tool.name for offered in self.tools} & set(names)
        self.removed.extend(Removal("tool", name, stamp) for name in names if name in gone)
        self.tools[:] = [offered for offered in self.tools if offered.tool.name not in gone]

    def progress(self, source: Contributor, message: str | None = None, data: Any = None) -> None:
        """Tell the host how a hook gets on (`provider.progress`); not stored. Call it on the event loop.

        Args:
            source: The provider.
            message: For people; what is beyond 2,000 characters is cut.
            data: For programs: plain JSON.
        """
        if self.on_progress is not None:
            self.on_progress(_id_of(source), message[:MAX_PROGRESS] if message is not None else None, data)

    def warn(self, source: Contributor, message: str) -> None:
        """Tell the host what does not work as well as it should, although the run goes on (`warnings` of its answer).

        The text is told as it is: it must repeat no secret and no one's words.
        """
        if self.on_warning is not None:
            self.on_warning(_id_of(source), message[:MAX_PROGRESS])

    def show_plan(self, source: Contributor, entries: "Sequence[PlanEntry]") -> None:
        """Tell the host what the agent means to do (`plan.updated`): the whole plan, in the place of the one before.

        It is stored with the run's events. Call it on the event loop, from a hook or from a tool of the provider's.
        """
        if self.on_plan is not None:
            self.on_plan(source_of(source), entries)

    def get_messages(
        self,
        *,
        sources: Sequence[str] | None = None,
        exclude_sources: Sequence[str] = (),
        include_input: bool = False,
        include_response: bool = False,
    ) -> list[Message]:
        """Context messages in provider order, then the input, then the response."""
        found = [
            message
            for source_id, messages in self.context_messages.items()
            if (sources is None or source_id in sources) and source_id not in exclude_sources
            for message in messages
        ]
        if include_input:
            found.extend(self.input_messages)
        if include_response and self.response is not None:
            found.extend(self.response.messages)
        return found

    def fork(self) -> "SessionContext":
        """The context as it is now, to be added to beside others; `absorb` takes it in."""
        twin = SessionContext(
            session_id=self.session_id,
            input_messages=self.input_messages,
            options=self.options,
            service_session_id=self.service_session_id,
            properties=self.properties,
        )
        twin.run_messages = self.run_messages
        twin.context_messages = dict(self.context_messages)
        twin.instructions = list(self.instructions)
        twin.tools = list(self.tools)
        twin.middleware = list(self.middleware)
        twin.approval_rules = list(self.approval_rules)
        twin.removed = list(self.removed)
        twin.metadata = self.metadata
        twin.on_progress = self.on_progress
        twin.on_warning = self.on_warning
        twin.on_plan = self.on_plan
        twin._forked_from = (
            dict(self.context_messages),
            len(self.instructions),
            len(self.tools),
            len(self.middleware),
            len(self.approval_rules),
        )
        return twin

    def absorb(self, twin: "SessionContext") -> None:
        """Take in what was added to a fork. Whatever others have added meanwhile stands before it.

        Raises:
            DuplicateToolError: it offers another tool of a name that is taken.
        """
        messages, instructions, tools, middleware, rules = twin._forked_from
        for source_id, now in twin.context_messages.items():
            before = messages.get(source_id, ())
            if now is not before:
                self._append(source_id, now[len(before) :])
        self.instructions.extend(twin.instructions[instructions:])
        self.middleware.extend(twin.middleware[middleware:])
        self.approval_rules.extend(twin.approval_rules[rules:])
        for offered in twin.tools[tools:]:
            self._offer(offered)
        self.options = self.options.model_copy(
            update={
                name: getattr(twin.options, name)
                for name in twin.options.model_fields_set - self.options.model_fields_set
            }
        )


def source_of(contributor: Contributor) -> Source:
    """The attribution of what a provider adds."""
    if isinstance(contributor, str):
        return Source(type="provider", source_id=contributor)
    return Source(type="provider", source_id=contributor.source_id, source_type=type(contributor).__name__)


def _id_of(contributor: Contributor) -> str:
    return contributor if isinstance(contributor, str) else contributor.source_id


def _attributed(message: Message, stamp: Source, origins: Sequence[str]) -> Message:
    """The message with its attribution; the caller's object is never touched."""
    known = message.source
    if known is not None and known.type != "external":
        merged = tuple(dict.fromkeys((*(known.origin_session_ids or ()), *origins)))
        if merged == (known.origin_session_ids or ()):
            return message
        return message.model_copy(update={"source": known.model_copy(update={"origin_session_ids": merged})})
    if origins:
        stamp = stamp.model_copy(update={"origin_session_ids": tuple(dict.fromkeys(origins))})
    return _cleaned(message.model_copy(update={"source": stamp}))


def _cleaned(message: Message) -> Message:
    content = tuple(map(cleaned_block, message.content))
    if all(map(operator.is_, content, message.content)):
        return message
    return message.model_copy(update={"content": content})
