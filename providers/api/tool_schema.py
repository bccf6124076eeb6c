"""What a tool's arguments are: read from a signature, or given as a schema. Made once a tool; it calls no tool."""

import inspect
import types
import typing
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, Final, NotRequired, cast

from pydantic import BaseModel, ConfigDict, Field, PydanticUserError, TypeAdapter, ValidationError
from pydantic.fields import FieldInfo
from pydantic.json_schema import GenerateJsonSchema
from pydantic_core import PydanticSerializationError, to_jsonable_python
from typing_extensions import TypedDict  # pydantic asks for this one before Python 3.12

from protocol.base import JsonObject

from .invocation import FunctionInvocationContext
from .json_schema import dangling_reference, is_plain, schema_problem, value_checker
from .json_value import plain_json

Bind = Callable[[JsonObject], dict[str, Any]]

_SHOWN_PROBLEMS: Final = 5
_FEW: Final = 32
_SHORT: Final = 16 * 1024
"""Characters of a text that is checked at once."""
_NO_ARGUMENTS: Final[JsonObject] = {"type": "object", "properties": {}, "additionalProperties": False}


class ArgumentsError(Exception):
    """The arguments do not fit the tool; the text says which and why, and repeats none of them."""


@dataclass(frozen=True, slots=True)
class ArgumentPlan:
    """How the arguments that a model writes become the values that a function takes."""

    schema: JsonObject
    """JSON Schema of the arguments."""
    bind: Bind
    """Checks arguments and gives values by parameter. Raises `ArgumentsError`."""
    context_parameter: str | None = None
    takes_kwargs: bool = False
    """Whether `**kwargs` are the run's. The model's arguments never get there then."""
    takes_self: bool = False
    is_slow: bool = False
    """Whether `bind` may take long, as any JSON Schema may."""

    def may_take_long(self, arguments: JsonObject) -> bool:
        """Whether `bind` may take long with these."""
        return self.is_slow and not (is_plain(self.schema) and _is_small(arguments))


def signature_plan(function: Callable[..., Any]) -> ArgumentPlan:
    """The arguments that a function's signature asks for.

    Raises:
        ValueError: a parameter's type has no JSON Schema, or the signature cannot be used.
    """
    signature = _read(function)
    adapter, schema = _adapter(signature)

    def bind(arguments: JsonObject) -> dict[str, Any]:
        return _validated(adapter.validate_python, arguments)

    return ArgumentPlan(
        schema,
        bind,
        context_parameter=signature.context(bare=False),
        takes_kwargs=signature.has_kwargs,
        takes_self=signature.takes_self,
    )


def explicit_plan(function: Callable[..., Any], schema: type[BaseModel] | JsonObject) -> ArgumentPlan:
    """The arguments that a schema asks for, by the names of the function's parameters.

    What has no parameter of its own goes to `**kwargs`, which are the run's only if nothing does.

    Raises:
        ValueError: the schema is none, or it and the function do not fit together.
        TypeError: the schema is neither a class nor an object.
    """
    signature = _read(function)
    context = signature.context(bare=True)
    checked, named, bind, is_open = _checked_model(schema) if isinstance(schema, type) else _checked_json(schema)
    own = set(signature.parameters) - {context}
    spare = [name for name in named if name not in own]
    if spare and (not signature.has_kwargs or set(spare) & signature.reserved(context)):
        raise ValueError(f"{signature.name!r} has no parameter for {_quoted(spare)} of its schema")
    required = {name for name in own if signature.parameters[name].default is inspect.Parameter.empty}
    if unnamed := required - set(named):
        raise ValueError(f"the schema of {signature.name!r} has no {_quoted(sorted(unnamed))}")
    unbindable = signature.reserved(context) if signature.has_kwargs and (spare or is_open) else None

    def fitted(arguments: JsonObject) -> dict[str, Any]:
        values = bind(arguments)
        if missing := required - values.keys():
            raise ArgumentsError(f"missing: {_quoted(sorted(missing))}")
        for name in values.keys() - own:
            if unbindable is None or name in unbindable:
                raise ArgumentsError(f"there is no argument {name[:100]!r}")
        return values

    return ArgumentPlan(
        checked,
        fitted,
        context_parameter=context,
        takes_kwargs=signature.has_kwargs and unbindable is None,
        takes_self=signature.takes_self,
        is_slow=not isinstance(schema, type),
    )


def whole_object_plan(schema: JsonObject | None) -> ArgumentPlan:
    """The arguments as one object, for a function `(arguments, context)`; without a schema there are none.

    Raises:
        ValueError: the schema is none.
    """
    if schema is None:
        return ArgumentPlan(dict(_NO_ARGUMENTS), _no_arguments, context_parameter="context")
    checked, _, bind, _ = _checked_json(schema)
    return ArgumentPlan(
        checked,
        lambda arguments: {"arguments": bind(arguments)},
        context_parameter="context",
        is_slow=True,
    )


