"""Reads the files of a configuration: bounded, regular files only, UTF-8. Says nothing of what they mean."""

import hashlib
import os
import re
import stat
import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from platformdirs import user_config_dir

from protocol.base import JsonObject
from sidecar.errors import ConfigInvalid

from .keypath import MAX_DEPTH, KeyPath, dotted
from .lines import TooDeep, key_lines, line_of

CONFIG_NAME: Final = "sidecar.toml"
MAX_CONFIG_BYTES: Final = 1024 * 1024
MAX_INSTRUCTIONS_BYTES: Final = 64 * 1024

_AT_LINE: Final = re.compile(r" \(at line (\d+), column \d+\)$")


def user_folder() -> Path:
    """Where the user's own configuration is kept, whether it exists or not."""
    return Path(user_config_dir("agent-sidecar", appauthor=False))


def user_config_file() -> Path:
    """The user's own file, whether it exists or not."""
    return user_folder() / CONFIG_NAME


def text_digest(text: str) -> str:
    """The SHA-256 of a text as these functions read it, in hexadecimal."""
    return hashlib.sha256(text.encode()).hexdigest()


def is_there(path: Path) -> bool:
    """Whether a name is taken, be it by a link that leads nowhere; what cannot be looked at counts as there."""
    try:
        path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        pass
    return True


@dataclass(frozen=True)
class ConfigFile:
    """A TOML file that was read."""

    path: Path
    data: JsonObject = field(repr=False)
    lines: dict[KeyPath, int] = field(repr=False)
    digest: str
    """The `text_digest` of what was parsed."""

    def line(self, path: KeyPath) -> int | None:
        """The line on which a key stands, as near as it is known."""
        return line_of(self.lines, path)


def read_config(path: Path) -> ConfigFile:
    """Read and parse one file.

    Raises:
        ConfigInvalid: it cannot be read, is too large, or is no TOML.
    """
    text = _read_text(path, MAX_CONFIG_BYTES)
    try:
        lines = key_lines(text)
        return ConfigFile(path, tomllib.loads(text), lines, text_digest(text))
    except tomllib.TOMLDecodeError as error:
        at = _AT_LINE.search(str(error))
        line = int(at[1]) if at else text.count("\n") + 1
        raise ConfigInvalid(f"not valid TOML: {_AT_LINE.sub('', str(error))}", file=str(path), line=line) from None
    except TooDeep as error:
        raise ConfigInvalid(f"nested deeper than {MAX_DEPTH}", file=str(path), line=error.line) from None


def read_instructions(name: str, config: ConfigFile, key: KeyPath) -> tuple[Path, str]:
    """Read an `instructions_file` of a configuration; gives its real path and its text.

    Raises:
        ConfigInvalid: it lies outside the configuration's folder, or cannot be read, or is too large.
    """
    folder = config.path.parent.resolve()
    try:
        path = (folder / name).resolve()
        if not path.is_relative_to(folder):
            raise ConfigInvalid("leads out of the folder of its configuration file")
        return path, _read_text(path, MAX_INSTRUCTIONS_BYTES)
    except (ConfigInvalid, OSError, RuntimeError) as error:
        reason = error.message if isinstance(error, ConfigInvalid) else _reason(error)
        message = f"{dotted(key)} {name!r}: {reason}"
        raise ConfigInvalid(message, file=str(config.path), line=config.line(key), key=dotted(key)) from None


def _read_text(path: Path, limit: int) -> str:
    """The text of a file, without a byte order mark; a fifo or a device is never waited for."""
    file = str(path)
    try:
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
        try:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise ConfigInvalid("cannot be read: it is no regular file", file=file)
            with open(descriptor, "rb", closefd=False) as stream:
                content = stream.read(limit + 1)
        finally:
            os.close(descriptor)
    except OSError as error:
        raise ConfigInvalid(f"cannot be read: {_reason(error)}", file=file) from None
    if len(content) > limit:
        raise ConfigInvalid(f"larger than {limit} bytes", file=file)
    try:
        return content.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise ConfigInvalid("not UTF-8", file=file, line=line) from None


def _reason(error: Exception) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or type(error).__name__
