"""Middleware around a run that writes what the host says of the request into the session's state."""

from providers.api.invocation import FunctionInvocationContext
from providers.api.middleware import AgentContext, AgentMiddleware, CallNext
from providers.api.tool import tool


class StampRequestMetadata(AgentMiddleware):
    """Stamps the session with the id of the request, before anything else of the run happens."""

    async def process(self, context: AgentContext, call_next: CallNext) -> None:
        """Write it, and do the run. If the run fails, the stamp goes with it."""
        if context.session is not None and "request_id" in context.properties:
            context.session.state["requestId"] = str(context.properties["request_id"])
        await call_next()


@tool
def which_request(ctx: FunctionInvocationContext) -> str:
    """Tell which request this is."""
    return "none" if ctx.session is None else ctx.session.state.get("requestId", "none")
