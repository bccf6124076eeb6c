"""The tools of a small kitchen."""

from typing import Annotated

from providers.api.invocation import FunctionInvocationContext
from providers.api.tool import ToolError, tool


@tool(kind="read", title="Look at the menu")
def menu(kind: Annotated[str, "meat or veg"]) -> list[str]:
    """The dishes of a kind."""
    return ["stew"] if kind == "meat" else ["ratatouille", "curry"]


@tool
async def order(dish: str, ctx: FunctionInvocationContext) -> str:
    """Order a dish for the guest."""
    guest = ctx.kwargs.get("guest")
    if guest is None:
        raise ToolError("Nobody said who the guest is.")
    if ctx.session is not None:
        ctx.session.state["ordered"] = dish
    return f"{dish} for {guest}"
