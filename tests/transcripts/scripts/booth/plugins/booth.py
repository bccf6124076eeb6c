"""The tools of the golden conversation `elicitation`: they ask a person, by a form and by an address."""

from providers.api.run_context import current_run
from providers.api.tool import tool

SEATS = {"type": "object", "properties": {"seats": {"type": "integer", "minimum": 1}}, "required": ["seats"]}


@tool
async def book() -> str:
    """Book seats, as many as the guest says."""
    answer = await current_run().elicit("How many seats?", schema=SEATS)
    return f"{answer.content['seats']} seats are booked" if answer.action == "accept" else "nothing is booked"


@tool
async def pay() -> str:
    """Have the guest pay."""
    answer = await current_run().elicit("Please pay.", url="https://example.org/pay")
    return f"the guest said: {answer.action}"
