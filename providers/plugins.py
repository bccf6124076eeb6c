"""Finds what is not ours, by import path or by an installed package's entry point: above all provider classes.

The folders of plug-ins stand at the end of `sys.path`, so that nothing in them can take the place of a module that is
there already. From these folders only source and extension modules are imported: bytecode beside the source could say
something else than what a person has read and trusted.
"""

import os
import stat
import sys
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.machinery import EXTENSION_SUFFIXES, SOURCE_SUFFIXES, ExtensionFileLoader, FileFinder, SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType
from typing import TYPE_CHECKING, Final, Literal

from providers.api.callbacks import CallbackProvider
from providers.api.provider import ContextProvider, ProviderConfig

from .registry import ProviderType

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

Group = Literal["providers", "tools", "middleware", "chat_clients", "agents"]
"""What an installed package may offer: each has a group of entry points `agent_sidecar.GROUP`, name → object."""

_searching: Final = threading.Lock()
_folders: Final[list[str]] = []
"""Real paths of every folder of plug-ins that was ever searched, in order."""


class PluginError(Exception):
    """A plug-in cannot be used; the text says which, where and why, and never repeats an exception's own text."""


@dataclass(frozen=True, slots=True)
class Plugin:
    """An object that was imported."""

    what: str
    """What it is called in messages."""
    target: object
    place: str
    """The file, or the package, that it comes from."""


def is_import_path(type_name: str) -> bool:
    """Whether a name is written as `module:name`."""
    return ":" in type_name


def imported(type_name: str, folders: Sequence[Path]) -> ProviderType:
    """The provider class that `module:Class` names. It runs the module's code, so call it off the event loop.

    Args:
        type_name: `module:Class`, or `module:name` of a provider that is made of functions.
        folders: Where the plug-ins of the configuration that names it are.

    Raises:
        PluginError: it cannot be imported, or is no provider.
    """
    return _provider_type(imported_object(type_name, folders))


def imported_object(path: str, folders: Sequence[Path]) -> Plugin:
    """The object that `module:name` names, whatever it is. As `imported`.

    Raises:
        PluginError: it cannot be imported.
    """
    module_name, _, name = path.partition(":")
    if not all(part.isidentifier() for part in module_name.split(".")) or not name.isidentifier():
        raise PluginError(f"{path!r} must be module:name, two names of Python")
    search(folders)
    module = _import(path, module_name)
    _refuse_foreign(path, module, folders)
    if not hasattr(module, name):
        raise PluginError(f"{path!r}: {_place(module)} has no {name!r}")
    return Plugin(path, getattr(module, name), _place(module))


@cache
def installed(group: Group = "providers") -> dict[str, "EntryPoint"]:
    """What installed packages offer. Nothing of them is imported yet; the look-up takes some time."""
    from importlib.metadata import entry_points  # costs too much for those who name none

    return {point.name: point for point in entry_points(group=f"agent_sidecar.{group}")}


def load_installed(point: "EntryPoint") -> ProviderType:
    """The provider class of an entry point. It runs the package's code, so call it off the event loop.

    Raises:
        PluginError: it cannot be imported, or is no provider.
    """
    return _provider_type(load_installed_object(point))


def load_installed_object(point: "EntryPoint") -> Plugin:
    """The object of an entry point, whatever it is. As `load_installed`.

    Raises:
        PluginError: it cannot be imported.
    """
    what = f"{point.name} ({point.value}, {point.dist.name if point.dist is not None else 'a package'})"
    try:
        target = point.load()
    except BaseException as error:  # of a thread that does nothing else: it ends no process
        raise PluginError(f"{what!r} cannot be imported: {_told(error)}") from error
    return Plugin(what, target, point.value)


def search(folders: Sequence[Path]) -> None:
    """Let modules be imported from folders, after everything else.

    Raises:
        PluginError: a folder is missing, or somebody else may write to it.
    """
    for folder in folders:
        real = os.path.realpath(folder)
        _refuse_unsafe(real)
        with _searching:
            _add(real)


class _SourceOnly(SourceFileLoader):
    """Compiles the source each time: it neither reads nor writes bytecode."""

    def get_code(self, fullname: str) -> CodeType:
        path = self.get_filename(fullname)
        return self.source_to_code(self.get_data(path), path)


def _finder(entry: str) -> FileFinder:
    """A hook of `sys.path_hooks` for the folders of plug-ins and what is below them."""
    real = os.path.realpath(entry)
    if not any(real == folder or real.startswith(folder + os.sep) for folder in _folders):
        raise ImportError("no folder of plug-ins", path=entry)
    return FileFinder(entry, (ExtensionFileLoader, EXTENSION_SUFFIXES), (_SourceOnly, SOURCE_SUFFIXES))


