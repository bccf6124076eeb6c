"""Places in documents and what is said of them, as editors send them. Types, and how they are read."""

from typing import Annotated, Final, TypeVar, cast

from pydantic import Field, ValidationError

from protocol.base import Json, JsonObject, WireModel
from sidecar.errors import InvalidParams

M = TypeVar("M", bound=WireModel)

_SEVERITIES: Final = {1: "error", 2: "warning", 3: "information", 4: "hint"}
MAX_MESSAGE: Final = 1_000
"""Characters of a diagnostic's message."""

Count = Annotated[int, Field(ge=0)]


class Point(WireModel):
    """A position."""

    line: Count
    character: Count


class Span(WireModel):
    """A range; an empty one is where the cursor stands."""

    start: Point
    end: Point


class Diagnostic(WireModel):
    """What some tool says of a part of a document."""

    range: Span
    message: Json
    severity: Json = None
    source: Json = None
    code: Json = None

    @property
    def line(self) -> str:
        """All of it on one line."""
        said = cast("JsonObject", self.message).get("value") if isinstance(self.message, dict) else self.message
        by = " ".join(str(part)[:100] for part in (self.source, self.code) if isinstance(part, str | int))
        kind = _SEVERITIES.get(self.severity, "note") if isinstance(self.severity, int) else "note"
        return f"line {self.range.start.line + 1}: {kind}: {' '.join(str(said)[:MAX_MESSAGE].split())} {by}".rstrip()


class Target(WireModel):
    """What `sidecar.explain` and `sidecar.fix` are about."""

    uri: str
    range: Span | None = None
    """`None`: the whole document."""
    version: int | None = None
    """If the document has another one by now, the command is refused."""
    diagnostics: tuple[Diagnostic, ...] = ()


class TextDocument(WireModel):
    """A document."""

    uri: str


class CodeActionContext(WireModel):
    """What a code action is asked for."""

    diagnostics: tuple[JsonObject, ...] = ()
    only: tuple[str, ...] | None = None
    """Kinds; `None`: all."""
    trigger_kind: int | None = None


class CodeActionParams(WireModel):
    """Params of `textDocument/codeAction`."""

    text_document: TextDocument
    range: Span
    context: CodeActionContext = CodeActionContext()


def read(kind: type[M], value: Json, what: str) -> M:
    """A value of a type.

    Args:
        kind: The type.
        value: What the client has sent.
        what: What it is, for messages.

    Raises:
        InvalidParams: it has another shape; the value is not repeated.
    """
    try:
        return kind.model_validate(value)
    except ValidationError as error:
        faults = error.errors(include_url=False, include_input=False)
        problems = [{"path": ".".join(map(str, one["loc"])), "message": one["msg"]} for one in faults]
        listed = ", ".join(f"{one['path'] or what}: {one['message']}" for one in problems[:5])
        raise InvalidParams(f"{what}: {listed}", problems) from None
