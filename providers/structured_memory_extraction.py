"""Asks a model which facts a text holds. What it answers may be invented: whether to keep it is not decided here."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, cast

from protocol.agents import RunOptions
from protocol.base import JsonObject
from protocol.messages import text_message
from providers.api.json_schema import value_problem
from providers.api.json_value import parse_json
from providers.api.ports import ChatClient, ChatRequest, ask

from .grounding import has_letters, is_grounded
from .grounding_dates import dates_in
from .structured_memory_wording import EXTRACT, extract_one

MAX_ANSWER_TOKENS: Final = 512

LONGEST_COPY: Final = 100
"""Characters of a value that a small model may give."""

_DATE_LENGTH: Final = len("1990-05-17")
_EDGES: Final = ' \t\r\n\u3000,;:`"\u3001\uff0c'
"""What no value begins or ends with, but a small model's copy of one does."""


@dataclass(frozen=True, slots=True)
class Extraction:
    """What is looked for."""

    fields: Mapping[str, JsonObject]
    """Field → its schema."""
    definitions: JsonObject
    """`$defs` that the fields refer to."""
    instructions: str | None = None
    """What the model is told; default: our own words."""
    grounded: bool = True
    """Whether only what stands in the text will be kept."""

    async def of(self, text: str, client: ChatClient) -> JsonObject:
        """What the model finds in a text: in one call, or in one call a field if the model is small.

        Raises:
            ValueError: an answer was cut, or is no JSON.
            TypeError: it is no object.
            Exception: what `ChatClient.stream` raises.
        """
        if not client.traits.single_field_extraction:
            schema = {name: {"anyOf": [field, {"type": "null"}]} for name, field in self.fields.items()}
            return await self._ask(client, schema, text, self.instructions or EXTRACT)
        found: JsonObject = {}
        for name, field in self.fields.items():
            asked = _bounded(field, len(text) if self.grounded else LONGEST_COPY)
            found |= await self._ask(client, {name: asked}, text, self.instructions or extract_one(name, field))
        if not self.grounded:
            return found
        return {name: value for name, value in found.items() if _is_likely(value, self.fields[name])}

    async def _ask(self, client: ChatClient, properties: JsonObject, text: str, told: str) -> JsonObject:
        """One call; what does not follow the schema is left out."""
        answer = await ask(
            client,
            ChatRequest(
                messages=(text_message("user", text),),
                instructions=told,
                options=RunOptions(temperature=0, max_output_tokens=MAX_ANSWER_TOKENS),
                response_schema={
                    "type": "object",
                    "properties": properties,
                    "required": list(properties),
                    "additionalProperties": False,
                    **self.definitions,
                },
            ),
        )
        if answer.finish.reason != "stop":
            raise ValueError(f"the extraction ended with {answer.finish.reason!r}")
        found = parse_json(answer.text)
        if not isinstance(found, dict):
            raise TypeError("the extraction gave no object")
        given = {
            name: _tidied(value, self.fields[name])
            for name, value in cast("JsonObject", found).items()
            if name in properties
        }
        return await asyncio.to_thread(_valid_fields, given, properties, self.definitions)


def without_rivals(found: JsonObject, known: Mapping[str, Any]) -> JsonObject:
    """What one field alone claims: asked field by field, a small model calls the same word a name and a city."""
    claims = [*known.items(), *found.items()]
    return {
        name: value
        for name, value in found.items()
        if not any(_gives_way(value, other) for rival, other in claims if rival != name)
    }


def _gives_way(value: Any, other: Any) -> bool:
    """Whether one holds the other; a date or a postcode does not give way to a number in it."""
    if _is_digits(value) and not isinstance(other, str):
        return False
    return is_grounded(value, str(other)) or is_grounded(other, str(value))


def _is_likely(value: Any, field: JsonObject) -> bool:
    """Asked for a name, a small model copies a number; only a field that says what it looks like may be all digits."""
    return not _is_digits(value) or not field.keys().isdisjoint(("enum", "format", "pattern"))


def _is_digits(value: Any) -> bool:
    return isinstance(value, str) and not has_letters(value)


def _bounded(field: JsonObject, longest: int) -> JsonObject:
    """The field's schema, with an end for a small model that finds none. It copies a date, but cannot rewrite one."""
    if field.get("type") != "string" or "enum" in field or "maxLength" in field:
        return field
    if _is_date(field):
        plain = {key: part for key, part in field.items() if key != "format"}
        return {**plain, "maxLength": max(min(longest, LONGEST_COPY), _DATE_LENGTH)}
    return {**field, "maxLength": min(longest, LONGEST_COPY)}


def _tidied(value: Any, field: JsonObject) -> Any:
    """Without what stands around a copied value. In a field of dates, the one date that the value holds."""
    if not isinstance(value, str):
        return value
    trimmed = value.strip(_EDGES)
    if not _is_date(field):
        return trimmed
    days = [*dates_in(trimmed)]
    return days[0].isoformat() if len(days) == 1 else None


def _is_date(field: JsonObject) -> bool:
    return field.get("format") == "date"


def _valid_fields(found: JsonObject, properties: JsonObject, definitions: JsonObject) -> JsonObject:
    return {
        name: value
        for name, value in found.items()
        if value is not None and value_problem({**properties[name], **definitions}, value) is None
    }
