"""Asks a person the questions of tools and providers: a form field by field, or a URL to open. Opens none itself.

An empty answer leaves an optional field out, and takes a field's default. A required field without one, or a form in
which nothing was answered, declines; so does what cannot be asked on a line.
"""

from typing import Any, Final

from sidecar_client.types import ElicitParams, ElicitResult, JsonObject

from .asker import Asker
from .form_field import FormField, NoField, Unfit
from .visible import quoted, shortened, visible

TRIES: Final = 3
_MESSAGE_LINES: Final = 12
_LINE_LENGTH: Final = 300
_URL_LENGTH: Final = 2_000
_DECLINE: Final = ElicitResult(action="decline")


async def ask_question(asker: Asker, question: ElicitParams) -> ElicitResult:
    """Ask one question; what is answered, or that nothing is."""
    asker.out.line("? a question:", "bold yellow")
    for line in quoted(question["message"], _MESSAGE_LINES, _LINE_LENGTH):
        asker.out.line(line)
    if question["mode"] == "url":
        asker.out.line(
            f"  open it yourself, if you trust it: {shortened(visible(question.get('url', '')), _URL_LENGTH)}"
        )
        return await _agreed(asker)
    schema: JsonObject = question.get("requestedSchema") or {}
    fields: dict[str, Any] = schema.get("properties") or {}
    if not fields:
        return await _agreed(asker)
    required: list[str] = schema.get("required") or []
    try:
        form = [FormField.of(name, field, required=name in required) for name, field in fields.items()]
    except NoField as reason:
        asker.out.line(f"  declined: {reason}", "dim")
        return _DECLINE
    return await _filled_in(asker, form)


async def _agreed(asker: Asker) -> ElicitResult:
    answer = (await asker.ask("accept? y; empty declines: ")).lower()
    return {"action": "accept"} if answer in ("y", "yes") else _DECLINE


async def _filled_in(asker: Asker, form: list[FormField]) -> ElicitResult:
    content: JsonObject = {}
    answered = False
    for field in form:
        for line in field.lines:
            asker.out.line(line)
        text = await _answer(asker, field)
        if text is None or (not text and field.required and field.default is None):
            return _DECLINE
        answered = answered or bool(text)
        if text:
            content[field.name] = field.value(text)
        elif field.default is not None:
            content[field.name] = field.default
    return {"action": "accept", "content": content} if answered else _DECLINE


async def _answer(asker: Asker, field: FormField) -> str | None:
    """What was typed and fits, perhaps nothing; None after some answers that do not fit."""
    for _ in range(TRIES):
        text = await asker.ask(field.prompt)
        try:
            if text:
                field.value(text)
        except Unfit as complaint:
            asker.out.line(f"  {complaint}")
        else:
            return text
    return None
