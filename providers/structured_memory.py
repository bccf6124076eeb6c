"""Learns named facts about the user from what they say, and asks for those that are missing.

Seed 001's UserInfo, for any JSON Schema or pydantic model. The state is the flat object of known fields.
"""

import json
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Final, Generic, cast

from pydantic import BaseModel, ValidationError
from typing_extensions import TypeVar  # with a default, before Python 3.13

from protocol.base import JsonObject
from protocol.messages import Message
from providers.api.context import SessionContext
from providers.api.errors import ProviderError
from providers.api.json_value import plain_json
from providers.api.ports import AgentView
from providers.api.provider import ContextProvider, ProviderConfig, Surroundings
from providers.api.session import Session, State
from providers.api.state import StateMismatch

from .grounding import is_grounded
from .structured_memory_config import (
    DEFINITIONS,
    MemoryOptions,
    StructuredMemoryConfig,
    check_options,
    fact_problems,
    facts_of,
    fields_of,
    options_for,
)
from .structured_memory_extraction import Extraction, without_rivals
from .structured_memory_wording import ASK, ASK_MEANWHILE, KNOWN, filled

T = TypeVar("T", bound=BaseModel, default=BaseModel)
Facts = BaseModel | Mapping[str, Any]
"""Facts: those fields of a model that were set, or the fields of an object; `None` is unknown."""

_NO_MODEL: Final = "the memory {!r} has no model: read its facts with known()"


class StructuredMemoryProvider(ContextProvider, Generic[T]):
    """Asks for missing fields, uses known ones, and fills them from what the user says.

    Which fields, its configuration says with a JSON Schema; or a pydantic model does, in Python:

        class UserInfo(BaseModel):
            name: str | None = None
            age: int | None = Field(default=None, description="In whole years.")

        class UserInfoMemory(StructuredMemoryProvider[UserInfo]):
            model = UserInfo

    A configuration names that class as `module:UserInfoMemory`; it takes every option but `schema`.
    """

    config_type: ClassVar[type[ProviderConfig]] = StructuredMemoryConfig
    on_error = "warn"
    model: ClassVar[type[BaseModel] | None] = None
    """The facts of a subclass. Every field has a default: nothing is known at first."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if cls.model is not None:
            cls.config_type = options_for(cls.model, cls.config_type)

    def __init__(
        self,
        source_id: str,
        config: ProviderConfig | None = None,
        surroundings: Surroundings | None = None,
        *,
        model: type[T] | None = None,
        initial: T | Mapping[str, Any] | Callable[[Session], T | Mapping[str, Any] | None] | None = None,
    ) -> None:
        """Describe a memory.

        Args:
            source_id: What its contributions are attributed to.
            config: `StructuredMemoryConfig`, which has a schema; with a model `MemoryOptions`.
            surroundings: Of the process that hosts it.
            model: The facts, where neither the class nor the config says them.
            initial: Facts that a session begins with, or what makes them at its first use; the config's come before
                them. They are not asked for, and never overwritten.

        Raises:
            TypeError: the model has no fields, or one without a default.
            ValueError: there are two sorts of facts, or none; an option names no field; initial facts do not follow
                the schema.
        """
        facts = model or self.model
        options = config if config is not None or facts is None else MemoryOptions()
        super().__init__(source_id, options, surroundings)
        self._options = cast("MemoryOptions", self.config)
        if facts is not None and isinstance(options, StructuredMemoryConfig):
            raise ValueError("give a memory a schema or a model, not both")
        schema = facts_of(facts) if facts is not None else self._options.facts
        if schema is None:
            raise ValueError("give a memory a schema or a model")
        check_options(self._options, schema)
        self._model = cast("type[T] | None", facts)
        self._schema = schema
        self._fields = fields_of(schema)
        self._definitions = {key: schema[key] for key in DEFINITIONS if key in schema}
        self._initial = self._options.initial if self._options.initial is not None else initial
        if not callable(self._initial):
            self._checked(self._initial)

    def get(self, session: Session) -> T:
        """What a session's memory knows; a field that is not known has its default.

        Raises:
            TypeError: it has no model.
            StateMismatch: what the state holds does not fit the model.
            Exception: what a callable `initial` raises.
        """
        if self._model is None:
            raise TypeError(_NO_MODEL.format(self.source_id))
        return _read(self._model, self.known(session), self.state_key)

    def known(self, session: Session) -> JsonObject:
        """What a session's memory knows, as a JSON object of its own; a field that is not known is not in it.

        Raises:
            TypeError: the state holds something else than an object.
            Exception: what a callable `initial` raises.
        """
        with session.lock:
            state = session.state_of(self.state_key)
            self._begin(session, state)
            facts = {name: state[name] for name in self._fields if not _is_missing(state, name)}
            return plain_json(facts, self.state_key)

    async def before_run(self, *, agent: AgentView, session: Session, context: SessionContext, state: State) -> None:
        """One instruction a field: ask for it, or use it."""
        self._begin(session, state)
        for name, field in self._fields.items():
            if _is_missing(state, name):
                context.extend_instructions(self, filled(self._asking(name), name, field))
            else:
                template = _chosen(self._options.known, name, KNOWN)
                context.extend_instructions(self, filled(template, name, field, state[name]))

    async def after_run(self, *, agent: AgentView, session: Session, context: SessionContext, state: State) -> None:
        """Extract what is missing from the user's own text, and keep what really stands there."""
        missing = {name: field for name, field in self._fields.items() if _is_missing(state, name)}
        text = _own_text(context)
        if not missing or not text.strip():
            return
        options = self._options
        client = agent.chat_client(options.model)
        extraction = Extraction(missing, self._definitions, options.instructions, options.grounded)
        found = await extraction.of(text, client)
        kept = {name: value for name, value in found.items() if self._keeps(value, text)}
        if client.traits.single_field_extraction:
            kept = without_rivals(kept, state)
        if self._model is not None:
            kept = _fitting(self._model, self.known(session), kept, self.state_key)
        with session.lock:
            state.update({name: value for name, value in kept.items() if _is_missing(state, name)})

    def _keeps(self, value: Any, text: str) -> bool:
        if value == "":
            return False
        return not self._options.grounded or is_grounded(value, text)

    def _asking(self, name: str) -> str:
        decline = self._options.decline
        is_strict = decline if isinstance(decline, bool) else decline.get(name, True)
        return _chosen(self._options.ask, name, ASK if is_strict else ASK_MEANWHILE)

    def _begin(self, session: Session, state: State) -> None:
        """Write the initial facts where there are none. It may be called again and again."""
        with session.lock:
            if not state and self._initial is not None:
                initial = self._initial(session) if callable(self._initial) else self._initial
                state.update(self._checked(initial))

    def _checked(self, initial: Facts | None) -> JsonObject:
        """Initial facts as they are stored.

        Raises:
            InitialFactsRefused: they do not follow the schema.
            StateMismatch: they do not fit the model.
        """
        if isinstance(initial, BaseModel):
            given = initial.model_dump(mode="json", by_alias=False, exclude_unset=True)
        else:
            given = plain_json(initial or {}, "initial")
        facts = {name: value for name, value in given.items() if value is not None}
        problems = fact_problems(facts, self._schema)
        if problems:
            raise InitialFactsRefused(f"the initial fact {problems[0][0]!r} does not follow the schema")
        if self._model is not None:
            _read(self._model, facts, self.state_key)
        return facts


