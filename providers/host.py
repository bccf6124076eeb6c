"""A provider that the host carries out: `host/beforeRun`, `host/afterRun`. What it answers is data like any other."""

import secrets
from collections.abc import Mapping, Sequence
from typing import Any

from protocol.base import JsonObject
from protocol.host import BeforeRunResult, Replacement
from protocol.messages import Message
from protocol.tools import HostTool

from .api.context import SessionContext
from .api.errors import ProviderError
from .api.host import Host, HostUnavailable
from .api.ports import AgentView
from .api.provider import ContextProvider
from .api.run_context import current_run
from .api.session import Session, State
from .api.tool import FunctionTool
from .host_tool import host_tool


class HostProvider(ContextProvider):
    """One provider of the host's, by its source id. It can do what a provider in Python can."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._host: Host | None = None
        self._kwargs: JsonObject = {}
        """Of the run under way: its failure is told outside of it."""

    async def before_run(self, *, agent: AgentView, session: Session, context: SessionContext, state: State) -> None:
        """Add what the host says; replace what it wants replaced."""
        run = current_run()
        self._host = run.host if run is not None else None
        self._kwargs = dict(run.kwargs) if run is not None else {}
        answer = await self._ask("beforeRun", agent, context, state)
        added = BeforeRunResult.model_validate(answer)
        if added.replace is not None:
            self._replace(context, added.replace)
        instructions = (added.instructions,) if isinstance(added.instructions, str) else added.instructions
        if instructions:
            context.extend_instructions(self, instructions)
        if added.messages:
            context.extend_messages(self, map(_own, added.messages))
        if added.tools:
            context.extend_tools(self, self._tools(added))
        self._keep(state, added.state)

    async def after_run(self, *, agent: AgentView, session: Session, context: SessionContext, state: State) -> None:
        """Tell the host what was answered."""
        response = context.response
        extra: JsonObject = {}
        if response is not None:
            extra["response"] = {
                "messages": _wire(response.messages),
                "text": response.text,
                "usage": response.usage.wire(),
            }
        answer = await self._ask("afterRun", agent, context, state, extra)
        self._keep(state, answer.get("state"))

    async def on_failure(
        self,
        *,
        agent: AgentView,
        session: Session,
        context: SessionContext,
        state: State,
        error: Exception,
        partial_text: str,
    ) -> None:
        """Tell the host that the run has failed, and how far it came."""
        told: JsonObject = {"error": {"kind": getattr(error, "kind", "runStopped"), "message": str(error)}}
        if partial_text:
            told["partialText"] = partial_text
        await self._ask("afterRun", agent, context, state, told)

    async def _ask(
        self, phase: Any, agent: AgentView, context: SessionContext, state: State, extra: JsonObject | None = None
    ) -> JsonObject:
        if self._host is None:
            raise HostUnavailable("there is no host here")
        loaded = [message for messages in context.context_messages.values() for message in messages]
        params: JsonObject = {
            "inputMessages": _wire(context.input_messages),
            "contextMessages": _wire(loaded),
            "instructions": [instruction.text for instruction in context.instructions],
            "tools": [offered.tool.name for offered in context.tools],
            "state": dict(state),
            **(extra or {}),
        }
        if self._kwargs:
            params["kwargs"] = self._kwargs
        return await self._host.hook(phase, {"agent": agent.name, "sourceId": self.source_id}, params)

    def _replace(self, context: SessionContext, wanted: Replacement) -> None:
        if wanted.messages is not None:
            there: dict[str | None, list[Message]] = {}
            for message in context.get_messages():
                there.setdefault(message.message_id, []).append(message)
            context.replace_messages(self, [_there(message, there) or _own(message) for message in wanted.messages])
        if wanted.instructions is not None:
            context.replace_instructions(self, wanted.instructions)
        if wanted.tools is not None:
            kept = set(wanted.tools)
            context.remove_tools(self, [one.tool.name for one in context.tools if one.tool.name not in kept])

    def _tools(self, added: BeforeRunResult) -> Sequence[FunctionTool]:
        return [_tool(entry) for entry in added.tools or ()]

    def _keep(self, state: State, replacement: JsonObject | None) -> None:
        if replacement is not None:
            state.clear()
            state.update(replacement)


def _tool(entry: HostTool) -> FunctionTool:
    try:
        return host_tool(entry)
    except ValueError as error:
        raise ProviderError(f"its tool {entry.name!r}: {error}") from error


def _own(message: Message) -> Message:
    """Without the source that the host may have written, as it is known who adds it; with an id to refer to it by."""
    return message.model_copy(
        update={"source": None, "message_id": message.message_id or f"msg_{secrets.token_hex(8)}"}
    )


def _there(message: Message, there: Mapping[str | None, Sequence[Message]]) -> Message | None:
    """The message that was there, with its source, where the host sends it back as it was."""
    said = (message.role, message.content)
    return next((one for one in there.get(message.message_id, ()) if (one.role, one.content) == said), None)


def _wire(messages: Sequence[Message]) -> list[JsonObject]:
    return [message.wire() for message in messages]
