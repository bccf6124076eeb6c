"""What a connection does with its descriptors, on both loops."""

import asyncio
import io
import os
from collections.abc import Callable

import pytest

from sidecar.transport import connection
from sidecar.transport.connection import Connection
from sidecar.transport.framing import Fault
from tests.bench.waiting import eventually


class Host:
    """The receiver; it only waits for the end of input."""

    def __init__(self) -> None:
        self.ended = asyncio.Event()

    def on_message(self, body: bytes) -> None:
        pass

    def on_fault(self, fault: Fault) -> None:
        pass

    def on_eof(self) -> None:
        self.ended.set()

    def on_gone(self, why: str) -> None:
        self.ended.set()


class Watched(io.FileIO):
    """Finds a descriptor gone that it is about to close: by now the number may be another file's."""

    stray: list[int]

    def close(self) -> None:
        if self.closefd and not self.closed and is_closed(self.fileno()):
            self.stray.append(self.fileno())
        super().close()


def is_closed(fd: int) -> bool:
    try:
        os.fstat(fd)
    except OSError:
        return True
    return False


def hang_up_input(theirs: tuple[int, int]) -> None:
    os.close(theirs[0])


def hang_up_output(theirs: tuple[int, int]) -> None:
    os.close(theirs[1])


@pytest.mark.parametrize("hang_up", [hang_up_input, hang_up_output])
async def test_each_descriptor_is_closed_once(
    hang_up: Callable[[tuple[int, int]], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    stray: list[int] = []
    monkeypatch.setattr(Watched, "stray", stray, raising=False)
    monkeypatch.setattr(connection.io, "FileIO", Watched)
    inbound, to_us = os.pipe()
    from_us, outbound = os.pipe()
    host = Host()
    connected = Connection(inbound, outbound, threads=False)
    await connected.start(host)

    hang_up((to_us, from_us))
    await asyncio.wait_for(host.ended.wait(), 10)
    await connected.aclose()
    await eventually(lambda: is_closed(inbound) and is_closed(outbound))

    assert stray == []
    os.close(from_us if hang_up is hang_up_input else to_us)
