"""What a tool says that a call would do, for the people who are asked about it. Asks nobody, and runs no call."""

from typing import NamedTuple

from protocol.messages import FunctionCallBlock
from providers.api.tool import ArgumentsError, FunctionTool, Preview, ToolError
from sidecar.errors import new_error_id
from sidecar.telemetry import log_failure

from .time_limit import LimitPassed, within
from .tool_call import ARGUMENTS_TEXT, FAILED_TEXT


class LookedAt(NamedTuple):
    """What is said of one call."""

    preview: Preview | None = None
    """For people; `None`: nothing beyond the call itself."""
    fault: str | None = None
    """For the model: the call cannot be made, so there is nothing to ask."""


async def look_at(call: FunctionCallBlock, tool: FunctionTool, limit_s: float) -> LookedAt:
    """Have a tool say what a call would do. One that fails, or takes too long, makes the call fail."""
    if tool.preview is None:
        return LookedAt()
    say, said = tool.preview, list[Preview]()

    async def look() -> None:
        said.append(await say(call.arguments))

    try:
        await within(limit_s, look())
    except ToolError as error:
        return LookedAt(fault=f"Error: {error}")
    except ArgumentsError:
        return LookedAt(fault=ARGUMENTS_TEXT)
    except (Exception, LimitPassed) as error:
        log_failure(f"preview of {tool.name!r}", error, new_error_id())
        return LookedAt(fault=FAILED_TEXT)
    return LookedAt(said[0])
