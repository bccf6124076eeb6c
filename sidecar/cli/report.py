"""What `doctor --bundle` tells a maintainer: its parts by name, every text without secrets. It writes no file.

No prompt, no message, no memory is in it, and no value of an environment variable.
"""

import json
import os
import platform
import re
import sqlite3
import stat
import sys
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, Final, get_args

from protocol.version import PROTOCOL_VERSIONS, VERSION
from providers.plugins import Group, installed
from sidecar.config.known_secrets import REMOVED, Secrets, secrets_of
from sidecar.config.load import Loaded
from sidecar.config.model import Config
from sidecar.config.show import report as configuration_summary
from sidecar.config.show import show
from sidecar.errors import SidecarError

from .blinded import blinded
from .checks import Check, database, library_versions
from .command import Arguments
from .config import load_config

LOG_BYTES: Final = 256 * 1024
"""So much of the end of the log file is taken."""
MOST_FILES: Final = 200
"""So many names of a plug-in folder are listed."""
COUNT_S: Final = 5.0
"""Counting the rows of one store gives up after this."""

_PREFIXES: Final = ("AGENT_SIDECAR_", "OPENAI_", "PYTHON", "XDG_", "SSL_", "REQUESTS_", "LC_")
_VARIABLES: Final = frozenset(
    {
        "HOME",
        "HTTP_PROXY",
        "HTTPS_PROXY",
        "ALL_PROXY",
        "NO_PROXY",
        "LANG",
        "TERM",
        "TMPDIR",
        "VIRTUAL_ENV",
        "CONDA_PREFIX",
    }
)
_URL_USER: Final = re.compile(r"(://)[^/\s\"'@?#]+@")
_URL_QUERY: Final = re.compile(r"(://[^\s\"'?#]*)\?[^\s\"'#)\]]*")
_STEPS: Final = 100_000
_COUNTED: Final = {
    "sessions": "SELECT count(*) FROM sessions",
    "sessions in use": "SELECT count(*) FROM sessions WHERE owner_id IS NOT NULL",
    "events": "SELECT count(*) FROM events",
    "messages": "SELECT count(*) FROM messages",
    "state": "SELECT count(*) FROM state",
    "runs": "SELECT count(*) FROM runs",
    "unfinished runs": "SELECT count(*) FROM runs WHERE ended = 0",
    "calls": "SELECT count(*) FROM calls",
    "requests": "SELECT count(*) FROM requests",
    "memory collections": "SELECT count(*) FROM memory_collections",
    "memories": "SELECT count(*) FROM memories",
}
"""Only counted: no row is read."""

ABOUT: Final = """\
A report of `agent-sidecar doctor --bundle`, for a bug report. Look through it before you send it.

{contents}

There are no prompts, messages, memories or keys in it, and of environment variables the names only. Values that were
known or looked like secrets stand as <secret>, your home folder as ~. Names of agents, models, endpoints, tools,
folders and files are in it as they are.
"""

CONTENTS: Final = {
    "doctor.json": "what `agent-sidecar doctor` found",
    "versions.json": "versions of the sidecar, Python, the platform and libraries",
    "configuration.toml": "what holds, limits included, each value with the file that it came from; texts as lengths",
    "environment.json": "names of the environment variables that matter and are set",
    "store.json": "schema, sizes and row counts of the store",
    "plugins.json": "names of plug-ins and of the files in their folders",
    "log.txt": f"the last {LOG_BYTES // 1024} KiB of the log file",
}
"""Part → what is in it."""


def report_parts(arguments: Arguments, checks: Sequence[Check], environ: Mapping[str, str]) -> dict[str, str]:
    """File name → text, `README.txt` first.

    Args:
        arguments: The options that a server would be started with.
        checks: What `doctor` found.
        environ: The environment.
    """
    loaded, problem = _loaded(arguments)
    config = loaded.config if loaded is not None else Config()
    secrets = Secrets(secrets_of(config, environ))
    parts = {
        "doctor.json": _json([check._asdict() for check in checks]),
        "versions.json": _json(_versions()),
        "configuration.toml": _configuration(loaded, problem),
        "environment.json": _json(_variables(config, environ)),
        "store.json": _json(_store(arguments.store or config.store.path or "sqlite")),
        "plugins.json": _json(_plugins(loaded)),
        "log.txt": _log(arguments.log_file or config.logging.file),
    }
    kept = {name: _shareable(text, secrets) for name, text in parts.items() if text}
    contents = "\n".join(f"{name:<20} {CONTENTS[name]}" for name in kept)
    return {"README.txt": ABOUT.format(contents=contents), **kept}


