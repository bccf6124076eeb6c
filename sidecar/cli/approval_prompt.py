"""Asks a person whether a call may be made: shows the call, takes the answer. Whatever is no clear answer rejects."""

from collections.abc import Iterable, Sequence
from typing import Final

from sidecar_client.types import ApprovalOption, ApprovalOutcome, JsonObject, RequestApprovalParams

from .asker import Asker
from .output import Output
from .visible import quoted, shortened, visible, visible_json

ARGUMENTS_SHOWN: Final = 20
VALUE_LENGTH: Final = 300
"""Characters of an argument that are shown at once."""
TRIES: Final = 3
_TITLE_LENGTH: Final = 200
_DESCRIPTION_LINES: Final = 8
_WHOLE: Final = "v"


async def ask_approval(asker: Asker, request: RequestApprovalParams) -> ApprovalOutcome:
    """Ask about one call. An empty answer, the end of the input and three answers of no use reject it."""
    out, options, arguments = asker.out, request["options"], request["toolCall"]["arguments"]
    _show(out, request)
    shorter = _show_arguments(out, arguments)
    for number, option in enumerate(options, 1):
        out.line(f"  {number}  {shortened(visible(option['name']), _TITLE_LENGTH)}")
    if shorter:
        out.line(f"  {_WHOLE}  show the arguments whole")
    tries = 0
    while tries < TRIES:
        answer = await asker.ask(f"may it be called? (1-{len(options)}, after a rejection also why; empty rejects) ")
        if answer == _WHOLE and shorter:
            _show_whole(out, arguments)
        elif not answer:
            break
        elif (outcome := chosen(options, answer)) is not None:
            return outcome
        else:
            tries += 1
    return rejection(options)


def chosen(options: Sequence[ApprovalOption], answer: str) -> ApprovalOutcome | None:
    """The option that an answer means: by its number, or y and n; after a rejection may stand why. None: no option."""
    word, _, why = answer.partition(" ")
    option = _option(options, word.lower())
    if option is None or (why and not option["kind"].startswith("reject")):
        return None
    outcome = ApprovalOutcome(outcome="selected", optionId=option["optionId"])
    return {**outcome, "message": why.strip()} if why else outcome


def rejection(options: Sequence[ApprovalOption], why: str | None = None) -> ApprovalOutcome:
    """The answer that forbids this one call."""
    option = _of_kind(options, "rejectOnce")
    if option is None:
        return {"outcome": "cancelled"}
    outcome = ApprovalOutcome(outcome="selected", optionId=option["optionId"])
    return {**outcome, "message": why} if why else outcome


def _option(options: Sequence[ApprovalOption], word: str) -> ApprovalOption | None:
    if word.isascii() and word.isdigit() and len(word) < len("100"):
        return options[int(word) - 1] if 1 <= int(word) <= len(options) else None
    kinds = {"y": "allowOnce", "yes": "allowOnce", "n": "rejectOnce", "no": "rejectOnce"}
    return _of_kind(options, kinds.get(word, ""))


def _of_kind(options: Sequence[ApprovalOption], kind: str) -> ApprovalOption | None:
    return next((option for option in options if option["kind"] == kind), None)


def _show(out: Output, request: RequestApprovalParams) -> None:
    call = request["toolCall"]
    out.line(f"? {shortened(visible(request['title']), _TITLE_LENGTH)}", "bold yellow")
    for line in quoted(request.get("description", ""), _DESCRIPTION_LINES, _TITLE_LENGTH):
        out.line(line)
    kind = f" ({visible(call['kind'])})" if "kind" in call else ""
    out.line(f"  tool {visible(call['name'])}{kind}")


def _show_arguments(out: Output, arguments: JsonObject) -> bool:
    """Show the call's arguments; whether some of it was left out."""
    lines = list(_lines(arguments))
    short = [shortened(line, VALUE_LENGTH) for line in lines[:ARGUMENTS_SHOWN]]
    for line in short:
        out.line(f"  │ {line}")
    if len(lines) > ARGUMENTS_SHOWN:
        out.line(f"  │ [… {len(lines) - ARGUMENTS_SHOWN:,} arguments …]")
    return short != lines


def _show_whole(out: Output, arguments: JsonObject) -> None:
    for line in _lines(arguments):
        out.line(f"  │ {line}")


def _lines(arguments: JsonObject) -> Iterable[str]:
    return (f"{visible(name)}: {visible_json(value)}" for name, value in arguments.items())
