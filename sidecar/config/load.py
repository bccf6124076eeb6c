"""Loads the configuration: every layer checked by itself, then merged, then checked as a whole. Starts nothing."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from pydantic_core import to_json

from protocol.base import JsonObject
from sidecar.errors import CapabilityRequired, ConfigInvalid

from .endpoints import BUILT_IN
from .field_names import by_field_name
from .initialization import ORIGIN as INITIALIZATION
from .initialization import admit
from .issues import Issue, issues_of
from .keypath import KeyPath, as_table, dotted
from .layers import Layer, Place, process_layers, resolved, user_layers
from .merge import Merged, origin_in
from .model import Config
from .project import Project, find_project, read_project
from .references import dangling_references
from .scope import connection_keys
from .unavailable import unavailable_keys
from .untrusted import admitted, named, shortened

DEFAULT: Final = "default"

_MOST_TOLD: Final = 20
_LONGEST_WARNING: Final = 2_000


@dataclass(frozen=True, slots=True)
class Loaded:
    """The merged configuration and where it came from."""

    config: Config = field(repr=False)
    """What holds."""
    warnings: tuple[str, ...]
    """What was ignored, and why, for a person."""
    files: tuple[Path, ...]
    """Every file that was read, `instructions_file`s included, in the order of reading."""
    origins: Mapping[KeyPath, str] = field(repr=False)
    """Where each value that was set came from; `origin` is the way to ask."""
    plugins: tuple[Path, ...] = ()
    """The plug-in folders of every layer: where a later list replaces an earlier one, agents of both may be left."""

    def origin(self, path: KeyPath) -> str:
        """Where a value came from: a file, `default`, `environment`, `flag` or `initializationOptions…`."""
        return origin_in(self.origins, path) or DEFAULT


@dataclass(frozen=True, slots=True)
class _Read:
    """A layer that is right by itself, its paths absolute and its instructions read."""

    layer: Layer
    data: JsonObject
    files: Mapping[Path, str]


@dataclass(frozen=True, slots=True)
class Sources:
    """Everything that configures a process, whatever folder a session works in. Read once."""

    users: tuple[_Read, ...]
    started_with: tuple[_Read, ...]
    initialization: JsonObject | None
    config_file: Path | None
    """`--config`."""


def load(
    *,
    config_file: Path | None,
    environ: Mapping[str, str],
    store: str | None,
    log_level: str | None,
    initialization: JsonObject | None = None,
    folder: Path | None = None,
) -> Loaded:
    """The configuration of this process.

    Args:
        config_file: `--config FILE`; must exist.
        environ: The environment of the process.
        store: `--store`, as `store.path`.
        log_level: `--log-level`, as `logging.level`.
        initialization: `initializationOptions.sidecar.config`, of which little counts.
        folder: Where to look for the project's file; none is looked for without it.

    Raises:
        ConfigInvalid: something is wrong; the message has a line for each thing, with file, line and key.
        CapabilityRequired: a key asks for a feature that this build does not have.
    """
    sources = read_sources(
        config_file=config_file, environ=environ, store=store, log_level=log_level, initialization=initialization
    )
    path = find_project(folder, beside=config_file) if folder is not None else None
    return combine(sources, read_project(path) if path is not None else None)


def read_sources(
    *,
    config_file: Path | None,
    environ: Mapping[str, str],
    store: str | None,
    log_level: str | None,
    initialization: JsonObject | None = None,
) -> Sources:
    """Read everything but the project's file. Takes and raises what `load` does."""
    return Sources(
        tuple(_read(layer) for layer in user_layers()),
        tuple(_read(layer) for layer in process_layers(config_file, environ, store, log_level)),
        initialization,
        config_file,
    )


def combine(sources: Sources, project: Project | None = None) -> Loaded:
    """What the sources and a project's file come to. Nothing is read any more, but for a trusted file's instructions.

    A file that is not trusted never makes this fail: what is wrong with it, and what does not count, are warnings.

    Raises:
        ConfigInvalid: something is wrong.
        CapabilityRequired: a trusted project asks for a feature that this build does not have.
    """
    if project is None:
        return _combined(sources, None, ())
    if project.trust == "trusted" and project.layer is not None:
        read = _read_trusted(project.layer, project)
        return _combined(sources, read, _out_of_place(read))
    try:
        read, warnings = _read_untrusted(sources, project)
        return _combined(sources, read, warnings)
    except ConfigInvalid as error:
        why = shortened("; ".join(error.message.splitlines()), _LONGEST_WARNING)
        return _combined(sources, None, (f"{why}; nothing of this project's file counts",))


