"""What a provider's hook may write, as it was before: put back if the hook fails, counted if it does not."""

import json
from collections.abc import Sequence
from typing import Final

from protocol.base import JsonObject
from protocol.messages import Message
from providers.api.context import Instruction, SessionContext
from providers.api.json_value import plain_json
from providers.api.session import Session, State

from .metering import GrowingText, tokens_of

_ENCODER: Final = json.JSONEncoder(allow_nan=False)


class Undo:
    """A hook's writes: its own state in depth, the rest of the bag by its keys, and all of the context."""

    def __init__(self, session: Session, context: SessionContext, state_key: str, *, own_only: bool = False) -> None:
        """Remember.

        Args:
            session: The state bag.
            context: What the model will see.
            state_key: The hook's own corner of the bag.
            own_only: Others write the bag at the same time: put back nothing but the hook's own corner.
        """
        self._session = session
        self._context = context
        self._state_key = state_key
        self._own_only = own_only
        self._bag = {} if own_only else session.snapshot()
        self._own: str | None = None
        self._instructions = list(context.instructions)
        self._messages = dict(context.context_messages)
        self._tools = list(context.tools)
        self._middleware = list(context.middleware)
        self._approval_rules = len(context.approval_rules)
        self._removed = len(context.removed)
        self._memories = len(context.memories)
        self._options = context.options

    def remember_state(self) -> None:
        """Keep the provider's own state. Raises where an earlier hook has left something that is no JSON in it."""
        self._own = self._dumped()

    def check_state(self) -> None:
        """Refuse state that could not be stored: it would take the whole run's writes with it."""
        self._dumped()

    def restore(self) -> None:
        """Put everything back."""
        state, context = self._session.state, self._context
        with self._session.lock:
            if not self._own_only:
                state.clear()
                state.update(self._bag)
            if self._own is not None:
                state[self._state_key] = json.loads(self._own)
        context.instructions[:] = self._instructions
        context.context_messages.clear()
        context.context_messages.update(self._messages)
        context.tools[:] = self._tools
        context.middleware[:] = self._middleware
        del context.approval_rules[self._approval_rules :]
        del context.removed[self._removed :]
        del context.memories[self._memories :]
        context.options = self._options

    def added(self, text: GrowingText) -> JsonObject:
        """How much has been added since; `text` counts it."""
        context = self._context
        known = set(map(id, self._instructions))
        instructions: list[Instruction] = [one for one in context.instructions if id(one) not in known]
        messages: tuple[Message, ...] = ()
        for source, now in context.context_messages.items():
            before = self._messages.get(source, ())
            if now is not before:
                messages += tuple(_new(now, before))
        characters = sum(len(instruction.text) for instruction in instructions) + text.length(messages)
        return {
            "instructions": len(instructions),
            "messages": len(messages),
            "tools": max(len(context.tools) - len(self._tools), 0),
            "middleware": len(context.middleware) - len(self._middleware),
            "tokens": tokens_of(characters),
        }

    @property
    def removed(self) -> int:
        """How much has been taken away since."""
        return len(self._context.removed) - self._removed

    def _dumped(self) -> str:
        state = self._session.state_of(self._state_key)
        if not state:
            return "{}"
        try:
            return _ENCODER.encode(state)
        except (TypeError, ValueError, RecursionError):
            raise UnstorableState(self._state_key, state) from None


def _new(now: Sequence[Message], before: Sequence[Message]) -> Sequence[Message]:
    """What was appended; all of it, where something else stands there now."""
    is_longer = len(now) >= len(before) and all(map(lambda new, old: new is old, now, before))
    return now[len(before) :] if is_longer else now


class UnstorableState(Exception):
    """A provider's state holds what is no JSON; the message names where it stands."""

    def __init__(self, key: str, state: State) -> None:
        try:
            plain_json(state, key)
            super().__init__(f"state {key!r} is no JSON")
        except ValueError as error:
            super().__init__(str(error))
