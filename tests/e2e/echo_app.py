"""A stand-in for `sidecar.app` that echoes every message: the process and its pipes, without the program.

Run as the command itself (`python echo_app.py serve …`): it puts itself in the place of `sidecar.app`, then calls
the real `main`.
"""

import asyncio
import os
import subprocess
import sys
import time
import types
from typing import Any

IMPORT_SECONDS = float(os.environ.get("ECHO_IMPORT_SECONDS", "0"))


class Echo:
    """Sends back what it receives; `{"do": …}` makes it misbehave first."""

    def __init__(self, connection: Any) -> None:
        self.connection = connection
        self.ended: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    def on_message(self, body: bytes) -> None:
        if b'"do":"print"' in body:
            for write, noise in ((print, "noise from print"), (sys.stdout.write, "noise without newline")):
                write(noise)
            os.write(1, b"noise from fd 1\n")
            subprocess.run(["sh", "-c", "echo noise from a child; cat"], check=True)
            os.write(2, b"read %d bytes of stdin\n" % len(os.read(0, 10)))
        if b'"do":"hang"' in body:
            self.connection.send(b'"hanging"')
            asyncio.get_running_loop().call_later(0.05, time.sleep, 60)
            return
        self.connection.send(body)

    def on_fault(self, fault: Any) -> None:
        self.connection.send(f'{{"fault":"{fault.kind}"}}'.encode())

    def on_eof(self) -> None:
        self.end(0)

    def on_gone(self, why: str) -> None:
        sys.stderr.write(f"gone: {why}\n")
        self.end(3)

    def end(self, code: int) -> None:
        if not self.ended.done():
            self.ended.set_result(code)


def serve(options: Any, start: Any) -> int:
    import json

    import uvloop

    from sidecar.handshake import initialize_result
    from sidecar.transport import parent, signals
    from sidecar.transport.connection import Connection

    async def main() -> int:
        connection = Connection(
            start.inbound, start.outbound, framing=start.framing or options.framing, initial=start.unread
        )
        echo = Echo(connection)

        def on_message(body: bytes) -> None:
            if b'"method":"initialize"' in body:  # the full path
                request = json.loads(body)
                result = initialize_result(request.get("params") or {}, start.instance_id)
                response = {"jsonrpc": "2.0", "id": request["id"], "result": result}
                connection.send(json.dumps(response, ensure_ascii=False, separators=(",", ":")).encode())
            elif b'"do":"answered"' in body:
                connection.send(json.dumps(start.answered).encode())
            else:
                Echo.on_message(echo, body)

        echo.on_message = on_message
        signals.install(lambda number: echo.end(128 + number))
        watch = parent.ParentWatch(echo.on_gone)
        if os.environ.get("ECHO_WATCH_PARENT"):
            watch.watch_parent()
        await connection.start(echo)
        code = await echo.ended
        await connection.flush(5)
        await connection.aclose()
        return code

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(main())


class _SlowImport:
    """Finds `sidecar.app` after a while, in this module."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        from importlib.machinery import ModuleSpec

        return ModuleSpec(name, self) if name == "sidecar.app" else None

    def create_module(self, spec: Any) -> types.ModuleType:
        del spec
        if IMPORT_SECONDS:
            os.write(2, b"importing\n")
            time.sleep(IMPORT_SECONDS)
        return types.ModuleType("sidecar.app")

    def exec_module(self, module: types.ModuleType) -> None:
        module.serve = serve


if __name__ == "__main__":
    sys.meta_path.insert(0, _SlowImport())
    from sidecar.__main__ import main

    main()
