"""Learns named facts about the user from what they say, and asks for those that are missing.

Seed 001's UserInfo, for any schema. The state is the flat object of known fields.
"""

import asyncio
import difflib
import json
from collections.abc import Mapping
from typing import Any, Final, cast

from pydantic import Field, field_validator, model_validator

from protocol.agents import RunOptions
from protocol.base import JsonObject
from protocol.messages import Message, text_message
from providers.api.context import SessionContext
from providers.api.json_schema import dangling_reference, schema_problem, value_problem
from providers.api.json_value import parse_json
from providers.api.ports import AgentView, ChatClient, ChatRequest, ask
from providers.api.provider import ContextProvider, ProviderConfig
from providers.api.session import Session, State

from .grounding import is_grounded

ASK: Final = "You do not know the user's {field} yet. Ask for it, and answer no other question before you know it."
KNOWN: Final = "The user's {field}: {value}."
EXTRACT: Final = "Read the user's message and fill in what it says about the user. Use null for what it does not say."
EXTRACT_ONE: Final = (
    "Copy {meaning} from the message, word for word. If the message does not say it, answer with nothing."
)
MAX_ANSWER_TOKENS: Final = 512

LONGEST_COPY: Final = 100
"""Characters of a value that a small model may give."""

_EDGES: Final = ' \t\r\n\u3000,;:`"\u3001\uff0c'
"""What no value begins or ends with, but a small model's copy of one does."""
_DEFINITIONS: Final = ("$defs", "definitions")


class StructuredMemoryConfig(ProviderConfig):
    """What to learn, and how to speak of it."""

    json_schema: JsonObject = Field(alias="schema")
    """JSON Schema of an object; each of its `properties` is a field to learn."""
    instructions: str | None = None
    """What the extracting model is told."""
    ask: str | dict[str, str] = ASK
    """Instruction while a field is missing, for all fields or by field; `{field}` is its name. Empty: none."""
    known: str | dict[str, str] = KNOWN
    """Instruction once a field is known; `{field}` and `{value}`. Empty: none."""
    model: str | None = None
    """Model that extracts; default: the run's own."""
    grounded: bool = True
    """Keep only what occurs in the user's own text of that run."""

    @field_validator("json_schema")
    @classmethod
    def _object_with_fields(cls, schema: JsonObject) -> JsonObject:
        properties = schema.get("properties")
        if schema.get("type", "object") != "object" or not isinstance(properties, dict) or not properties:
            raise ValueError("it must describe an object with at least one property")
        problem = schema_problem(schema)
        if problem is not None:
            raise ValueError(f"it is no JSON Schema: {problem}")
        odd = [name for name, field in cast("JsonObject", properties).items() if not isinstance(field, dict)]
        if odd:
            raise ValueError(f"properties.{odd[0]} must be an object")
        reference = dangling_reference(schema)
        if reference is not None:
            raise ValueError(f"{reference!r} refers to nothing under $defs")
        return schema

    @model_validator(mode="after")
    def _known_fields(self) -> "StructuredMemoryConfig":
        for option, templates in (("ask", self.ask), ("known", self.known)):
            for name in templates if isinstance(templates, dict) else ():
                if name not in self.fields:
                    near = difflib.get_close_matches(name, self.fields, n=1)
                    hint = f"did you mean {near[0]!r}?" if near else f"the fields are {', '.join(self.fields)}"
                    raise ValueError(f"{option} names {name!r}, which is no field of the schema; {hint}")
        return self

    @property
    def fields(self) -> dict[str, JsonObject]:
        """Field name → its schema, in the order of the schema."""
        return self.json_schema["properties"]


