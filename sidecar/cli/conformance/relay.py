"""Stands in for `agent-sidecar` while a client is examined: starts the real one, hands all on, tells what passes.

    python -m sidecar.cli.conformance.relay FOLDER calm|rough [what the client would give to agent-sidecar …]

The sidecar works in `FOLDER/work`, on a store and a configuration that are the conversation's own. What passes is told
over the socket `FOLDER/wire`, one line of the golden format each, before it is handed on: whoever reads there knows at
least as much as the client. The first line there is `{"pid": …}`. In rough weather the sidecar's messages come
otherwise than they were sent; `weather` and `cutting` say how.
"""

import asyncio
import json
import os
import signal
import socket
import sys
from pathlib import Path
from threading import Lock, Thread
from typing import Any, Final, cast

from sidecar.cli import main as run_command
from sidecar.transport.framing import FrameParser, Item, encode
from sidecar_client.types import JsonObject

from .cutting import Cutter
from .parsing import parse
from .weather import Weather

_READ_BYTES: Final = 1 << 16
_FORWARDED: Final = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
_OWN: Final = ("--store", "--config")
"""Options of the client's that have no place here."""


class Teller:
    """Tells the examiner what passes, from any thread."""

    def __init__(self, path: Path) -> None:
        """Raises `OSError` if nobody listens at `path`."""
        self._lock = Lock()
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._socket.connect(str(path))

    def tell(self, kind: str, value: Any) -> None:
        """One line; whoever asked for it has gone where nothing can be told, and then nothing matters."""
        line = json.dumps({kind: value}).encode() + b"\n"
        with self._lock:
            self._socket.sendall(line)


def main(arguments: list[str]) -> int:
    """Be the sidecar. Gives its exit code; where a signal ended it, this process ends by the same one."""
    folder, weather, given = Path(arguments[0]), arguments[1], arguments[2:]
    if given[:1] != ["serve"]:  # a client may ask for the version, or for `doctor`
        return run_command(given)
    code = asyncio.run(_serve(folder, weather, given[1:]))
    if code < 0:
        if -code in _FORWARDED:
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    return code


async def _serve(folder: Path, weather: str, given: list[str]) -> int:
    teller = Teller(folder / "wire")
    (its_stdin, to_sidecar), (from_sidecar, its_stdout) = os.pipe(), os.pipe()
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-I", "-m", "sidecar", "serve", "--store", f"sqlite:{folder / 'sessions.db'}"),
        *_without(given, _OWN),
        stdin=its_stdin,
        stdout=its_stdout,
        cwd=folder / "work",
        env=_environment(folder),
    )
    os.close(its_stdin)
    os.close(its_stdout)
    teller.tell("pid", process.pid)
    for number in _FORWARDED:
        asyncio.get_running_loop().add_signal_handler(number, process.send_signal, number)
    Thread(target=_inwards, args=(to_sidecar, teller), daemon=True).start()
    outwards = Thread(target=_outwards, args=(from_sidecar, teller, weather), daemon=True)
    outwards.start()
    code = await process.wait()
    await asyncio.to_thread(outwards.join)
    teller.tell("exit", code)
    return code


def _inwards(stdin: int, teller: Teller) -> None:
    """From the client to the sidecar: the bytes as they are."""
    parser = FrameParser()
    while data := os.read(0, _READ_BYTES):
        for item in parser.feed(data):
            teller.tell("→", _as_told(item))
        _write(stdin, data)
    for item in parser.finish():
        teller.tell("→", _as_told(item))
    teller.tell("eof", value=True)
    os.close(stdin)


def _outwards(stdout: int, teller: Teller, weather: str) -> None:
    """From the sidecar to the client, until the sidecar has nothing more to say."""
    parser, rough = FrameParser(), Weather()
    cutter = Cutter(lambda data: _write(1, data)) if weather == "rough" else None
    while data := os.read(stdout, _READ_BYTES):
        bodies = [item for item in parser.feed(data) if isinstance(item, bytes)]
        messages: list[JsonObject] = [json.loads(body) for body in bodies]
        if cutter is not None:
            messages = [each for message in messages for each in rough.around(message)]
        for message in messages:
            teller.tell("←", _bare(message))
        if cutter is None:
            _write(1, data)
        else:
            for message in messages:
                cutter.put(encode(json.dumps(message, ensure_ascii=False).encode(), parser.framing or "ndjson"))
    if cutter is not None:
        cutter.finish()


def _as_told(item: Item) -> Any:
    """A message without its `jsonrpc`; what is none, as the text that it is."""
    if not isinstance(item, bytes):
        return f"({item.reason})"
    text = item.decode(errors="replace")
    try:
        value = parse(text)
    except ValueError:
        return text
    message: JsonObject = cast("JsonObject", value) if isinstance(value, dict) else {}
    return _bare(message) if message.get("jsonrpc") == "2.0" else text


def _bare(message: JsonObject) -> JsonObject:
    return {key: value for key, value in message.items() if key != "jsonrpc"}


def _write(target: int, data: bytes) -> None:
    """Write all of it; an end that is closed wants nothing more."""
    try:
        while data:
            data = data[os.write(target, data) :]
    except BrokenPipeError:
        pass


def _without(arguments: list[str], options: tuple[str, ...]) -> list[str]:
    kept = list[str]()
    rest = iter(arguments)
    for argument in rest:
        if argument in options:
            next(rest, None)
        elif argument.partition("=")[0] not in options:
            kept.append(argument)
    return kept


def _environment(folder: Path) -> dict[str, str]:
    """Nothing of a user's: no configuration, no trust, no endpoint."""
    kept = {
        name: value for name, value in os.environ.items() if not name.startswith(("OPENAI_", "AGENT_SIDECAR", "PYTHON"))
    }
    home = str(folder / "home")
    return {**kept, **dict.fromkeys(("HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME"), home)}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