class InitialFactsRefused(ProviderError, ValueError):
    """Initial facts name no field of the memory, or do not follow its schema; the text repeats no value."""


def _read(model: type[T], facts: JsonObject, key: str) -> T:
    """Read as JSON: a strict model, too, takes a date from a string."""
    try:
        return model.model_validate_json(json.dumps(facts), by_alias=False, by_name=True)
    except ValidationError as error:
        path = ".".join(map(str, (key, *error.errors(include_input=False)[0]["loc"])))
        raise StateMismatch(f"the state {path!r} does not fit {model.__name__}") from None


def _fitting(model: type[BaseModel], known: JsonObject, found: JsonObject, key: str) -> JsonObject:
    """What fits the model beside what is known already, as the model would have it.

    Raises:
        StateMismatch: what is known does not fit by itself.
    """
    _read(model, known, key)
    kept: JsonObject = {}
    for name, value in found.items():
        try:
            whole = _read(model, {**known, **kept, name: value}, key)
        except StateMismatch:
            continue
        kept[name] = whole.model_dump(mode="json", by_alias=False, include={name})[name]
    return kept


def _own_text(context: SessionContext) -> str:
    """What the user said in this run: never history, memory or another provider's text."""
    return "\n".join(message.text for message in context.input_messages if _is_own(message))


def _is_own(message: Message) -> bool:
    return message.role == "user" and (message.source is None or message.source.type == "external")


def _is_missing(state: Mapping[str, Any], name: str) -> bool:
    return state.get(name) is None


def _chosen(templates: str | dict[str, str] | None, name: str, default: str) -> str:
    if isinstance(templates, dict):
        return templates.get(name, default)
    return default if templates is None else templates
