"""Middleware around a run or a model call: a guard that fails, fails the run. Around a tool call that is different."""

from collections.abc import Sequence
from typing import Literal

from providers.api.middleware import AgentContext, CallNext, ChatContext, MiddlewareFailure, MiddlewareTermination
from sidecar.errors import MiddlewareFailed, SidecarError

from .onion import Layer, TookTooLong, named, through


async def through_guards(
    layers: Sequence[Layer],
    context: AgentContext | ChatContext,
    work: CallNext,
    *,
    kind: Literal["agent", "chat"],
    limit_s: float,
    repeatable: bool = False,
) -> bool:
    """Do the work inside its middleware; `context.result` is what the middleware leaves.

    Args:
        layers: The middleware, outermost first.
        context: What it is given.
        work: What it stands around; it sets `context.result`.
        kind: The middleware's kind, for errors.
        limit_s: The middleware's own time; the work is not counted.
        repeatable: Whether the work may be done again.

    Returns:
        Whether the middleware ended it on purpose.

    Raises:
        MiddlewareFailed: it failed, or failed the run on purpose.
        SidecarError: the work failed.
    """
    try:
        await through(layers, context, work, limit_s=limit_s, repeatable=repeatable)
    except MiddlewareTermination as termination:
        if termination.result is not None:
            context.result = termination.result
        return True
    except TookTooLong:
        raise MiddlewareFailed(kind, f"it took longer than {limit_s:g} s of its own time") from None
    except MiddlewareFailure as failure:
        raise MiddlewareFailed(kind, str(failure)) from failure
    except SidecarError:
        raise
    except Exception as error:
        raise MiddlewareFailed(kind, named(error)) from error
    return False