def _shareable(text: str, secrets: Secrets) -> str:
    """A text without secrets, without what URLs may carry, and without the name of the home folder."""
    lines = (_URL_QUERY.sub(rf"\1?{REMOVED}", _URL_USER.sub(rf"\1{REMOVED}@", line)) for line in text.splitlines())
    text = secrets.clean("\n".join(lines)) + "\n"
    home = str(Path.home())
    return re.sub(rf"{re.escape(home)}(?![\w.-])", "~", text) if len(home) > 1 else text


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, indent=1) if value else ""


def _loaded(arguments: Arguments) -> tuple[Loaded | None, str]:
    try:
        return load_config(arguments), ""
    except SidecarError as error:
        return None, error.message


def _versions() -> dict[str, Any]:
    return {
        "agent-sidecar": VERSION,
        "protocol": list(PROTOCOL_VERSIONS),
        "python": f"{platform.python_implementation()} {sys.version}",
        "platform": platform.platform(),
        "machine": platform.machine(),
        "processors": os.cpu_count(),
        "sqlite": sqlite3.sqlite_version,
        "libraries": library_versions(),
    }


def _configuration(loaded: Loaded | None, problem: str) -> str:
    """As `config show` prints it, below what `config check` says."""
    if loaded is None:
        return "\n".join(f"# {line}" for line in problem.splitlines())
    summary = "\n".join(f"# {line}" for line in configuration_summary(loaded).splitlines())
    return f"{summary}\n\n{show(blinded(loaded))}"


def _variables(config: Config, environ: Mapping[str, str]) -> list[str]:
    keys = {endpoint.api_key_env for endpoint in config.endpoints.values()}
    return sorted(
        name
        for name, value in environ.items()
        if value and (name.upper().startswith(_PREFIXES) or name.upper() in _VARIABLES or name in keys)
    )


def _store(spec: str) -> dict[str, Any]:
    """What is known of a store from outside; of a damaged one, why not more."""
    path = database(spec)
    if path is None:
        return {"kind": spec}
    sizes = {end or "file": size for end in ("", "-wal", "-shm") if (size := _size(path.with_name(path.name + end)))}
    found: dict[str, Any] = {"path": str(path), "bytes": sizes}
    if not sizes:
        return found
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, timeout=1.0)) as connection:
            return found | _statistics(connection)
    except sqlite3.Error as error:
        return found | {"problem": str(error)}


def _statistics(connection: sqlite3.Connection) -> dict[str, Any]:
    steps = iter(range(int(COUNT_S * 100)))
    connection.set_progress_handler(lambda: next(steps, None) is None, _STEPS)
    pages = {name: connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("page_count", "freelist_count")}
    schema = connection.execute("SELECT max(version) FROM schema_migrations").fetchone()[0]
    return {"schema": schema, "pages": pages, "rows": {name: _count(connection, sql) for name, sql in _COUNTED.items()}}


def _count(connection: sqlite3.Connection, sql: str) -> int | None:
    """Rows of one table; None where there is no such table, or counting takes too long."""
    try:
        count: int = connection.execute(sql).fetchone()[0]
    except sqlite3.OperationalError:
        return None
    return count


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _plugins(loaded: Loaded | None) -> dict[str, Any]:
    folders = loaded.plugins if loaded is not None else ()
    return {
        "installed": {group: sorted(found) for group in get_args(Group) if (found := installed(group))},
        "folders": {str(folder): _names(folder) for folder in folders},
    }


def _names(folder: Path) -> list[str]:
    found = sorted(str(path.relative_to(folder)) for path in folder.rglob("*.py"))
    return found[:MOST_FILES]


def _log(file: str) -> str:
    """The end of the log, from the beginning of a line on."""
    if not file:
        return ""
    try:
        descriptor = os.open(Path(file).expanduser(), os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
        with open(descriptor, "rb") as stream:
            found = os.fstat(descriptor)
            if not stat.S_ISREG(found.st_mode):
                return "(it is no regular file)"
            stream.seek(max(0, found.st_size - LOG_BYTES))
            text = stream.read(LOG_BYTES).decode(errors="replace")
    except OSError as error:
        return f"(it cannot be read: {error.strerror})"
    return text.partition("\n")[2] if found.st_size > LOG_BYTES else text