class _Schemas(GenerateJsonSchema):
    """Leaves out the titles that pydantic makes of fields' names: a model would read them in every call."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False


@dataclass(frozen=True, slots=True)
class _Signature:
    name: str
    parameters: Mapping[str, inspect.Parameter]
    """Those that can be filled by name, the context included."""
    hints: Mapping[str, Any]
    hidden: frozenset[str]
    """Names that are taken but not to be filled."""
    has_kwargs: bool
    takes_self: bool

    def context(self, *, bare: bool) -> str | None:
        """The parameter for the `FunctionInvocationContext`; with `bare`, an unannotated `ctx` is one too."""
        found = [name for name in self.parameters if _is_context(self.hints.get(name))]
        if len(found) > 1:
            raise ValueError(f"{self.name!r} asks for its context twice: {_quoted(found)}")
        if not found and bare and "ctx" in self.parameters and "ctx" not in self.hints:
            return "ctx"
        return found[0] if found else None

    def reserved(self, context: str | None) -> set[str]:
        """The names that no argument of a model may have."""
        return {*self.hidden, *([context] if context is not None else [])}


def _read(function: Callable[..., Any]) -> _Signature:
    name = str(getattr(function, "__name__", type(function).__name__))
    try:
        every = dict(inspect.signature(function).parameters)
    except (ValueError, TypeError, NameError) as error:
        raise ValueError(f"the signature of {name!r} cannot be read: {error}") from error
    takes_self = next(iter(every), None) == "self" and not inspect.ismethod(function)
    hidden = set(_keywords(function))
    if takes_self:
        hidden.add("self")
    shown = {key: one for key, one in every.items() if key not in hidden}
    if odd := [key for key, one in shown.items() if one.kind is one.POSITIONAL_ONLY]:
        raise ValueError(f"{name!r} takes {_quoted(odd)} by position only; tools are called by name")
    by_name = {key: one for key, one in shown.items() if one.kind in {one.POSITIONAL_OR_KEYWORD, one.KEYWORD_ONLY}}
    has_kwargs = any(one.kind is one.VAR_KEYWORD for one in shown.values())
    return _Signature(name, by_name, _hints(name, function, by_name), frozenset(hidden), has_kwargs, takes_self)


def _keywords(function: Callable[..., Any]) -> Mapping[str, Any]:
    """What a partial has filled in already."""
    return cast("partial[Any]", function).keywords if isinstance(function, partial) else {}


def _hints(name: str, function: Callable[..., Any], parameters: Mapping[str, inspect.Parameter]) -> dict[str, Any]:
    """The annotations, looked up where the function was written. The context's may be there for type checkers only."""
    written = {key: one.annotation for key, one in parameters.items() if one.annotation is not one.empty}
    names = {FunctionInvocationContext.__name__: FunctionInvocationContext, **_globals(function)}
    holder = type("Annotations", (), {"__annotations__": written})
    try:
        return typing.get_type_hints(holder, globalns=names, include_extras=True)
    except (NameError, AttributeError, TypeError, SyntaxError) as error:
        raise ValueError(
            f"an annotation of {name!r} cannot be looked up: {error}; define or import what it names at module level"
        ) from error


def _globals(function: Callable[..., Any]) -> JsonObject:
    inner: Any = inspect.unwrap(function)
    while isinstance(inner, partial):
        inner = inspect.unwrap(cast("partial[Any]", inner).func)
    return getattr(inner if inspect.isroutine(inner) else type(inner).__call__, "__globals__", {})


def _is_context(hint: Any) -> bool:
    origin = typing.get_origin(hint)
    if origin is Annotated:
        return _is_context(typing.get_args(hint)[0])
    if origin in {typing.Union, types.UnionType}:
        return any(map(_is_context, typing.get_args(hint)))
    return isinstance(hint, type) and issubclass(hint, FunctionInvocationContext)


def _adapter(signature: _Signature) -> tuple[TypeAdapter[dict[str, Any]], JsonObject]:
    """A validator of the arguments as one object. Its fields can have any name, unlike those of a pydantic model."""
    context = signature.context(bare=False)
    filled = {name: one for name, one in signature.parameters.items() if name != context}
    fields = {name: _field(one, signature.hints.get(name, str)) for name, one in filled.items()}
    arguments: Any = cast("Any", TypedDict)("Arguments", fields)
    arguments.__pydantic_config__ = ConfigDict(extra="forbid")
    try:
        adapter: TypeAdapter[dict[str, Any]] = TypeAdapter(arguments)
        schema = _told(adapter.json_schema(schema_generator=_Schemas))
    except (PydanticUserError, NameError) as error:
        what = str(error).partition("\n")[0]
        raise ValueError(f"a parameter of {signature.name!r} has a type that no JSON Schema tells: {what}") from error
    for name, one in filled.items():
        _tell_default(schema["properties"].get(name), one.default)
    return adapter, schema


