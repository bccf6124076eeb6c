"""The sources of configuration, one layer each: files, environment, flags. Merging them is another file's."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from os.path import expanduser
from pathlib import Path
from typing import Final, NamedTuple

from protocol.base import JsonObject
from sidecar.errors import ConfigInvalid

from .files import ConfigFile, is_there, read_config, read_instructions, user_config_file
from .keypath import KeyPath, as_table, dotted, lookup

STORE_VARIABLE: Final = "AGENT_SIDECAR_STORE"
LOG_VARIABLE: Final = "AGENT_SIDECAR_LOG"

ENVIRONMENT: Final = "environment"
FLAG: Final = "flag"


class Place(NamedTuple):
    """Where a person finds a key."""

    file: str | None
    line: int | None
    key: str

    def __str__(self) -> str:
        return ":".join([str(part) for part in (self.file, self.line) if part is not None] + [f" {self.key}"]).strip()


@dataclass(frozen=True, slots=True)
class Layer:
    """What one source says."""

    origin: str
    data: JsonObject
    file: ConfigFile | None = None
    names: Mapping[KeyPath, str] = field(default_factory=dict[KeyPath, str])
    """What a key is called where it was set, if not by its own name."""

    def place(self, path: KeyPath) -> Place:
        """Where a key of this layer stands."""
        if self.file is None:
            return Place(None, None, self.names.get(path) or dotted(path))
        return Place(str(self.file.path), self.file.line(path), dotted(path))


def layers(
    config_file: Path | None, environ: Mapping[str, str], store: str | None, log_level: str | None
) -> Iterator[Layer]:
    """The sources that exist, in the order in which later ones win. Each is read when it is asked for.

    Raises:
        ConfigInvalid: a file cannot be read or is no TOML.
    """
    user_file = user_config_file()
    for path in (user_file if is_there(user_file) else None, config_file):
        if path is not None:
            file = read_config(path)
            yield Layer(str(path), file.data, file)
    yield _settings(ENVIRONMENT, STORE_VARIABLE, environ.get(STORE_VARIABLE), LOG_VARIABLE, environ.get(LOG_VARIABLE))
    yield _settings(FLAG, "--store", store, "--log-level", log_level)


def _settings(origin: str, store_name: str, store: str | None, log_name: str, log_level: str | None) -> Layer:
    """The two values that can be set outside of files; an empty one counts as not set."""
    data: JsonObject = {}
    if store:
        data["store"] = {"path": store}
    if log_level:
        data["logging"] = {"level": log_level.lower()}
    return Layer(origin, data, names={("store", "path"): store_name, ("logging", "level"): log_name})


def resolved(layer: Layer) -> tuple[JsonObject, list[Path]]:
    """A valid layer's data, paths absolute and `instructions_file`s read, and the files it was read from.

    Raises:
        ConfigInvalid: an `instructions_file` is refused.
    """
    data = dict(layer.data)
    folder = layer.file.path.parent if layer.file else Path()
    store = lookup(data, ("store", "path"))
    if isinstance(store, str) and store.startswith("sqlite:"):
        data["store"] = {**data["store"], "path": f"sqlite:{_absolute(store.removeprefix('sqlite:'), folder)}"}
    log_file = lookup(data, ("logging", "file"))
    if isinstance(log_file, str) and log_file:
        data["logging"] = {**data["logging"], "file": _absolute(log_file, folder)}
    if layer.file is None:
        return data, []
    read = [layer.file.path]
    agents = as_table(data.get("agents"))
    if agents is not None:
        data["agents"] = {name: _with_instructions(name, agent, layer.file, read) for name, agent in agents.items()}
    return data, read


def _with_instructions(name: str, agent: JsonObject, file: ConfigFile, read: list[Path]) -> JsonObject:
    if "instructions_file" not in agent:
        return agent
    key: KeyPath = ("agents", name, "instructions_file")
    if "instructions" in agent:
        message = f"{dotted(key)}: give either instructions or instructions_file"
        raise ConfigInvalid(message, file=str(file.path), line=file.line(key), key=dotted(key))
    path, text = read_instructions(agent["instructions_file"], file, key)
    read.append(path)
    return {key: value for key, value in agent.items() if key != "instructions_file"} | {"instructions": text}


def _absolute(path: str, folder: Path) -> str:
    return str((folder / expanduser(path)).absolute())
