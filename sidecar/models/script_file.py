"""A script for the scripted model: the file's shape, and which of its replies answers a request. No I/O but the read.

The choice depends on the request alone, never on what was asked before: so any number of sessions may run at once, a
retried call gets the same answer, and a test reads the same forwards and backwards. `docs/scripted-model.md` is the
reference for users.
"""

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from pydantic import ConfigDict, Field, ValidationError, field_validator, model_validator

from protocol.base import JsonObject, StrictModel
from protocol.messages import FunctionCallBlock, FunctionResultBlock, Message, TextBlock
from providers.api.ports import ChatRequest, FinishReason
from sidecar.errors import ConfigInvalid, ModelNotFound

MAX_FILE_BYTES: Final = 4 * 1024 * 1024

ErrorKind = Literal[
    "modelAuth", "modelRateLimited", "modelQuota", "contextWindowExceeded", "contentFiltered", "modelBadRequest",
    "modelUnavailable", "modelTimeout", "modelBadStream", "modelNotFound",
]  # fmt: skip


class _Strict(StrictModel):
    model_config = ConfigDict(alias_generator=None)


class ScriptedCall(_Strict):
    """A tool call of a reply."""

    name: str
    arguments: JsonObject = Field(default_factory=dict)
    raw_arguments: str | None = None
    """Text that is no JSON object, as a bad model would send it."""


class ScriptedUsage(_Strict):
    """What the reply says it cost."""

    input_tokens: int = Field(ge=0)
    output_tokens: int = Field(ge=0)


class ScriptedReply(_Strict):
    """One `[[reply]]`: conditions first, then what is answered, in the order in which it is sent."""

    when: str | None = None
    """Regular expression, searched in the last user text; letter case does not count."""
    when_instructions: str | None = None
    """The same, in the instructions."""
    when_tool: str | None = None
    """The last message is this tool's result."""
    when_fields: tuple[str, ...] | None = None
    """The request asks for structured data that has these fields."""

    delay_ms: int = Field(default=0, ge=0)
    """Before anything is sent."""
    reasoning: str | None = None
    text: str | tuple[str, ...] | None = None
    """A list is sent as it is, one delta an item; a string word by word."""
    data: Any = None
    """Sent as JSON text: the answer to a request for structured data."""
    delta_delay_ms: int = Field(default=0, ge=0)
    """Before each delta but the first."""
    calls: tuple[ScriptedCall, ...] = ()
    stall: bool = False
    """Then nothing, for ever."""
    error: ErrorKind | None = None
    """Then this error."""
    retry_after_ms: int | None = Field(default=None, ge=0)
    http_status: int | None = None
    finish: FinishReason | None = None
    usage: ScriptedUsage | None = None

    @field_validator("when", "when_instructions")
    @classmethod
    def _compiles(cls, pattern: str | None) -> str | None:
        try:
            re.compile(pattern or "")
        except re.error as error:
            raise ValueError(f"no regular expression: {error}") from None
        return pattern

    @model_validator(mode="after")
    def _says_something(self) -> "ScriptedReply":
        if self.text is not None and self.data is not None:
            raise ValueError("give text or data, not both")
        said = (self.text, self.data, self.reasoning, self.error, self.finish)
        if all(part is None for part in said) and not (self.calls or self.stall):
            raise ValueError("the reply says nothing: give text, data, calls, error or stall")
        return self

    @property
    def is_conditional(self) -> bool:
        """Whether it waits for its moment, instead of its turn."""
        return any((self.when, self.when_instructions, self.when_tool, self.when_fields))


class _ScriptFile(_Strict):
    reply: Annotated[tuple[ScriptedReply, ...], Field(min_length=1)]


@dataclass(frozen=True, slots=True)
class Match:
    """The reply to a request, and what its placeholders stand for."""

    reply: ScriptedReply
    values: Mapping[str, str]


class Script:
    """The replies of one file, in its order."""

    def __init__(self, replies: tuple[ScriptedReply, ...]) -> None:
        self._conditional = [reply for reply in replies if reply.is_conditional]
        self._in_turn = [reply for reply in replies if not reply.is_conditional]

    def match(self, request: ChatRequest) -> Match | None:
        """The first conditional reply whose conditions all hold; else the one whose turn it is.

        The turn is the number of assistant messages in the request. A request for structured data takes a reply in
        turn only if that has `data`.
        """
        moment = _Moment(request)
        for reply in self._conditional:
            values = moment.values_if(reply)
            if values is not None:
                return Match(reply, values)
        if moment.turn >= len(self._in_turn):
            return None
        reply = self._in_turn[moment.turn]
        if request.response_schema is not None and reply.data is None and reply.error is None and not reply.stall:
            return None
        return Match(reply, moment.values)


