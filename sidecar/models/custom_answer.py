"""What a plug-in's chat client gives, held to the contract of `ChatClient.stream`. Makes no calls."""

import json
from collections.abc import Callable, Collection
from typing import Final, get_args

from protocol.messages import FunctionCallBlock, Usage
from providers.api.ports import (
    CallRequested,
    ChatUpdate,
    Finished,
    FinishReason,
    ReasoningDelta,
    RetryNotice,
    TextDelta,
)
from sidecar.errors import ModelBadStream

from .answer_text import TextJoiner
from .call_blocks import CallBlocks

_REASONS: Final = frozenset(get_args(FinishReason))


class CustomAnswer:
    """One answer as it comes: only what the contract allows goes on, and the ending comes last."""

    def __init__(self, name: str, taken_ids: Collection[str] = ()) -> None:
        """`name`: the client's, for messages; `taken_ids`: ids of the conversation's earlier calls."""
        self.is_finished = False
        """Whether the ending has come."""
        self._name = name
        self._text, self._reasoning = TextJoiner(), TextJoiner()
        self._calls = CallBlocks(taken_ids)

    def checked(self, update: object) -> list[ChatUpdate]:
        """What of an update may be handed on.

        Raises:
            ModelBadStream: it is no update, or the stream has ended without an ending.
        """
        match update:
            case str() | TextDelta(text=str()):
                return _said(TextDelta, self._text.add(update if isinstance(update, str) else update.text))
            case ReasoningDelta(text=str(text)):
                return _said(ReasoningDelta, self._reasoning.add(text))
            case CallRequested(call=FunctionCallBlock() as call):
                return [CallRequested(self._own(call))]
            case RetryNotice(message=str(), attempt=int()):
                return [update]
            case Finished(reason=reason, usage=None | Usage(), model=None | str(), conversation_id=None | str()) if (
                reason in _REASONS
            ):
                self.is_finished = True
                rest = [*_said(ReasoningDelta, self._reasoning.finish()), *_said(TextDelta, self._text.finish())]
                return [*rest, update]
            case None:
                raise ModelBadStream(f"{self._name}: the stream ended without Finished")
            case _:
                raise ModelBadStream(f"{self._name}: the stream holds {type(update).__name__}, or what does not fit it")

    def _own(self, call: FunctionCallBlock) -> FunctionCallBlock:
        """The call, with an id of its own, and arguments that can travel."""
        try:
            return self._calls.make(call.call_id, call.name, call.raw_arguments or json.dumps(call.arguments))
        except (TypeError, ValueError, RecursionError):
            raise ModelBadStream(f"{self._name}: a call has no name, or arguments that are no JSON") from None


def _said(kind: Callable[[str], ChatUpdate], text: str) -> list[ChatUpdate]:
    return [kind(text)] if text else []
