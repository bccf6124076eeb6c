"""Forks sidecars from a process that has imported the program: each is a process of its own, minus the imports.

Run as a script by `sidecar_process.py`, with one end of a socket as its stdin. A message asks for one sidecar and
brings its stdin, stdout and stderr, and a pipe to which the process id is written at once and the exit code at the
end. It imports nothing of the tests.
"""

import contextlib
import importlib
import json
import os
import select
import signal
import socket
import sys
import traceback

PRELOADED = (
    "sidecar.app",
    "sidecar.crash_points",
    "sidecar.lsp.engine",
    "sidecar.options",
    "sidecar.stores.memory",
    "sidecar.stores.sqlite",
    "openai",
    "openai.resources.chat.completions",
    "openai.resources.models",
    "openai.resources.responses",
    "uvloop",
)
_LONGEST_REQUEST = 1 << 20


def serve() -> None:
    """Answer requests until the other end closes; the sidecars that are still there live on."""
    for module in PRELOADED:
        with contextlib.suppress(ImportError):
            importlib.import_module(module)
    requests = socket.socket(fileno=0)
    woken, wake = os.pipe()
    for descriptor in (woken, wake):
        os.set_blocking(descriptor, False)
    signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the test run's to handle
    reports: dict[int, int] = {}
    while True:
        readable, _, _ = select.select([requests, woken], [], [])
        if woken in readable:
            os.read(woken, 4096)
            _report_ended(reports)
        if requests in readable:
            body, descriptors, _, _ = socket.recv_fds(requests, _LONGEST_REQUEST, 4)
            if not body:
                return
            *streams, report = descriptors
            pid = os.fork()
            if pid == 0:
                signal.set_wakeup_fd(-1)
                requests.close()
                for descriptor in (woken, wake, report, *reports.values()):
                    os.close(descriptor)
                _become(json.loads(body), streams)
            for descriptor in streams:
                os.close(descriptor)
            reports[pid] = report
            os.write(report, b"%d\n" % pid)


def _report_ended(reports: dict[int, int]) -> None:
    with contextlib.suppress(ChildProcessError):
        while True:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                return
            report = reports.pop(pid)
            with contextlib.suppress(BrokenPipeError):
                os.write(report, b"%d\n" % os.waitstatus_to_exitcode(status))
            os.close(report)


def _become(wanted: dict[str, object], streams: list[int]) -> None:
    """Be that sidecar, from the first line of its program to its end."""
    code = 1
    try:
        for number in (signal.SIGCHLD, signal.SIGINT):
            signal.signal(number, signal.SIG_DFL if number == signal.SIGCHLD else signal.default_int_handler)
        for target, descriptor in enumerate(streams):
            os.dup2(descriptor, target)
            os.close(descriptor)
        os.environ.clear()
        os.environ.update(wanted["environment"])
        os.chdir(wanted["folder"])
        sys.argv = ["agent-sidecar", *wanted["arguments"]]
        importlib.reload(sys.modules["sidecar.crash_points"])  # it looks at the environment when it is imported
        from sidecar.__main__ import main

        main()
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 1
        sys.stdout.flush()
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)


if __name__ == "__main__":
    serve()
