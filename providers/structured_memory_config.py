"""The configuration of `structured_memory`: which facts, in which words. It learns nothing."""

import difflib
from collections.abc import Mapping
from typing import Any, ClassVar, Final, cast

from pydantic import BaseModel, Field, field_validator, model_validator

from protocol.base import Flag, JsonObject
from providers.api.json_schema import dangling_reference, schema_problem, value_problem
from providers.api.provider import ProviderConfig

DEFINITIONS: Final = ("$defs", "definitions")
_NULL: Final = {"type": "null"}


class MemoryOptions(ProviderConfig):
    """How a memory learns and speaks, whatever its facts are."""

    ask: str | dict[str, str] | None = Field(
        default=None,
        description="Instruction while a fact is missing, for all fields or by field. `{field}` is the field's name in"
        " words, `{description}` what the schema says of it, `{label}` both. Empty: none. Default: our own words.",
    )
    known: str | dict[str, str] | None = Field(
        default=None,
        description="Instruction once a fact is known, as `ask`, with `{value}` besides.",
    )
    decline: Flag | dict[str, Flag] = Field(
        default=True,
        description="Whether other questions wait until a fact is known, for all fields or by field. It chooses between"
        " our own words; a text in `ask` says it by itself.",
    )
    initial: JsonObject | None = Field(
        default=None,
        description="Facts that a session begins with: not asked for, and never overwritten. A session that brings"
        " facts of its own in its state begins with those instead.",
    )
    instructions: str | None = Field(
        default=None, description="What the extracting model is told. Default: our own words."
    )
    model: str | None = Field(
        default=None, description="Model that extracts, `endpoint:model`. Default: the run's own."
    )
    grounded: Flag = Field(
        default=True, description="Keep only what occurs in the user's own text of that run: models invent."
    )

    @property
    def facts(self) -> JsonObject | None:
        """JSON Schema of the facts; `None` where only the provider's class knows them."""
        return None

    @model_validator(mode="after")
    def _speaks_of_known_fields(self) -> "MemoryOptions":
        if self.facts is not None:
            check_options(self, self.facts)
        return self


class StructuredMemoryConfig(MemoryOptions):
    """What to learn, and how to speak of it."""

    json_schema: JsonObject = Field(
        alias="schema",
        description="JSON Schema of an object. Each of its `properties` is a fact to learn, asked for in their order;"
        " its `description` tells the models what is meant.",
    )

    @property
    def facts(self) -> JsonObject:
        """The schema."""
        return self.json_schema

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


def options_for(model: type[BaseModel], base: type[ProviderConfig]) -> type[MemoryOptions]:
    """The config type of a provider class whose facts are a model's: it takes no schema, and checks the fields' names.

    Args:
        model: The facts.
        base: The class's own config type, if it has further options.

    Raises:
        TypeError: the model cannot hold facts that are not known yet; or `base` has a schema, or none of our options.
    """
    own = MemoryOptions if base is StructuredMemoryConfig else base
    if not issubclass(own, MemoryOptions) or issubclass(own, StructuredMemoryConfig):
        raise TypeError(f"{own.__name__} must be a subclass of MemoryOptions: the facts are those of {model.__name__}")
    schema = facts_of(model)

    class ModelMemoryOptions(own):
        __doc__ = own.__doc__
        facts_schema: ClassVar[JsonObject] = schema

        @property
        def facts(self) -> JsonObject:
            return self.facts_schema

    return ModelMemoryOptions


def facts_of(model: type[BaseModel]) -> JsonObject:
    """JSON Schema of a pydantic model's fields, under their Python names.

    Raises:
        TypeError: there is no field, or one without a default: nothing is known at first.
    """
    for name, field in model.model_fields.items():
        if field.is_required():
            raise TypeError(f"{model.__name__}.{name} needs a default, best None: it is not known at first")
    if not model.model_fields:
        raise TypeError(f"{model.__name__} has no field to learn")
    schema = model.model_json_schema(by_alias=False)
    told = {
        name: {key: part for key, part in field.items() if key != "title"}  # pydantic's own: the name once more
        for name, field in cast("dict[str, JsonObject]", schema["properties"]).items()
    }
    return {**schema, "properties": told}


def fields_of(schema: JsonObject) -> dict[str, JsonObject]:
    """Field → the schema of its value once it is known, in the schema's order."""
    return {name: _without_null(field) for name, field in cast("dict[str, JsonObject]", schema["properties"]).items()}


def check_options(options: MemoryOptions, schema: JsonObject) -> None:
    """Refuse options that speak of fields which the schema does not have, and initial facts that do not follow it.

    Raises:
        ValueError: naming the option and the field.
    """
    fields = fields_of(schema)
    for option, by_field in (("ask", options.ask), ("known", options.known), ("decline", options.decline)):
        _check_names(option, by_field if isinstance(by_field, dict) else {}, fields)
    for name, why in fact_problems(options.initial or {}, schema):
        raise ValueError(f"initial.{name}: {why}")


def fact_problems(facts: JsonObject, schema: JsonObject) -> list[tuple[str, str]]:
    """The facts that do not follow the schema, each with the reason, which may repeat its value."""
    fields = fields_of(schema)
    definitions = {key: schema[key] for key in DEFINITIONS if key in schema}
    found: list[tuple[str, str]] = []
    for name, value in facts.items():
        if name not in fields:
            found.append((name, _no_field(name, fields)))
        elif value is not None and (why := value_problem({**fields[name], **definitions}, value)) is not None:
            found.append((name, why))
    return found


def _check_names(option: str, names: Mapping[str, Any], fields: Mapping[str, JsonObject]) -> None:
    for name in names:
        if name not in fields:
            raise ValueError(f"{option} names {name!r}, which is {_no_field(name, fields)}")


def _no_field(name: str, fields: Mapping[str, JsonObject]) -> str:
    near = difflib.get_close_matches(name, fields, n=1)
    hint = f"did you mean {near[0]!r}?" if near else f"the fields are {', '.join(fields)}"
    return f"no field of the schema; {hint}"


def _without_null(field: JsonObject) -> JsonObject:
    """That a fact may be missing is our own affair: a small model does worse with a string or nothing."""
    kept = {key: part for key, part in field.items() if key != "default"}
    options: object = field.get("anyOf")
    if isinstance(options, list):
        rest = [option for option in cast("list[JsonObject]", options) if option != _NULL]
        if len(rest) == 1:
            return {**rest[0], **{key: part for key, part in kept.items() if key != "anyOf"}}
        return {**kept, "anyOf": rest} if rest else field
    kinds: object = field.get("type")
    if isinstance(kinds, list):
        rest = [kind for kind in cast("list[str]", kinds) if kind != "null"]
        return {**kept, "type": rest[0] if len(rest) == 1 else rest} if rest else field
    return kept
