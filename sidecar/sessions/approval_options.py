"""The answers that a person can give about a tool call, and how an answer is read. Anything unclear is no consent."""

from typing import Any, Final, NamedTuple, cast

from pydantic import ValidationError

from protocol.base import Json, JsonObject
from protocol.host import ApprovalOption, ApprovalOutcome
from protocol.messages import ApprovalResponseBlock
from sidecar.agents.consent import REJECTED_TEXT, GatedCall
from sidecar.agents.standing_rules import canonical

MAX_MESSAGE: Final = 4_000
"""Characters of what a person tells the model with a rejection."""
MAX_SHOWN: Final = 2_000
"""Characters of a call's arguments in a plain editor's message."""

_ONCE: Final = (
    ApprovalOption(option_id="allowOnce", name="Allow once", kind="allowOnce"),
    ApprovalOption(option_id="rejectOnce", name="Reject", kind="rejectOnce"),
)
_STANDING: Final = (
    ApprovalOption(option_id="allowSession", name="Allow this tool for the session", kind="allowSession"),
    ApprovalOption(option_id="allowSessionExactly", name="Allow this exact call for the session", kind="allowSession"),
    ApprovalOption(option_id="allowAlways", name="Always allow this tool", kind="allowAlways"),
    ApprovalOption(option_id="allowAlwaysExactly", name="Always allow this exact call", kind="allowAlways"),
)
_REJECT_ALWAYS: Final = ApprovalOption(option_id="rejectAlways", name="Always reject this tool", kind="rejectAlways")


class Answer(NamedTuple):
    """A person's answer, read."""

    approved: bool
    outcome: str
    """As events tell it."""
    option: str | None = None
    """The option that was chosen."""
    message: str | None = None
    """For the model, with a rejection."""

    @property
    def text(self) -> str:
        """What the model is told of a call that was rejected."""
        return REJECTED_TEXT if not self.message else f"{REJECTED_TEXT} They said: {self.message}"


DENIED: Final = Answer(approved=False, outcome="denied")


def options_for(gated: GatedCall) -> tuple[ApprovalOption, ...]:
    """What can be answered about a call: nothing lasting where a rule would ask again all the same."""
    if not gated.may_stand:
        return (*_ONCE, _REJECT_ALWAYS)
    return (_ONCE[0], *_STANDING, _ONCE[1], _REJECT_ALWAYS)


def read_outcome(answer: Json, options: tuple[ApprovalOption, ...]) -> Answer:
    """What a host answered. A shape, an outcome or an option that is not known denies."""
    try:
        given = ApprovalOutcome.model_validate(answer)
    except ValidationError:
        return DENIED
    chosen = next((option for option in options if option.option_id == given.option_id), None)
    if given.outcome != "selected" or chosen is None:
        return DENIED
    if chosen.kind.startswith("allow"):
        return Answer(approved=True, outcome="approved", option=chosen.option_id)
    return Answer(approved=False, outcome="denied", option=chosen.option_id, message=_bounded(given.message))


def read_response(block: ApprovalResponseBlock) -> Answer:
    """The same of an `approvalResponse` in a run's input."""
    if block.approved:
        return Answer(approved=True, outcome="approved", option="allowOnce")
    return Answer(approved=False, outcome="denied", option="rejectOnce", message=_bounded(block.message))


def message_request(payload: JsonObject, *, is_previewed: bool = False) -> JsonObject:
    """The question as a plain editor can show it: a message with one button an option.

    Args:
        payload: That of `host/requestApproval`.
        is_previewed: Its description says what the call would do: better than its arguments do.
    """
    call: dict[str, Any] = payload["toolCall"]
    text = f"{payload['title']}\n{payload['description'] if is_previewed else _shown(call['arguments'])}"
    actions = [{"title": option["name"]} for option in payload["options"]]
    return {"type": 2, "message": text, "actions": actions}


def read_action(answer: Json, options: tuple[ApprovalOption, ...]) -> Answer:
    """What a plain editor answered: the button that was pressed, or nothing."""
    title = cast("JsonObject", answer).get("title") if isinstance(answer, dict) else None
    chosen = next((option.option_id for option in options if option.name == title), None)
    return read_outcome({"outcome": "selected", "optionId": chosen}, options)


def _bounded(message: str | None) -> str | None:
    return message[:MAX_MESSAGE].strip() or None if message is not None else None


def _shown(arguments: JsonObject) -> str:
    text = canonical(arguments)
    return text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]}… ({len(text) - MAX_SHOWN} more characters)"
