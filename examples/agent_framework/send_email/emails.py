"""A tool that needs values of the run, and two ways of middleware to give them to it."""

from typing import Annotated

from providers.api.invocation import FunctionInvocationContext
from providers.api.middleware import CallNext, FunctionMiddleware
from providers.api.tool import ToolError, tool


@tool
def send_email(address: Annotated[str, "Recipient's email address."], ctx: FunctionInvocationContext) -> str:
    """Send an email."""
    # The model never sees `ctx`, so it can neither know nor forge who the user is.
    if "user_id" not in ctx.kwargs:
        raise ToolError("Nobody is signed in.")
    return _queued(address, ctx.kwargs["user_id"], ctx.kwargs.get("tenant", "default"))


@tool
def send_email_as(
    address: Annotated[str, "Recipient's email address."],
    user_id: Annotated[str, "The sender's user id."],
    tenant: Annotated[str, "The sender's tenant."] = "default",
) -> str:
    """Send an email in somebody's name."""
    return _queued(address, user_id, tenant)


class EnrichToolContext(FunctionMiddleware):
    """Adds to the run's values for tools what the host has left out."""

    async def process(self, context: FunctionInvocationContext, call_next: CallNext) -> None:
        """Change this call's own copy of them; other calls have theirs."""
        context.kwargs.setdefault("tenant", "contoso")
        context.kwargs.setdefault("request_source", "middleware")
        await call_next()
        context.result = f"{context.result}, asked for by {context.kwargs['request_source']}"


class InjectRunContext(FunctionMiddleware):
    """Takes user and tenant from the run's properties, and never from the model."""

    async def process(self, context: FunctionInvocationContext, call_next: CallNext) -> None:
        """Change the arguments before the tool is called."""
        for name in ("user_id", "tenant"):
            # Taken away first: else the model's own word would count in a run that brings none.
            context.arguments.pop(name, None)
            if name in context.run.properties:
                context.arguments[name] = context.run.properties[name]
        await call_next()


def _queued(address: str, user_id: str, tenant: str) -> str:
    return f"Queued email for {address} from {user_id} ({tenant})"
