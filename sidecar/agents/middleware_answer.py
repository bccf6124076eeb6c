"""What the middleware of a run answers in the run's place, as messages of the run."""

from collections.abc import Sequence

from protocol.messages import Message, Role, Source, text_message
from providers.api.context import Response
from sidecar.errors import MiddlewareFailed

from .output import new_message_id
from .parts import BoundMiddleware


def messages_of(result: object, around: Sequence[BoundMiddleware], run_id: str) -> tuple[Message, ...]:
    """What middleware answers, as messages of the run's that say whose they are.

    Raises:
        MiddlewareFailed: it is neither a response nor text.
    """
    by = Source(type="middleware", source_id=", ".join(bound.name for bound in around))
    return tuple(
        message.model_copy(
            update={"message_id": new_message_id(), "source": by, "run_id": run_id, "role": _role(message)}
        )
        for message in _said(result)
    )


def _role(message: Message) -> Role:
    """An answer is the assistant's, but for results of tools."""
    return "tool" if message.role == "tool" else "assistant"


def _said(result: object) -> Sequence[Message]:
    match result:
        case Response(messages=messages) if messages:
            return messages
        case Response(text=text) | str(text):
            return (text_message("assistant", text),) if text else ()
        case None:
            return ()
        case _:
            raise MiddlewareFailed("agent", f"its result is a {type(result).__name__}, not a Response or a string")
