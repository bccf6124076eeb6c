"""One field of a form: what is shown of it, and what a typed line means in it. Asks nobody.

Known are text, numbers, whole numbers, yes or no, and a choice. How long or how large a value may be is checked; a
`pattern` is shown only, because one that somebody else wrote may take for ever.
"""

from dataclasses import dataclass, field
from typing import Any, Final, Self, cast

from sidecar_client.types import JsonObject

from .visible import quoted, shortened, visible, visible_json

_LENGTH: Final = 200
_LINES: Final = 6
_YES: Final = ("y", "yes", "true")
_NO: Final = ("n", "no", "false")
_TYPES: Final = {"string": "text", "number": "a number", "integer": "a whole number", "boolean": "y or n"}


class NoField(Exception):
    """What the schema asks for cannot be typed as a line."""


class Unfit(Exception):
    """What was typed is no value of the field."""


@dataclass(frozen=True)
class FormField:
    """A field."""

    name: str
    schema: JsonObject
    required: bool
    choices: dict[str, Any] = field(default_factory=dict[str, Any])
    """What can be chosen: what is shown → the value."""

    @classmethod
    def of(cls, name: str, schema: object, *, required: bool) -> Self:
        """The field of a property.

        Raises:
            NoField: It is of a kind that is not known here.
        """
        if not isinstance(schema, dict):
            raise NoField(f"the field {visible(name)} has no schema")
        shape = cast("JsonObject", schema)
        choices = _choices(shape)
        if not choices and str(shape.get("type")) not in _TYPES:
            raise NoField(f"the field {visible(name)} cannot be typed here")
        return cls(name, shape, required, choices)

    @property
    def default(self) -> Any:
        """The value of an empty answer; None: there is none."""
        return self.schema.get("default")

    @property
    def lines(self) -> list[str]:
        """What stands above the field."""
        about = quoted(str(self.schema.get("description", "")), _LINES, _LENGTH)
        pattern = self.schema.get("pattern")
        if isinstance(pattern, str):
            about.append(f"  │ of the form {shortened(visible(pattern), _LENGTH)}")
        numbered = enumerate(self.choices, 1)
        return about + [f"  {number}  {shortened(visible(shown), _LENGTH)}" for number, shown in numbered]

    @property
    def prompt(self) -> str:
        """What stands before the answer."""
        title = shortened(visible(str(self.schema.get("title") or self.name)), _LENGTH)
        what = f"1-{len(self.choices)}" if self.choices else _TYPES[self.schema["type"]]
        if self.default is not None:
            empty = f"empty: {shortened(visible_json(self.default), _LENGTH)}"
        else:
            empty = "empty declines" if self.required else "may be empty"
        return f"{title} ({what}; {empty}): "

    def value(self, text: str) -> Any:
        """What a line that is not empty means.

        Raises:
            Unfit: It is no value of this field.
        """
        if self.choices:
            return self._choice(text)
        match self.schema["type"]:
            case "boolean":
                return _truth(text)
            case "integer":
                return self._within(_number(text, int))
            case "number":
                return self._within(_number(text, float))
            case _:
                return self._of_length(text)

    def _choice(self, text: str) -> Any:
        values = list(self.choices.values())
        if text.isascii() and text.isdigit() and 1 <= int(text[:9]) <= len(values):
            return values[int(text[:9]) - 1]
        if text in self.choices:
            return self.choices[text]
        raise Unfit(f"choose a number from 1 to {len(values)}")

    def _within(self, number: float) -> float:
        least, most = self.schema.get("minimum"), self.schema.get("maximum")
        if isinstance(least, int | float) and number < least:
            raise Unfit(f"it must be {least} or more")
        if isinstance(most, int | float) and number > most:
            raise Unfit(f"it must be {most} or less")
        return number

    def _of_length(self, text: str) -> str:
        least, most = self.schema.get("minLength"), self.schema.get("maxLength")
        if isinstance(least, int) and len(text) < least:
            raise Unfit(f"it must have {least} characters or more")
        if isinstance(most, int) and len(text) > most:
            raise Unfit(f"it must have {most} characters or less")
        return text


def _choices(schema: JsonObject) -> dict[str, Any]:
    titled: list[JsonObject] = schema.get("oneOf") or schema.get("anyOf") or []
    if titled:
        return {str(kind.get("title", kind["const"])): kind["const"] for kind in titled if "const" in kind}
    values: list[Any] = schema.get("enum") or []
    names: list[Any] = schema.get("enumNames") or values
    return {str(name): value for name, value in zip(names, values, strict=False)}


def _truth(text: str) -> bool:
    if text.lower() in _YES:
        return True
    if text.lower() in _NO:
        return False
    raise Unfit("answer y or n")


def _number(text: str, kind: type[int] | type[float]) -> float:
    try:
        number = kind(text)
    except ValueError:
        number = float("nan")
    if number != number or abs(number) == float("inf"):
        raise Unfit(f"{visible(shortened(text, 40))} is no {'whole ' if kind is int else ''}number")
    return number