def _add(folder: str) -> None:
    if not _folders:
        sys.path_hooks.insert(0, _finder)
    if folder not in _folders:
        _folders.append(folder)
        sys.path_importer_cache.pop(folder, None)
    if folder not in sys.path:
        sys.path.append(folder)
    finder = sys.path_importer_cache.get(folder)
    if isinstance(finder, FileFinder):
        finder.invalidate_caches()  # a file may be younger than what the finder remembers of the folder


def _import(type_name: str, module_name: str) -> ModuleType:
    try:
        return import_module(module_name)
    except BaseException as error:  # of a thread that does nothing else: it ends no process
        raise PluginError(f"{type_name!r} cannot be imported: {_told(error)}") from error


def _provider_type(plugin: Plugin) -> ProviderType:
    what, target, place = plugin.what, plugin.target, plugin.place
    if isinstance(target, CallbackProvider):
        target = target.as_type()
    if not isinstance(target, type):
        raise PluginError(f"{what!r} in {place} is no class, but a {type(target).__name__}")
    if not issubclass(target, ContextProvider):
        raise PluginError(f"{what!r} in {place} is no subclass of providers.api.provider.ContextProvider")
    config_type: object = getattr(target, "config_type", None)
    if not (isinstance(config_type, type) and issubclass(config_type, ProviderConfig)):
        raise PluginError(f"{what!r} in {place}: its config_type is no subclass of ProviderConfig")
    return ProviderType(target, _summary(target), plugin=what)


def _summary(target: type[ContextProvider]) -> str:
    """The first line of what the class says of itself, not of what it inherits."""
    text = target.__dict__.get("__doc__")
    return text.strip().partition("\n")[0] if isinstance(text, str) and text.strip() else f"{target.__name__}."


def _refuse_unsafe(folder: str) -> None:
    try:
        status = os.stat(folder)
    except OSError as error:
        raise PluginError(f"the plug-in folder {folder} cannot be used: {error.strerror}") from None
    if not stat.S_ISDIR(status.st_mode):
        raise PluginError(f"the plug-in folder {folder} is no folder")
    if os.name != "posix":
        return
    if status.st_uid not in (0, os.getuid()):
        raise PluginError(f"the plug-in folder {folder} belongs to another user")
    if status.st_mode & stat.S_IWOTH or (status.st_mode & stat.S_IWGRP and not _is_own_group(status.st_gid)):
        raise PluginError(f"other users may write to the plug-in folder {folder}; chmod go-w it")


def _is_own_group(gid: int) -> bool:
    """Whether a group is nobody's but this user's: many systems give each user one, and a umask of 002."""
    import grp
    import pwd

    try:
        user, group = pwd.getpwuid(os.getuid()), grp.getgrgid(gid)
    except KeyError:
        return False
    return gid == user.pw_gid and group.gr_name == user.pw_name and not set(group.gr_mem) - {user.pw_name}


def _refuse_foreign(type_name: str, module: ModuleType, folders: Sequence[Path]) -> None:
    """Two projects may each have a module of one name; Python holds the first, which the other must not get."""
    path = os.path.realpath(module.__file__) if module.__file__ is not None else ""
    own = [os.path.realpath(folder) for folder in folders]
    if _is_below(path, _folders) and not _is_below(path, own):
        raise PluginError(
            f"{type_name!r}: a module of that name was imported for another configuration, from {path}; rename one"
        )


def _is_below(path: str, folders: Sequence[str]) -> bool:
    return any(path.startswith(folder + os.sep) for folder in folders)


def _place(module: ModuleType) -> str:
    return module.__file__ or module.__name__


def _told(error: BaseException) -> str:
    """What went wrong and where. Of errors that Python's importer raises the text is its own, and is kept."""
    kind = type(error).__name__
    if isinstance(error, SyntaxError):
        return f"{kind} in {error.filename}, line {error.lineno}: {error.msg}"
    where = next(_frames(error), "")
    what = f"{kind}: {error.msg}" if isinstance(error, ImportError) and error.msg else kind
    return f"{what}{where}"


def _frames(error: BaseException) -> Iterator[str]:
    """Where it was raised, the innermost place that is no part of the import machinery first."""
    places: list[str] = []
    trace = error.__traceback__
    while trace is not None:
        name = trace.tb_frame.f_code.co_filename
        if not name.startswith("<frozen ") and name != __file__ and os.sep + "importlib" + os.sep not in name:
            places.append(f" in {name}, line {trace.tb_lineno}")
        trace = trace.tb_next
    yield from reversed(places)
