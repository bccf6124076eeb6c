"""What the names in an agent stand for, once looked up: provider types, tools, middleware. Looks nothing up itself."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from providers.api.agent import CustomAgent
from providers.api.context import OfferedTool
from providers.api.middleware import Middleware, MiddlewareKind
from providers.registry import ProviderType


@dataclass(frozen=True, slots=True)
class BoundMiddleware:
    """A middleware in its place."""

    name: str
    """What it is called in messages and explanations."""
    kind: MiddlewareKind
    middleware: Middleware


@dataclass(frozen=True, slots=True)
class Parts:
    """An agent's parts, beyond what every agent may name."""

    providers: Mapping[str, ProviderType] = field(default_factory=dict[str, ProviderType])
    """Plug-in types by the name in the entry."""
    tools: tuple[OfferedTool, ...] = ()
    middleware: tuple[BoundMiddleware, ...] = ()
    detailed_tool_errors: bool = False
    implementation: CustomAgent | None = None
    """What answers in place of model and tools."""


NO_PARTS: Final = Parts()
