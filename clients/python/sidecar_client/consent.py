"""Answers that a person gives: to "may this call be made?", and to a question. Asks nobody.

What a person means is said by `allow_once()`, `reject("too dangerous")`, `accept({...})` and so on; which of the
options that a request offers that is, is found here.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from .calling import MaybeAwaitable
from .types import ApprovalOption, ApprovalOutcome, ElicitParams, ElicitResult, Json, RequestApprovalParams

DecisionKind: TypeAlias = Literal["allowOnce", "allowSession", "allowAlways", "rejectOnce", "rejectAlways"]

_NARROWER: Final[dict[DecisionKind, DecisionKind]] = {
    "allowAlways": "allowOnce",
    "allowSession": "allowOnce",
    "rejectAlways": "rejectOnce",
}
"""What is taken where an option is not offered: never more than was meant."""


@dataclass(frozen=True)
class Decision:
    """What a person decided about a call."""

    kind: DecisionKind
    message: str | None = None
    """Why it is rejected; the model reads it."""


ApprovalAnswer: TypeAlias = Decision | ApprovalOutcome | str | None
"""A decision, an outcome as the contract has it, an `optionId`, or None where nobody decided: the call is denied."""
ApprovalHandler: TypeAlias = Callable[[RequestApprovalParams], MaybeAwaitable[ApprovalAnswer]]
ElicitHandler: TypeAlias = Callable[[ElicitParams], MaybeAwaitable[ElicitResult | None]]
"""None: the person closed the question without an answer."""


def allow_once() -> Decision:
    """This call may be made."""
    return Decision("allowOnce")


def allow_session() -> Decision:
    """Calls of this tool may be made for the rest of the session."""
    return Decision("allowSession")


def allow_always() -> Decision:
    """Calls of this tool may be made from now on, until the rule is revoked."""
    return Decision("allowAlways")


def reject(message: str | None = None) -> Decision:
    """This call may not be made; `message` tells the model why."""
    return Decision("rejectOnce", message)


def reject_always(message: str | None = None) -> Decision:
    """Calls of this tool may not be made from now on; `message` tells the model why."""
    return Decision("rejectAlways", message)


def accept(content: Json = None) -> ElicitResult:
    """The person answered: with an object of the schema that was asked for, or by opening a URL."""
    return {"action": "accept"} if content is None else {"action": "accept", "content": content}


def decline() -> ElicitResult:
    """The person will not answer."""
    return {"action": "decline"}


def outcome_of(options: Sequence[ApprovalOption], answer: ApprovalAnswer) -> ApprovalOutcome:
    """An answer in the contract's words, for the options that a request offers.

    Where an option for the whole session or for ever is meant but not offered, it is taken for this call.

    Raises:
        ValueError: There is no such option.
    """
    if answer is None:
        return {"outcome": "cancelled"}
    if isinstance(answer, dict):
        return answer
    if isinstance(answer, str):
        if all(option["optionId"] != answer for option in options):
            raise ValueError(f"there is no option {answer!r}; there are {[option['optionId'] for option in options]}")
        return {"outcome": "selected", "optionId": answer}
    offered: dict[str, str] = {}
    for option in options:
        offered.setdefault(option["kind"], option["optionId"])
    chosen = offered.get(answer.kind) or offered.get(_NARROWER.get(answer.kind, answer.kind))
    if chosen is None:
        raise ValueError(f"no option of the kind {answer.kind} is offered; there are {list(offered)}")
    outcome = ApprovalOutcome(outcome="selected", optionId=chosen)
    return {**outcome, "message": answer.message} if answer.message is not None else outcome
