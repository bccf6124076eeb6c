"""The command line of `agent-sidecar serve`. Read by hand: argparse costs a third of the time to the first answer."""

from typing import Final, Literal, NamedTuple, cast

USAGE: Final = """\
usage: agent-sidecar serve [options]

Speak JSON-RPC 2.0 on stdin and stdout until the client is done.

  --framing auto|header|ndjson   how messages are cut (default: auto, by the first byte)
  --on-eof finish|cancel         what the end of stdin means (default: finish for NDJSON, cancel for headers)
  --eof-grace SECONDS            how long `finish` may take (default: 600)
  --config FILE                  a configuration file, over the user's and the project's
  --store SPEC                   sqlite:PATH or memory
  --log-level LEVEL              debug, info, warning (default) or error
  --log-file FILE                append the log to a file instead of stderr; its folder must exist
  --record FILE                  write down every message, secrets removed; for bug reports and tests
  --help                         show this text
"""


class UsageError(Exception):
    """A flag that is unknown, lacks its value, or has one that cannot be."""


class ServeOptions(NamedTuple):
    """What `serve` was told. None means: not said, so that the configuration decides."""

    framing: Literal["auto", "header", "ndjson"] = "auto"
    on_eof: Literal["finish", "cancel"] | None = None
    eof_grace: float = 600.0
    config: str | None = None
    store: str | None = None
    log_level: Literal["debug", "info", "warning", "error"] | None = None
    log_file: str | None = None
    record: str | None = None
    client_process_id: int | None = None


_CHOICES: Final = {
    "framing": ("auto", "header", "ndjson"),
    "on_eof": ("finish", "cancel"),
    "log_level": ("debug", "info", "warning", "error"),
}
_TEXTS: Final = ("config", "store", "log_file", "record")


def parse(arguments: list[str]) -> ServeOptions:
    """Read the flags; `--flag value` and `--flag=value` are the same.

    `--stdio` and `--clientProcessId=N` are taken as well: language clients append them.

    Raises:
        UsageError: saying what to write instead.
    """
    values: dict[str, object] = {}
    rest = iter(arguments)
    for argument in rest:
        flag, equals, value = argument.partition("=")
        if argument == "--stdio":
            continue
        name = "client_process_id" if flag == "--clientProcessId" else flag.removeprefix("--").replace("-", "_")
        if not flag.startswith("--") or name not in ServeOptions._fields:
            raise UsageError(f"unknown argument {flag!r}; see agent-sidecar serve --help")
        given = value if equals else next(rest, None)
        if not given:
            raise UsageError(f"{flag} needs a value")
        values[name] = _convert(flag, name, given)
    return ServeOptions()._replace(**cast("dict[str, str]", values))


def _convert(flag: str, name: str, value: str) -> object:
    if name in _TEXTS:
        return value
    if name in _CHOICES:
        if value not in _CHOICES[name]:
            raise UsageError(f"{flag} is one of {', '.join(_CHOICES[name])}; got {value!r}")
        return value
    kind = float if name == "eof_grace" else int
    try:
        number = kind(value)
    except ValueError:
        raise UsageError(f"{flag} needs a number; got {value!r}") from None
    if not 0 <= number <= 2**31:  # also refuses NaN
        raise UsageError(f"{flag} is out of range; got {value!r}")
    return number
