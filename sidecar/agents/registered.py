"""The tools, middleware and agents' own code that agents may name, configured or installed. Runs none of them.

They are imported when the first agent asks for one, off the event loop, and kept as long as their configuration.
"""

import difflib
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeVar, cast

from protocol.agents import MiddlewareEntry
from protocol.base import Json
from providers.api.agent import CustomAgent
from providers.api.middleware import AgentMiddleware, ChatMiddleware, FunctionMiddleware, MiddlewareError, kind_of
from providers.api.tool import FunctionTool, tool, tool_from_schema
from providers.import_thread import IMPORT_S, Once, in_thread
from providers.plugin_config import made
from providers.plugins import (
    Group,
    Plugin,
    PluginError,
    imported_object,
    installed,
    is_import_path,
    load_installed_object,
)
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
        self._tools = Once(self._import_tools)

    async def tool(self, name: str) -> FunctionTool:
        """The registered tool of this name.

        Raises:
            ToolNotFound: there is none.
            ConfigInvalid: a registered tool cannot be imported.
        """
        tools = await self.tools()
        if name in tools:
            return tools[name]
        points = await _points("tools")
        if name not in points:
            raise ToolNotFound(f"no tool {name!r} is registered{_hint(name, [*tools, *points])}")
        return await _looked_up(partial(load_installed_object, points[name]), _as_tool, f"tool {name!r}", "tools")

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
        return await self._tools.get()

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

    async def agent(self, entry: str, config: Json, name: str, file: str | None = None) -> CustomAgent:
        """What an agent does in place of calling a model, made for one session.

        Args:
            entry: An installed plug-in's name, or `module:Class`.
            config: The plug-in's own configuration.
            name: The agent's name.
            file: The file that names it, for messages.

        Raises:
            ConfigInvalid: there is none of that name, it cannot be imported, or its configuration is refused.
        """
        if is_import_path(entry):
            load = partial(imported_object, entry, self._folders)
        else:
            points = await _points("agents")
            if entry not in points:
                raise ConfigInvalid(
                    f"agent {name!r}: no implementation {entry!r} is installed{_hint(entry, points)}",
                    key="implementation",
                    file=file,
                )
            load = partial(load_installed_object, points[entry])
        make = partial(_as_agent, name, config)
        return await _looked_up(load, make, f"agent {name!r}: implementation", "implementation", file)

    async def _import_tools(self) -> Mapping[str, FunctionTool]:
        found = {WEB_SEARCH: _web_search()}
        for path in self._tool_paths:
            made = await self.tool_at(path, None)
            if made.name == WEB_SEARCH:
                raise ConfigInvalid(f"tools: {path!r}: {WEB_SEARCH!r} is built in; take another name", key="tools")
            if found.setdefault(made.name, made) is not made:
                raise ConfigInvalid(f"tools: two are named {made.name!r}, the second one {path!r}", key="tools")
        return found

    async def _named(self, name: str) -> Callable[[], Plugin]:
        paths = [path for path in self._middleware_paths if path.partition(":")[2] == name]
        if len(paths) > 1:
            raise ConfigInvalid(f"middleware: two are named {name!r}: {', '.join(paths)}", key="middleware")
        if paths:
            return partial(imported_object, paths[0], self._folders)
        points = await _points("middleware")
        if name in points:
            return partial(load_installed_object, points[name])
        known = [*(path.partition(":")[2] for path in self._middleware_paths), *points]
        raise ConfigInvalid(f"no middleware {name!r} is registered{_hint(name, known)}", key="middleware")


async def _points(group: Group) -> Mapping[str, Any]:
    return await in_thread(partial(installed, group))


async def _looked_up(
    load: Callable[[], Plugin], make: Callable[[Plugin], T], what: str, key: str, file: str | None = None
) -> T:
    """Import something and make what it is for; whatever goes wrong is told as a fault of the configuration."""
    try:
        return await in_thread(lambda: make(load()))
    except (PluginError, TimeoutError) as error:
        why = f"{what}: {error}" if str(error) else f"{what} is still being imported after {IMPORT_S:.0f} seconds"
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
    if isinstance(target, type) and not issubclass(target, _CLASSES):
        raise PluginError(f"{plugin.what!r} in {plugin.place}: the class {target.__name__} is no middleware")
    if not isinstance(target, type) and config is not None:
        raise PluginError(f"{plugin.what!r} in {plugin.place} takes no config: it is no class")
    one = cast("Any", made(plugin, config) if isinstance(target, type) else target)
    try:
        return BoundMiddleware(name, kind_of(one), one)
    except MiddlewareError as error:
        raise PluginError(f"{plugin.what!r} in {plugin.place}: {error}") from error


def _as_agent(name: str, config: Json, plugin: Plugin) -> CustomAgent:
    target = plugin.target
    if not isinstance(target, type) or not callable(getattr(target, "run", None)):
        raise PluginError(f"{plugin.what!r} in {plugin.place} is no class with a method run")
    return cast("CustomAgent", made(plugin, config, name))


def _web_search() -> FunctionTool:
    text = "Search the web. The model's service does it, where it can."
    return tool_from_schema(None, name=WEB_SEARCH, description=text, hosted="web_search")


def _hint(name: str, known: Sequence[str] | Mapping[str, object]) -> str:
    near = difflib.get_close_matches(name, list(known), n=1)
    if near:
        return f"; did you mean {near[0]!r}?"
    return f"; there are {', '.join(sorted(known))}" if known else ""