class StructuredMemoryProvider(ContextProvider):
    """Asks for missing fields, uses known ones, and fills them from what the user says."""

    config_type = StructuredMemoryConfig
    on_error = "warn"

    @property
    def _config(self) -> StructuredMemoryConfig:
        return cast("StructuredMemoryConfig", self.config)

    async def before_run(self, *, agent: AgentView, session: Session, context: SessionContext, state: State) -> None:
        """One instruction a field: ask for it, or use it."""
        config = self._config
        for name in config.fields:
            if _is_missing(state, name):
                template = _template(config.ask, name, ASK)
                context.extend_instructions(self, _fill(template, name))
            else:
                template = _template(config.known, name, KNOWN)
                context.extend_instructions(self, _fill(template, name, state[name]))

    async def after_run(self, *, agent: AgentView, session: Session, context: SessionContext, state: State) -> None:
        """Extract what is missing from the user's own text, and keep what really stands there."""
        config = self._config
        missing = {name: schema for name, schema in config.fields.items() if _is_missing(state, name)}
        text = _own_text(context)
        if not missing or not text.strip():
            return
        client = agent.chat_client(config.model)
        found = await self._extract(client, missing, text)
        kept = {name: value for name, value in found.items() if self._keeps(value, text)}
        state.update(_without_rivals(kept, state) if client.traits.single_field_extraction else kept)

    async def _extract(self, client: ChatClient, missing: Mapping[str, JsonObject], text: str) -> JsonObject:
        """What the model finds, in one call, or in one call a field."""
        if not client.traits.single_field_extraction:
            schema = {name: {"anyOf": [field, {"type": "null"}]} for name, field in missing.items()}
            return await self._ask(client, schema, text, self._config.instructions or EXTRACT)
        found: JsonObject = {}
        for name, field in missing.items():
            told = self._config.instructions or EXTRACT_ONE.replace("{meaning}", _meaning(name, field))
            asked = _bounded(field, len(text) if self._config.grounded else LONGEST_COPY)
            found |= await self._ask(client, {name: asked}, text, told)
        return found

    async def _ask(self, client: ChatClient, properties: JsonObject, text: str, told: str) -> JsonObject:
        """One call; what does not follow the schema is left out.

        Raises:
            ValueError: the answer was cut, or is no JSON.
            TypeError: it is no object.
        """
        definitions = {key: self._config.json_schema[key] for key in _DEFINITIONS if key in self._config.json_schema}
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
                    **definitions,
                },
            ),
        )
        if answer.finish.reason != "stop":
            raise ValueError(f"the extraction ended with {answer.finish.reason!r}")
        found = parse_json(answer.text)
        if not isinstance(found, dict):
            raise TypeError("the extraction gave no object")
        given = {name: value for name, value in cast("JsonObject", found).items() if name in properties}
        return await asyncio.to_thread(_valid_fields, given, properties, definitions)

    def _keeps(self, value: Any, text: str) -> bool:
        if value == "":
            return False
        return not self._config.grounded or is_grounded(value, text)


def _bounded(field: JsonObject, longest: int) -> JsonObject:
    """The field's schema, with an end for a small model that finds none. No value is longer than the text it is in."""
    if field.get("type") != "string" or "enum" in field or "maxLength" in field:
        return field
    return {**field, "maxLength": min(longest, LONGEST_COPY)}


def _without_rivals(found: JsonObject, known: State) -> JsonObject:
    """What one field alone claims: asked field by field, a small model calls the same word a name and a city."""
    claims = [*known.items(), *found.items()]
    return {
        name: value
        for name, value in found.items()
        if not any(_is_same(value, other) for rival, other in claims if rival != name)
    }


def _is_same(one: Any, other: Any) -> bool:
    """Whether one of two values holds the other."""
    return is_grounded(one, str(other)) or is_grounded(other, str(one))


def _valid_fields(found: JsonObject, properties: JsonObject, definitions: JsonObject) -> JsonObject:
    trimmed = {name: value.strip(_EDGES) if isinstance(value, str) else value for name, value in found.items()}
    return {
        name: value
        for name, value in trimmed.items()
        if value is not None and value_problem({**properties[name], **definitions}, value) is None
    }


def _own_text(context: SessionContext) -> str:
    """What the user said in this run: never history, memory or another provider's text."""
    return "\n".join(message.text for message in context.input_messages if _is_own(message))


def _is_own(message: Message) -> bool:
    return message.role == "user" and (message.source is None or message.source.type == "external")


def _is_missing(state: State, name: str) -> bool:
    return state.get(name) is None


def _template(templates: str | dict[str, str], name: str, default: str) -> str:
    return templates if isinstance(templates, str) else templates.get(name, default)


def _fill(template: str, name: str, value: Any = None) -> str:
    shown = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return template.replace("{field}", _words(name)).replace("{value}", " ".join(shown.split()))


def _meaning(name: str, field: JsonObject) -> str:
    """What to look for, as the schema says it."""
    described: object = field.get("description")
    told = described.strip().rstrip(".") if isinstance(described, str) else ""
    return told or f"the user's {_words(name)}"


def _words(name: str) -> str:
    return name.replace("_", " ")
