"""Tools that keep something for later in the session's state."""

from typing import Annotated

from providers.api.invocation import FunctionInvocationContext
from providers.api.tool import tool


@tool
def remember_topic(topic: Annotated[str, "In the user's words."], ctx: FunctionInvocationContext) -> str:
    """Keep a topic in mind."""
    if ctx.session is None:  # in a run without a session nothing can be kept
        return "No session available."
    ctx.session.state["topic"] = topic
    return f"Stored {topic!r} in session state."


@tool
def store_findings(findings: str, ctx: FunctionInvocationContext) -> None:
    """Keep what was found.

    The model reads this docstring's first paragraph only. The run's values reach the tools of other agents, too.
    """
    if ctx.session is not None:
        ctx.session.state["findings"] = findings
        ctx.session.state["found_for"] = ctx.kwargs.get("user_id")
