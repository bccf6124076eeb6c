"""The sources of configuration, one layer each: files, environment, flags. Merging them is another file's."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from os.path import expanduser
from pathlib import Path
from typing import Final, NamedTuple

from protocol.base import JsonObject
from sidecar.errors import ConfigInvalid

from .files import ConfigFile, is_there, read_config, read_instructions, text_digest, user_config_file
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


def file_layer(path: Path) -> Layer:
    """A file as a layer.

    Raises:
        ConfigInvalid: it cannot be read or is no TOML.
    """
    file = read_config(path)
    return Layer(str(path), file.data, file)


def user_layers() -> Iterator[Layer]:
    """The user's own file, if there is one. Raises as `file_layer` does."""
    path = user_config_file()
    if is_there(path):
        yield file_layer(path)


def process_layers(
    config_file: Path | None, environ: Mapping[str, str], store: str | None, log_level: str | None
) -> Iterator[Layer]:
    """What this process was started with, later ones winning: `--config`, environment, flags.

    Raises:
        ConfigInvalid: the file cannot be read or is no TOML.
    """
    if config_file is not None:
        yield file_layer(config_file)
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


def resolved(layer: Layer) -> tuple[JsonObject, dict[Path, str]]:
    """A valid layer's data, paths absolute and `instructions_file`s read, and the files it was read from.

    Each file comes with the digest of the text that was read.

    Raises:
        ConfigInvalid: an `instructions_file` is refused.
    """
    data = dict(layer.data)
    folder = layer.file.path.parent if layer.file else Path()
    store = lookup(data, ("store", "path"))
    if isinstance(store, str) and store.startswith("sqlite:"):
        data["store"] = {**data["store"], "path": f"sqlite:{absolute(store.removeprefix('sqlite:'), folder)}"}
    log_file = lookup(data, ("logging", "file"))
    if isinstance(log_file, str) and log_file:
        data["logging"] = {**data["logging"], "file": absolute(log_file, folder)}
    if layer.file is None:
        return data, {}
    if "plugins" in data:
        data["plugins"] = [absolute(plugin_folder, folder) for plugin_folder in data["plugins"]]
    read = {layer.file.path: layer.file.digest}
    agents = as_table(data.get("agents"))
    if agents is not None:
        data["agents"] = {name: _with_instructions(name, agent, layer.file, read) for name, agent in agents.items()}
    return data, read


def _with_instructions(name: str, agent: JsonObject, file: ConfigFile, read: dict[Path, str]) -> JsonObject:
    if "instructions_file" not in agent:
        return agent
    key: KeyPath = ("agents", name, "instructions_file")
    if "instructions" in agent:
        message = f"{dotted(key)}: give either instructions or instructions_file"
        raise ConfigInvalid(message, file=str(file.path), line=file.line(key), key=dotted(key))
    path, text = read_instructions(agent["instructions_file"], file, key)
    read[path] = text_digest(text)
    return {key: value for key, value in agent.items() if key != "instructions_file"} | {"instructions": text}


def absolute(path: str, folder: Path) -> str:
    """A path that a file in `folder` names."""
    return str((folder / expanduser(path)).absolute())
