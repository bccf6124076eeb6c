"""The child process that runs a GGUF model behind llama.cpp's HTTP server on loopback. A script: imported by nobody.

It reads its settings as one JSON line on stdin, writes one JSON line to stdout when it is ready (`url`, or `error`),
and ends when stdin ends: so it cannot outlive its parent. It needs nothing of ours, only the runtime.
"""

import ctypes
import importlib
import json
import os
import signal
import sys
from typing import Any, Final, TextIO

PR_SET_PDEATHSIG: Final = 1


def main() -> None:
    """Serve until stdin ends."""
    report = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # native code prints where it likes
    _die_with_parent()
    settings: dict[str, Any] = json.loads(sys.stdin.readline())
    try:
        server = _serve(settings)
        _tell(report, url=server.listening_address)
    except Exception as error:
        _tell(report, error=type(error).__name__)
        os._exit(1)
    while sys.stdin.read(4096):
        pass
    os._exit(0)


def _serve(settings: dict[str, Any]) -> Any:
    runtime: Any = importlib.import_module("xllamacpp")
    params = runtime.CommonParams()
    params.model.path = settings["path"]
    params.model_alias = {settings["alias"]}
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    params.api_keys = [settings["key"]]
    params.n_ctx = settings["context"]
    params.n_parallel = 1
    params.cache_ram_mib = settings["cache_mib"]
    params.cpuparams.n_threads = settings["threads"]
    params.cpuparams_batch.n_threads = settings["threads"]
    params.ui = False
    params.endpoint_slots = False
    params.offline = True
    params.verbosity = -1
    return runtime.Server(params)


def _tell(report: TextIO, **line: str) -> None:
    with report:
        report.write(json.dumps(line) + "\n")


def _die_with_parent() -> None:
    """Where the kernel can: a parent that is killed while this process loads closes no pipe that it reads yet."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, int(signal.SIGKILL))


if __name__ == "__main__":
    main()
