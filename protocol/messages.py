"""Messages and their content blocks, as hosts send them, as models see them and as they are stored."""

from collections.abc import Iterable, Mapping
from functools import cached_property
from operator import attrgetter
from typing import Annotated, Any, Literal, Self, cast

from pydantic import ConfigDict, Discriminator, Field, Tag, field_validator

from .base import Flag, Json, JsonObject, WireModel

Role = Literal["system", "user", "assistant", "tool"]


class Source(WireModel):
    """Where a message, an instruction or an event comes from."""

    type: str
    """`external`, `history`, `provider`, `agent`, `run` or `middleware`; later versions may add others."""
    source_id: str | None = None
    source_type: str | None = None
    origin_session_ids: tuple[str, ...] | None = None
    """Sessions that the text was first said in, for text out of a shared memory."""


class Usage(WireModel):
    """Tokens of one or more model calls."""

    input_tokens: int = 0
    output_tokens: int = 0
    cached_input_tokens: int | None = None
    reasoning_tokens: int | None = None
    estimated: bool | None = None
    """True where the endpoint gave no numbers and they were counted from the text."""

    def __add__(self, other: "Usage") -> "Usage":
        return Usage(
            input_tokens=self.input_tokens + other.input_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            cached_input_tokens=_sum(self.cached_input_tokens, other.cached_input_tokens),
            reasoning_tokens=_sum(self.reasoning_tokens, other.reasoning_tokens),
            estimated=(self.estimated or other.estimated) or None,
        )


def _sum(left: int | None, right: int | None) -> int | None:
    return None if left is None and right is None else (left or 0) + (right or 0)


class TextBlock(WireModel):
    """Plain text."""

    type: Literal["text"] = "text"
    text: str


class MediaBlock(WireModel):
    """An image or a sound, inline."""

    type: Literal["image", "audio"]
    data: str
    """Base64."""
    mime_type: str


class ResourceLinkBlock(WireModel):
    """A pointer to something; never opened or fetched by the sidecar."""

    type: Literal["resource_link"] = "resource_link"
    uri: str
    name: str
    title: str | None = None
    description: str | None = None
    mime_type: str | None = None
    size: int | None = None


class EmbeddedResource(WireModel):
    """A resource's contents: exactly one of `text` and `blob` (base64)."""

    uri: str
    mime_type: str | None = None
    text: str | None = None
    blob: str | None = None


class ResourceBlock(WireModel):
    """A resource with its contents."""

    type: Literal["resource"] = "resource"
    resource: EmbeddedResource


class ReasoningBlock(WireModel):
    """What a model said to itself."""

    type: Literal["reasoning"] = "reasoning"
    text: str


class FunctionCallBlock(WireModel):
    """A model's wish to call a tool."""

    type: Literal["functionCall"] = "functionCall"
    call_id: str
    name: str
    arguments: JsonObject
    raw_arguments: str | None = None
    """The text, where it was no JSON object; `arguments` is then `{}`. Never sent to a model."""


class FunctionResultBlock(WireModel):
    """The one result of a call."""

    type: Literal["functionResult"] = "functionResult"
    call_id: str
    content: tuple["Block", ...]
    structured_content: Json = None
    is_error: bool | None = None


class ApprovalRequestBlock(WireModel):
    """A call that waits for a person's decision."""

    type: Literal["approvalRequest"] = "approvalRequest"
    request_id: str
    call_id: str
    name: str
    arguments: JsonObject


class ApprovalResponseBlock(WireModel):
    """A person's decision on a recorded request."""

    type: Literal["approvalResponse"] = "approvalResponse"
    request_id: str
    approved: Flag
    message: str | None = None


class UsageBlock(WireModel):
    """Tokens of the model call that made the message."""

    type: Literal["usage"] = "usage"
    usage: Usage


class ErrorBlock(WireModel):
    """An error that is part of the conversation."""

    type: Literal["error"] = "error"
    kind: str
    message: str


class UnknownBlock(WireModel):
    """A block of a type that this version does not know: kept and passed on, never sent to a model."""

    model_config = ConfigDict(extra="allow")

    type: str


def _tag(value: Any) -> str:
    name: object = cast("JsonObject", value).get("type") if isinstance(value, dict) else getattr(value, "type", None)
    return name if isinstance(name, str) and name in _KNOWN else "unknown"


_KNOWN = frozenset(
    {
        "text",
        "image",
        "audio",
        "resource_link",
        "resource",
        "reasoning",
        "functionCall",
        "functionResult",
        "approvalRequest",
        "approvalResponse",
        "usage",
        "error",
    }
)

Block = Annotated[
    Annotated[TextBlock, Tag("text")]
    | Annotated[MediaBlock, Tag("image")]
    | Annotated[MediaBlock, Tag("audio")]
    | Annotated[ResourceLinkBlock, Tag("resource_link")]
    | Annotated[ResourceBlock, Tag("resource")]
    | Annotated[ReasoningBlock, Tag("reasoning")]
    | Annotated[FunctionCallBlock, Tag("functionCall")]
    | Annotated[FunctionResultBlock, Tag("functionResult")]
    | Annotated[ApprovalRequestBlock, Tag("approvalRequest")]
    | Annotated[ApprovalResponseBlock, Tag("approvalResponse")]
    | Annotated[UsageBlock, Tag("usage")]
    | Annotated[ErrorBlock, Tag("error")]
    | Annotated[UnknownBlock, Tag("unknown")],
    Discriminator(_tag),
]


class Message(WireModel):
    """One message of a conversation. Frozen, so that one object can serve the store, the model and the wire."""

    message_id: str | None = None
    """Given by the sidecar where the sender left it out."""
    role: Role
    content: tuple[Block, ...]
    """A plain string is taken as one text block; the sidecar always sends blocks."""
    author_name: str | None = None
    source: Source | None = None
    """Set by the sidecar."""
    run_id: str | None = None
    created_at: str | None = None
    """RFC 3339, UTC."""
    metadata: JsonObject | None = None
    partial: Literal[True] | None = Field(default=None)
    """Text of a run that was cut; only in run records."""

    @field_validator("content", mode="before")
    @classmethod
    def _string_is_text(cls, value: Any) -> Any:
        return ({"type": "text", "text": value},) if isinstance(value, str) else value

    @cached_property
    def text(self) -> str:
        """The text blocks, joined. Kept: a long history is asked for it in every run."""
        return "".join(block.text for block in self.content if isinstance(block, TextBlock))

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """A copy with some fields changed. It joins its own text, where pydantic would hand on the kept one."""
        copied = super().model_copy(update=update, deep=deep)
        vars(copied).pop("text", None)
        return copied


def text_length(messages: Iterable[Message]) -> int:
    """How many characters their texts have in all."""
    return sum(map(len, map(attrgetter("text"), messages)))  # no Python frame for each message of a long history


def text_message(role: Role, text: str, **fields: Any) -> Message:
    """A message of one text block."""
    return Message(role=role, content=(TextBlock(text=text),), **fields)