def _combined(sources: Sources, project: _Read | None, warnings: tuple[str, ...]) -> Loaded:
    merged = Merged()
    built_in = {name: endpoint.model_dump(by_alias=False, exclude_unset=True) for name, endpoint in BUILT_IN.items()}
    merged.add({"endpoints": built_in}, DEFAULT)
    reads = (*sources.users, *((project,) if project is not None else ()), *sources.started_with)
    for read in reads:
        merged.add(read.data, read.layer.origin)
    by_origin = {read.layer.origin: read.layer for read in reads}
    config = _checked(merged, by_origin)
    if sources.initialization is not None:
        counting, more = admit(sources.initialization, {"default", *config.agents})
        warnings += more
        merged.add(counting, INITIALIZATION)
        config = _checked(merged, by_origin)
    files = dict.fromkeys(path for read in reads for path in read.files)
    plugins = dict.fromkeys(Path(folder) for read in reads for folder in read.data.get("plugins", ()))
    return Loaded(config, warnings, tuple(files), merged.origins, tuple(plugins))


def _read(layer: Layer) -> _Read:
    _check(layer)
    return _Read(layer, *resolved(layer))


def _read_trusted(layer: Layer, project: Project) -> _Read:
    read = _read(layer)
    for path, digest in read.files.items():
        if path != project.path and project.digests.get(str(path)) != digest:
            raise ConfigInvalid("it changed while it was read; try again", file=str(path))
    return read


def _read_untrusted(sources: Sources, project: Project) -> tuple[_Read, tuple[str, ...]]:
    """What counts of a file that nobody vouches for, and what to say of the rest."""
    if project.layer is None:
        raise project.error or ConfigInvalid("cannot be read", file=str(project.path))
    counting, ignored = admitted(project.layer.data, {"default", *_agents(sources)})
    layer = Layer(project.layer.origin, counting, project.layer.file)
    _check(layer)
    warnings = (
        f"{project.path}: ignored {named(ignored)}; {project.how_to_trust}. Without trust only description, "
        "instructions and options of agents that no file of yours defines count",
    )
    return _Read(layer, counting, {project.path: ""}), warnings if ignored else ()


def _out_of_place(read: _Read) -> tuple[str, ...]:
    keys = connection_keys(read.data)
    own = "counts only in the user's own file and in --config"
    return (f"{read.layer.origin}: ignored {named(keys)}, which {own}",) if keys else ()


def _agents(sources: Sources) -> Iterable[str]:
    for read in (*sources.users, *sources.started_with):
        yield from as_table(read.data.get("agents")) or {}


def _check(layer: Layer) -> None:
    """Refuse what is wrong with one layer, whatever the others say."""
    lacking = list(unavailable_keys(layer.data))
    issues = issues_of(layer.data, partial=True)
    _refuse([issue for issue in issues if not any(_within(issue.path, path) for path, _ in lacking)], layer.place)
    for path, feature in lacking:
        raise CapabilityRequired(feature, str(layer.place(path)))


def _checked(merged: Merged, by_origin: Mapping[str, Layer]) -> Config:
    """The configuration of all layers together, unless something is wrong with it."""

    def place(path: KeyPath) -> Place:
        for length in range(len(path), 0, -1):
            layer = by_origin.get(origin_in(merged.origins, path[:length]) or "")
            if layer is not None:
                return layer.place(path)
        return Place(None, None, dotted(path))

    _refuse(issues_of(merged.data), place)
    config = Config.model_validate_json(to_json(by_field_name(merged.data)), strict=True, by_alias=False, by_name=True)
    _refuse(list(dangling_references(config)), place)
    return config


def _refuse(issues: Sequence[Issue], place: Callable[[KeyPath], Place]) -> None:
    """Raise all issues as one error, in the order of their lines."""
    if not issues:
        return
    placed = sorted(((place(path), message) for path, message in issues), key=lambda found: found[0].line or 0)
    more = [f"and {len(placed) - _MOST_TOLD} more"] if len(placed) > _MOST_TOLD else []
    (first, message), *rest = placed = placed[:_MOST_TOLD]
    lines = [f"{first.key}: {message}", *(f"{where}: {message}" for where, message in rest), *more]
    errors = [{**where._asdict(), "message": message} for where, message in placed] if rest else None
    raise ConfigInvalid("\n".join(lines), file=first.file, line=first.line, key=first.key, errors=errors)


def _within(path: KeyPath, outer: KeyPath) -> bool:
    return path[: len(outer)] == outer