class _Moment:
    """What of a request replies are chosen by."""

    def __init__(self, request: ChatRequest) -> None:
        self._request = request
        self.turn = sum(message.role == "assistant" for message in request.messages)
        self._input = next((message.text for message in reversed(request.messages) if message.role == "user"), "")

    @cached_property
    def values(self) -> dict[str, str]:
        """What the plain placeholders stand for."""
        result = self._last_result
        return {
            "input": self._input,
            "instructions": self._request.instructions,
            "turn": str(self.turn),
            "tools": ", ".join(tool.name for tool in self._request.tools),
            "result": "".join(part.text for part in result.content if isinstance(part, TextBlock)) if result else "",
        }

    def values_if(self, reply: ScriptedReply) -> dict[str, str] | None:
        """The values with what the patterns captured; `None` if a condition does not hold."""
        asked = (self._request.response_schema or {}).get("properties")
        if not self._suits(reply):
            return None
        if reply.when_fields and not (isinstance(asked, dict) and set(reply.when_fields) <= asked.keys()):
            return None
        if reply.when_tool and reply.when_tool != self._last_tool:
            return None
        values = dict(self.values)
        for pattern, text in ((reply.when, self._input), (reply.when_instructions, self._request.instructions)):
            if pattern is None:
                continue
            found = re.search(pattern, text, re.IGNORECASE)
            if found is None:
                return None
            values.update((name, value or "") for name, value in found.groupdict().items())
        return values

    def _suits(self, reply: ScriptedReply) -> bool:
        """Whether the reply is of the kind that is asked for: structured data, or anything else."""
        if self._request.response_schema is None:
            return reply.when_fields is None and reply.data is None
        return reply.data is not None or reply.when_fields is not None or reply.error is not None or reply.stall

    @cached_property
    def _last_result(self) -> FunctionResultBlock | None:
        last: Message | None = self._request.messages[-1] if self._request.messages else None
        results = [block for block in last.content if isinstance(block, FunctionResultBlock)] if last else []
        return results[-1] if results else None

    @cached_property
    def _last_tool(self) -> str | None:
        """The name of the tool whose result is the last message."""
        call_id = self._last_result.call_id if self._last_result else None
        blocks = (block for message in reversed(self._request.messages) for block in message.content)
        calls = (block for block in blocks if isinstance(block, FunctionCallBlock))
        return next((call.name for call in calls if call.call_id == call_id), None)


def read_script(name: str) -> Script:
    """Read a script; blocks.

    Args:
        name: the file, absolute or relative to the working directory.

    Raises:
        ModelNotFound: there is no such file.
        ConfigInvalid: it is no script; the message has file and line.
    """
    path = Path(name)
    try:
        if not path.is_file() or path.stat().st_size > MAX_FILE_BYTES:
            raise ModelNotFound(f"there is no script {name!r} (scripted:FILE is a path; scripted:echo needs none)")
        text = path.read_text(encoding="utf-8")
    except OSError:
        raise ModelNotFound(f"the script {name!r} cannot be read") from None
    except UnicodeDecodeError:
        raise ConfigInvalid("the script is no UTF-8 text", file=name) from None
    try:
        return Script(_ScriptFile.model_validate(tomllib.loads(text)).reply)
    except tomllib.TOMLDecodeError as error:
        raise ConfigInvalid(f"no TOML: {error}", file=name, line=_line_in(str(error), text)) from None
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise ConfigInvalid(
            f"{where}: {first['msg'].removeprefix('Value error, ')}",
            file=name,
            line=_line_of(text, first["loc"]),
            key=where,
        ) from None


def _line_in(message: str, text: str) -> int:
    found = re.search(r"at line (\d+)", message)
    return int(found[1]) if found else text.count("\n") + 1  # "at end of document"


def _line_of(text: str, where: tuple[int | str, ...]) -> int | None:
    """The line of the n-th `[[reply]]`, or of the named key in it."""
    lines = text.splitlines()
    starts = [number for number, line in enumerate(lines) if line.replace(" ", "").startswith("[[reply]]")]
    position = where[1] if len(where) > 1 else None
    if not isinstance(position, int) or position >= len(starts):
        return None
    start = starts[position]
    end = starts[position + 1] if position + 1 < len(starts) else len(lines)
    keys = [part for part in where[2:] if isinstance(part, str)]
    key = re.compile(rf"\s*{re.escape(keys[0])}\s*=") if keys else None
    return next((number + 1 for number in range(start, end) if key and key.match(lines[number])), start + 1)
