"""A provider made of two functions. What it keeps stands in the session's state."""

from providers.api.provider import ContextProvider
from providers.api.simple import Exchange, ProvideRequest


def short_answers(request: ProvideRequest) -> str:
    """An instruction for this run; a provider may add messages, tools and options as well."""
    answers = request.state.get("answers", 0)
    return f"The user prefers short answers, and has had {answers} so far."


def count(exchange: Exchange) -> None:
    """Called after a run that succeeded."""
    exchange.state["answers"] = exchange.state.get("answers", 0) + 1


provider = ContextProvider.of("user_memory", provide=short_answers, store=count)