def _field(parameter: inspect.Parameter, hint: Any) -> Any:
    """A parameter as a field. Its own default stays the function's business: the field is just not required."""
    default = parameter.default
    if typing.get_origin(hint) is Annotated:
        bare, *notes = typing.get_args(hint)
        described = [Field(description=note) if isinstance(note, str) else note for note in notes]
        hint = _annotated(bare, described)
    if isinstance(default, FieldInfo):
        return _annotated(hint, [default])
    if default is None:
        hint = _annotated(hint, []) | None
    return hint if default is parameter.empty else cast("Any", NotRequired)[hint]


def _annotated(hint: Any, notes: Iterable[Any]) -> Any:
    for note in notes:
        hint = Annotated[hint, note]
    return hint


def _tell_default(schema: JsonObject | None, default: Any) -> None:
    if schema is None or default is inspect.Parameter.empty or isinstance(default, FieldInfo):
        return
    try:
        schema.setdefault("default", plain_json(to_jsonable_python(default), "default"))
    except (PydanticSerializationError, ValueError):  # a default that JSON cannot say is not told
        return


_Checked = tuple[JsonObject, Iterable[str], Bind, bool]
"""A schema, the names in it, what checks arguments, and whether other names are allowed."""


def _checked_model(model: type[BaseModel]) -> _Checked:
    if getattr(model, "__pydantic_root_model__", True):
        raise ValueError(f"{model.__name__} is no pydantic model with fields, and cannot be the schema of a tool")
    extra = model.model_config.get("extra")
    strict = model if extra else _forbidding(model)
    names = tuple(strict.model_fields)

    def bind(arguments: JsonObject) -> dict[str, Any]:
        checked = _validated(strict.model_validate, arguments)
        return {**{name: getattr(checked, name) for name in names}, **(checked.model_extra or {})}

    schema = _told(strict.model_json_schema(schema_generator=_Schemas))
    return schema, names, bind, extra == "allow"


def _forbidding(model: type[BaseModel]) -> type[BaseModel]:
    """The model as it is where it says nothing of unknown fields, but refusing them."""
    body = {"model_config": ConfigDict(extra="forbid"), "__module__": model.__module__, "__doc__": model.__doc__}
    return types.new_class(model.__name__, (model,), exec_body=lambda namespace: namespace.update(body))


def _checked_json(schema: JsonObject) -> _Checked:
    if not isinstance(cast("object", schema), dict):
        raise TypeError("the schema of a tool is a pydantic model class or a JSON Schema object")
    checked: JsonObject = {"type": "object", "properties": {}, **plain_json(schema, "the schema")}
    if problem := schema_problem(checked):
        raise ValueError(f"the schema of a tool is no JSON Schema: {problem}")
    if checked["type"] != "object":
        raise ValueError("the schema of a tool must have type object")
    if reference := dangling_reference(checked):
        raise ValueError(f"the schema of a tool refers to {reference!r}, which is not in it")

    check = value_checker(checked)

    def bind(arguments: JsonObject) -> dict[str, Any]:
        if problem := check(arguments):
            raise ArgumentsError(problem)
        return dict(arguments)

    return checked, checked["properties"], bind, checked.get("additionalProperties") is not False


def _is_small(arguments: JsonObject) -> bool:
    """Whether they are few, short and flat."""
    return len(arguments) <= _FEW and all(
        value is None or isinstance(value, bool | int | float) or (isinstance(value, str) and len(value) <= _SHORT)
        for value in arguments.values()
    )


def _no_arguments(arguments: JsonObject) -> dict[str, Any]:
    if arguments:
        raise ArgumentsError("there are no arguments")
    return {"arguments": {}}


T = typing.TypeVar("T")


def _validated(validate: Callable[[Any], T], arguments: JsonObject) -> T:
    try:
        return validate(arguments)
    except ValidationError as error:
        raise ArgumentsError(_problems(error)) from None
    except Exception as error:  # a validator of the tool's author failed
        raise ArgumentsError(f"they could not be checked: {type(error).__name__}") from error


def _problems(error: ValidationError) -> str:
    found = error.errors(include_url=False, include_context=False, include_input=False)
    told = [f"{'.'.join(map(str, one['loc'])) or 'arguments'}: {one['msg']}"[:200] for one in found[:_SHOWN_PROBLEMS]]
    return "; ".join([*told, f"and {len(found) - len(told)} more"] if len(found) > len(told) else told)


def _told(schema: JsonObject) -> JsonObject:
    """A schema that pydantic made, without the names of Python's classes as titles."""
    schema.pop("title", None)
    for name, part in schema.get("$defs", {}).items():
        if part.get("title") == name:
            del part["title"]
    return {**schema, "properties": schema.get("properties", {})}


def _quoted(names: Iterable[str]) -> str:
    return ", ".join(map(repr, names))
