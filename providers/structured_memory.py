"""Learns named facts about the user from what they say, and asks for those that are missing.

Seed 001's UserInfo, for any schema. The state is the flat object of known fields.
"""

import asyncio
import json
from collections.abc import Mapping
from typing import Any, cast

from pydantic import Field, field_validator

from protocol.agents import RunOptions
from protocol.base import JsonObject
from protocol.messages import Message, text_message
from providers.api.context import SessionContext
from providers.api.json_schema import value_problem
from providers.api.ports import AgentView, ChatClient, ChatRequest, ask
from providers.api.provider import ContextProvider, ProviderConfig
from providers.api.session import Session, State
from providers.grounding import is_grounded

ASK = "You do not know the user's {field} yet. Ask for it, and answer no other question before you know it."
KNOWN = "The user's {field}: {value}."
EXTRACT = "Read the user's message and fill in what it says about the user. Use null for what it does not say."
EXTRACT_ONE = "Extract the user's {field} from the message."
MAX_ANSWER_TOKENS = 512


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
            raise ValueError("schema must describe an object with at least one property")
        for name, field in cast("JsonObject", properties).items():
            if not isinstance(field, dict):
                raise ValueError(f"schema.properties.{name} must be an object")  # noqa: TRY004 - pydantic wants ValueError
        return schema

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
        state.update({name: value for name, value in found.items() if name in missing and self._keeps(value, text)})

    async def _extract(self, client: ChatClient, missing: Mapping[str, JsonObject], text: str) -> JsonObject:
        if not client.traits.single_field_extraction:
            schema = {name: {"anyOf": [field, {"type": "null"}]} for name, field in missing.items()}
            return await self._ask(client, schema, text, self._config.instructions or EXTRACT)
        found: JsonObject = {}
        for name, field in missing.items():
            told = self._config.instructions or EXTRACT_ONE.format(field=_words(name))
            found |= await self._ask(client, {name: field}, text, told)
        return found

    async def _ask(self, client: ChatClient, properties: JsonObject, text: str, told: str) -> JsonObject:
        """One call; what does not follow the schema is left out."""
        schema = {
            "type": "object",
            "properties": properties,
            "required": list(properties),
            "additionalProperties": False,
        }
        for key in ("$defs", "definitions"):
            if key in self._config.json_schema:
                schema[key] = self._config.json_schema[key]
        answer = await ask(
            client,
            ChatRequest(
                messages=(text_message("user", text),),
                instructions=told,
                options=RunOptions(temperature=0, max_output_tokens=MAX_ANSWER_TOKENS),
                response_schema=schema,
            ),
        )
        if answer.finish.reason != "stop":
            raise ValueError(f"the extraction ended with {answer.finish.reason!r}")
        value = json.loads(answer.text)
        if not isinstance(value, dict):
            raise TypeError("the extraction gave no object")
        given = {key: item for key, item in cast("JsonObject", value).items() if key in properties and item is not None}
        definitions = {key: schema[key] for key in ("$defs", "definitions") if key in schema}
        return await asyncio.to_thread(_valid_fields, given, properties, definitions)

    def _keeps(self, value: Any, text: str) -> bool:
        if isinstance(value, str) and not value.strip():
            return False
        return not self._config.grounded or is_grounded(value, text)


def _valid_fields(found: JsonObject, properties: JsonObject, definitions: JsonObject) -> JsonObject:
    return {
        name: value.strip() if isinstance(value, str) else value
        for name, value in found.items()
        if value_problem({**properties[name], **definitions}, value) is None
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


def _words(name: str) -> str:
    return name.replace("_", " ")
