"""Run middleware: what stands around a whole run, and may answer in its place. A guard that fails, fails the run."""

from collections.abc import Awaitable, Callable, Sequence

from protocol.messages import Message, Role, Source, text_message
from providers.api.context import Response
from providers.api.middleware import AgentContext, MiddlewareFailure, MiddlewareTermination, processor_of
from sidecar.errors import MiddlewareFailed, SidecarError

from .onion import TookTooLong, named, through
from .output import new_message_id
from .parts import BoundMiddleware


async def run_within(
    around: Sequence[BoundMiddleware], context: AgentContext, inside: Callable[[], Awaitable[None]], limit_s: float
) -> None:
    """Do the run inside its middleware; `context.result` is what the middleware leaves.

    Args:
        around: Run middleware, outermost first.
        context: What it is given.
        inside: The run; it sets `context.result`.
        limit_s: The middleware's own time; the run is not counted.

    Raises:
        MiddlewareFailed: it failed, or failed the run on purpose.
        SidecarError: the run failed.
    """
    try:
        await through([processor_of(bound.middleware) for bound in around], context, inside, limit_s=limit_s)
    except MiddlewareTermination as termination:
        context.result = termination.result if termination.result is not None else context.result
    except TookTooLong:
        raise MiddlewareFailed("agent", f"it took longer than {limit_s:g} s of its own time") from None
    except MiddlewareFailure as failure:
        raise MiddlewareFailed("agent", str(failure)) from failure
    except SidecarError:
        raise
    except Exception as error:
        raise MiddlewareFailed("agent", named(error)) from error


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
