"""Loads the configuration: every layer checked by itself, then merged, then checked as a whole. Starts nothing."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from pydantic_core import to_json

from protocol.base import JsonObject
from sidecar.errors import CapabilityRequired, ConfigInvalid

from .endpoints import BUILT_IN
from .initialization import ORIGIN as INITIALIZATION
from .initialization import admit
from .issues import Issue, issues_of
from .keypath import KeyPath, dotted
from .layers import Layer, Place, layers, resolved
from .merge import Merged, origin_in
from .model import Config
from .references import dangling_references
from .unavailable import unavailable_keys

DEFAULT: Final = "default"

_MOST_TOLD: Final = 20


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

    def origin(self, path: KeyPath) -> str:
        """Where a value came from: a file, `default`, `environment`, `flag` or `initializationOptions…`."""
        return origin_in(self.origins, path) or DEFAULT


def load(
    *,
    config_file: Path | None,
    environ: Mapping[str, str],
    store: str | None,
    log_level: str | None,
    initialization: JsonObject | None = None,
) -> Loaded:
    """The configuration of this process.

    Args:
        config_file: `--config FILE`; must exist.
        environ: The environment of the process.
        store: `--store`, as `store.path`.
        log_level: `--log-level`, as `logging.level`.
        initialization: `initializationOptions.sidecar.config`, of which little counts.

    Raises:
        ConfigInvalid: something is wrong; the message has a line for each thing, with file, line and key.
        CapabilityRequired: a key asks for a feature that this build does not have.
    """
    merged = Merged()
    built_in = {name: endpoint.model_dump(by_alias=False, exclude_unset=True) for name, endpoint in BUILT_IN.items()}
    merged.add({"endpoints": built_in}, DEFAULT)
    files: dict[Path, None] = {}
    by_origin: dict[str, Layer] = {}
    for layer in layers(config_file, environ, store, log_level):
        _check(layer)
        data, read = resolved(layer)
        merged.add(data, layer.origin)
        files |= dict.fromkeys(read)
        by_origin[layer.origin] = layer
    config = _checked(merged, by_origin)
    warnings: tuple[str, ...] = ()
    if initialization is not None:
        admitted, warnings = admit(initialization, {"default", *config.agents})
        merged.add(admitted, INITIALIZATION)
        config = _checked(merged, by_origin)
    return Loaded(config, warnings, tuple(files), merged.origins)


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
    config = Config.model_validate_json(to_json(merged.data), strict=True, by_alias=False, by_name=True)
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
