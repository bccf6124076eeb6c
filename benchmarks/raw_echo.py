"""The baseline: the least that a framed server on uvloop can do over pipes. It parses no JSON and knows no method.

A body comes back as it is. The body `blast N BODY` brings back N frames of BODY, framed one by one.
"""

import asyncio
import os
import re
from typing import Final

import uvloop

BLAST: Final = b"blast %d %b"
_BLAST: Final = re.compile(rb"blast ([0-9]+) ", re.DOTALL)
_HEADER: Final = re.compile(rb"Content-Length: ([0-9]+)\r\n\r\n")


def frame(body: bytes) -> bytes:
    """A body with its header."""
    return b"Content-Length: %d\r\n\r\n%b" % (len(body), body)


class _Output(asyncio.BaseProtocol):
    def __init__(self) -> None:
        self.room = asyncio.Event()
        self.room.set()

    def pause_writing(self) -> None:
        self.room.clear()

    def resume_writing(self) -> None:
        self.room.set()


class _Echo(asyncio.Protocol):
    def __init__(self, transport: asyncio.WriteTransport, output: _Output, ended: asyncio.Event) -> None:
        self._transport = transport
        self._output = output
        self._ended = ended
        self._rest = b""
        self._blasts: set[asyncio.Task[None]] = set()

    def data_received(self, data: bytes) -> None:
        data = self._rest + data
        position = 0
        while header := _HEADER.match(data, position):
            begin, end = header.end(), header.end() + int(header[1])
            if end > len(data):
                break
            self._take(data[begin:end])
            position = end
        self._rest = data[position:]

    def connection_lost(self, exc: Exception | None) -> None:
        del exc
        self._ended.set()

    def _take(self, body: bytes) -> None:
        blast = _BLAST.match(body)
        if blast is None:
            self._transport.write(frame(body))
        else:
            task = asyncio.create_task(self._blast(int(blast[1]), body[blast.end() :]))
            self._blasts.add(task)
            task.add_done_callback(self._blasts.discard)

    async def _blast(self, count: int, body: bytes) -> None:
        for _ in range(count):
            self._transport.write(frame(body))
            if not self._output.room.is_set():
                await self._output.room.wait()


async def _serve() -> None:
    loop = asyncio.get_running_loop()
    ended = asyncio.Event()
    transport, output = await loop.connect_write_pipe(_Output, os.fdopen(1, "wb", 0))
    echo = _Echo(transport, output, ended)
    await loop.connect_read_pipe(lambda: echo, os.fdopen(0, "rb", 0))
    await ended.wait()


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_serve())
