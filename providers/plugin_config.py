"""Makes an object of a plug-in's class, with its own configuration checked first. It imports nothing."""

import difflib
import inspect
from typing import Any, cast

from pydantic import ValidationError

from protocol.base import Json

from .api.provider import ProviderConfig
from .plugins import Plugin, PluginError


def made(plugin: Plugin, config: Json, *arguments: object) -> object:
    """An object of a plug-in's class.

    A class that has a `config_type` is given its configuration last; another one takes none.

    Args:
        plugin: The class.
        config: The configuration, as it was written; `None` where there is none.
        arguments: What the class is given besides.

    Raises:
        PluginError: the configuration is refused, or the class cannot be made so.
    """
    target = cast("type[Any]", plugin.target)
    if inspect.isabstract(target):
        lacking = ", ".join(sorted(target.__abstractmethods__))
        raise PluginError(f"{plugin.what!r} in {plugin.place} does not define {lacking}")
    given = (*arguments, *_own_config(plugin, config))
    try:
        inspect.signature(target).bind(*given)
    except TypeError as error:
        raise PluginError(f"{plugin.what!r} in {plugin.place} must take {len(given)} arguments: {error}") from None
    except ValueError:  # a class of C code: nobody knows what it takes before it is made
        pass
    try:
        return target(*given)
    except BaseException as error:  # of a thread that does nothing else: it ends no process
        raise PluginError(f"{plugin.what!r} in {plugin.place} cannot be made: {type(error).__name__}") from error


def _own_config(plugin: Plugin, config: Json) -> tuple[ProviderConfig, ...]:
    config_type: object = getattr(plugin.target, "config_type", None)
    if config_type is None:
        if config is not None:
            raise PluginError(f"{plugin.what!r} in {plugin.place} takes no config: it has no config_type")
        return ()
    if not (isinstance(config_type, type) and issubclass(config_type, ProviderConfig)):
        raise PluginError(f"{plugin.what!r} in {plugin.place}: its config_type is no subclass of ProviderConfig")
    try:
        return (config_type.model_validate({} if config is None else config),)
    except ValidationError as error:
        raise PluginError(f"{plugin.what!r}: {_fault(error, config_type)}") from None


def _fault(error: ValidationError, config_type: type[ProviderConfig]) -> str:
    """The first thing that is wrong, a misspelt key before all others: where, what, and the nearest valid key."""
    faults = error.errors(include_url=False, include_input=False)
    fault = next((fault for fault in faults if fault["type"] == "extra_forbidden"), faults[0])
    where = ".".join(map(str, ("config", *fault["loc"])))
    what = fault["msg"].removeprefix("Value error, ")
    if fault["type"] != "extra_forbidden":
        return f"{where}: {what}"
    known = [field.alias or name for name, field in config_type.model_fields.items()]
    near = difflib.get_close_matches(str(fault["loc"][-1]), known, n=1)
    return f"{where}: {what}; " + (
        f"did you mean {near[0]!r}?" if near else f"valid keys: {', '.join(known) or 'none'}"
    )
