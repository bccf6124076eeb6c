"""The tools and middleware that agents may name: of a configuration, and of installed packages. Runs none of them.

They are imported when the first agent asks for one, off the event loop, and kept as long as their configuration.
"""

import asyncio
import difflib
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeVar, cast

from pydantic import ValidationError

from protocol.agents import MiddlewareEntry
from protocol.base import Json
from providers.api.middleware import AgentMiddleware, ChatMiddleware, FunctionMiddleware, MiddlewareError, kind_of
from providers.api.provider import ProviderConfig
from providers.api.tool import FunctionTool, tool, tool_from_schema
from providers.import_thread import IMPORT_S, in_thread
from providers.plugins import Group, Plugin, PluginError, imported_object, installed, load_installed_object
from sidecar.errors import ConfigInvalid, ToolNotFound
from sidecar.telemetry import log_failure

from .parts import BoundMiddleware

T = TypeVar("T")

WEB_SEARCH: Final = "web_search"
"""Name of the tool that a model's service carries out itself, where it has one."""

_CLASSES: Final = (AgentMiddleware, ChatMiddleware, FunctionMiddleware)


class Registered:
    """What one configuration registers, beside what is installed."""

    def __init__(self, tools: Sequence[str] = (), middleware: Sequence[str] = (), folders: Sequence[Path] = ()) -> None:
        """Nothing is imported yet.

        Args:
            tools: `module:function`, each registered under the tool's own name.
            middleware: `module:name`, each registered under its own name.
            folders: Where the configuration's plug-ins are.
        """
        self._tool_paths = tuple(tools)
        self._middleware_paths = tuple(middleware)
        self._folders = folders
        self._tools: dict[str, FunctionTool] | None = None
        self._lock = asyncio.Lock()

    async def tool(self, name: str) -> FunctionTool:
        """The registered tool of this name.

        Raises:
            ToolNotFound: there is none.
            ConfigInvalid: a registered tool cannot be imported.
        """
        tools = await self.tools()
        found = tools.get(name)
        if found is None and (point := (await _points("tools")).get(name)) is not None:
            found = await _looked_up(partial(load_installed_object, point), _as_tool, f"tool {name!r}", "tools")
        if found is None:
            raise ToolNotFound(f"no tool {name!r} is registered{_hint(name, tools)}")
        return found

    async def tool_at(self, path: str, file: str | None) -> FunctionTool:
        """The tool that `module:function` names, in a configuration's own words.

        Raises:
            ConfigInvalid: it cannot be imported, or is no tool.
        """
        load = partial(imported_object, path, self._folders)
        return await _looked_up(load, _as_tool, f"tool {path!r}", "tools", file)

    async def tools(self) -> Mapping[str, FunctionTool]:
        """Every tool that the configuration registers, by its name.

        Raises:
            ConfigInvalid: one cannot be imported, or two have one name.
        """
        async with self._lock:
            if self._tools is None:
                found = {WEB_SEARCH: _web_search()}
                for path in self._tool_paths:
                    made = await self.tool_at(path, None)
                    if found.setdefault(made.name, made) is not made:
                        raise ConfigInvalid(f"tools: two are named {made.name!r}", key="tools")
                self._tools = found
            return self._tools

    async def middleware(self, entry: MiddlewareEntry, file: str | None = None) -> BoundMiddleware:
        """A middleware, made for one agent or run.

        Raises:
            ConfigInvalid: there is none of that name, it cannot be imported, or its configuration is refused.
        """
        if entry.import_ is not None:
            load = partial(imported_object, entry.import_, self._folders)
        else:
            load = await self._named(str(entry.name))
        what = entry.name or str(entry.import_)
        make = partial(_as_middleware, what, entry.config)
        return await _looked_up(load, make, f"middleware {what!r}", "middleware", file)

    async def _named(self, name: str) -> Callable[[], Plugin]:
        paths = {path.partition(":")[2]: path for path in self._middleware_paths}
        if name in paths:
            return partial(imported_object, paths[name], self._folders)
        points = await _points("middleware")
        if name in points:
            return partial(load_installed_object, points[name])
        raise ConfigInvalid(f"no middleware {name!r} is registered{_hint(name, [*paths, *points])}", key="middleware")


async def _points(group: Group) -> Mapping[str, Any]:
    return await in_thread(partial(installed, group))


async def _looked_up(
    load: Callable[[], Plugin], make: Callable[[Plugin], T], what: str, key: str, file: str | None = None
) -> T:
    """Import something and make what it is for; whatever goes wrong is told as a fault of the configuration."""
    try:
        return await in_thread(lambda: make(load()))
    except (PluginError, TimeoutError) as error:
        why = str(error) or f"{what} is still being imported after {IMPORT_S:.0f} seconds"
        refusal = ConfigInvalid(why, key=key, file=file)
        log_failure(what, error.__cause__ or error, refusal.error_id)
        raise refusal from error


def _as_tool(plugin: Plugin) -> FunctionTool:
    target = plugin.target
    if isinstance(target, FunctionTool):
        return target
    if not callable(target) or isinstance(target, type):
        raise PluginError(f"{plugin.what!r} in {plugin.place} is no tool, but a {type(target).__name__}")
    try:
        return tool(target)
    except (TypeError, ValueError) as error:
        raise PluginError(f"{plugin.what!r} in {plugin.place}: {error}") from error


def _as_middleware(name: str, config: Json, plugin: Plugin) -> BoundMiddleware:
    target = plugin.target
    try:
        made = _made(target, config) if isinstance(target, type) else target
        if not isinstance(target, type) and config is not None:
            raise MiddlewareError("it takes no config")
        return BoundMiddleware(name, kind_of(cast("Any", made)), cast("Any", made))
    except MiddlewareError as error:
        raise PluginError(f"{plugin.what!r} in {plugin.place}: {error}") from error
    except ValidationError as error:
        fault = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(map(str, ("config", *fault["loc"])))
        raise PluginError(f"{plugin.what!r}: {where}: {fault['msg']}") from None
    except Exception as error:
        raise PluginError(f"{plugin.what!r} in {plugin.place} cannot be made: {type(error).__name__}") from error


def _made(target: type, config: Json) -> object:
    """An instance of a middleware class: with its configuration, if it has a `config_type`."""
    if not issubclass(target, _CLASSES):
        raise MiddlewareError(f"the class {target.__name__} is no middleware")
    config_type: object = getattr(target, "config_type", None)
    if isinstance(config_type, type) and issubclass(config_type, ProviderConfig):
        return cast("Any", target)(config_type.model_validate({} if config is None else config))
    if config is not None:
        raise MiddlewareError("it takes no config")
    return target()


def _web_search() -> FunctionTool:
    text = "Search the web. The model's service does it, where it can."
    return tool_from_schema(None, name=WEB_SEARCH, description=text, hosted="web_search")


def _hint(name: str, known: Sequence[str] | Mapping[str, object]) -> str:
    near = difflib.get_close_matches(name, list(known), n=1)
    if near:
        return f"; did you mean {near[0]!r}?"
    return f"; there are {', '.join(sorted(known))}" if known else ""
