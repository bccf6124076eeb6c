"""The connection over real descriptors: order, water marks, hang-ups, pauses. On both loops, polled and in threads."""

import asyncio
import contextlib
import os
import socket
import stat
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from sidecar.transport.connection import Connection
from sidecar.transport.framing import Fault, encode
from sidecar.transport.writer import WriterLimits

SMALL = WriterLimits(drain_above=1000, drain_until=100, pause_reading_above=300_000, hard_cap=10_000_000)
BIG = b'"' + b"x" * 1_000_000 + b'"'


@dataclass
class Recorder:
    """A receiver that keeps everything, and lets a test wait for it."""

    heard: list[Any] = field(default_factory=list)
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    fail_on: bytes | None = None

    def hear(self, what: Any) -> None:
        self.heard.append(what)
        self.changed.set()

    def on_message(self, body: bytes) -> None:
        self.hear(body)
        if body == self.fail_on:
            raise RuntimeError("a bug")

    def on_fault(self, fault: Fault) -> None:
        self.hear(fault)

    def on_eof(self) -> None:
        self.hear("eof")

    def on_gone(self, why: str) -> None:
        self.hear(("gone", why))

    async def until(self, condition: Callable[[list[Any]], object]) -> None:
        async with asyncio.timeout(20):
            while not condition(self.heard):
                self.changed.clear()
                await self.changed.wait()

    async def gone(self) -> str:
        await self.until(lambda heard: any(isinstance(item, tuple) and item[0] == "gone" for item in heard))
        return next(item[1] for item in self.heard if isinstance(item, tuple) and item[0] == "gone")


class Peer:
    """The client's ends, and the sidecar's."""

    def __init__(self, kind: str) -> None:
        if kind == "pipe":
            self.inbound, self.to_sidecar = os.pipe()
            self.from_sidecar, self.outbound = os.pipe()
        elif kind == "sockets":  # what Node gives its children
            (self.inbound, self.to_sidecar), (self.from_sidecar, self.outbound) = (
                [end.detach() for end in socket.socketpair()] for _ in range(2)
            )
        else:  # one socket for both ends
            ours, theirs = socket.socketpair()
            self.inbound, self.outbound = os.dup(ours.fileno()), os.dup(ours.fileno())
            self.to_sidecar, self.from_sidecar = os.dup(theirs.fileno()), os.dup(theirs.fileno())
            ours.close()
            theirs.close()

    def close(self, *names: str) -> None:
        for name in names or ("to_sidecar", "from_sidecar"):
            fd, self.__dict__[name] = getattr(self, name), -1
            if fd >= 0:
                os.close(fd)

    async def write(self, data: bytes) -> None:
        await asyncio.to_thread(_write_all, self.to_sidecar, data)

    async def read(self, size: int) -> bytes:
        return await asyncio.to_thread(_read_all, self.from_sidecar, size)


def _write_all(fd: int, data: bytes) -> None:
    while data:
        data = data[os.write(fd, data[:65536]) :]


def _read_all(fd: int, size: int) -> bytes:
    read = bytearray()
    while len(read) < size and (piece := os.read(fd, min(65536, size - len(read)))):
        read += piece
    return bytes(read)


@pytest.fixture(params=["pipe", "sockets", "one socket"])
def peer(request: pytest.FixtureRequest) -> Iterator[Peer]:
    peer = Peer(request.param)
    yield peer
    peer.close()


@pytest.fixture
def pipes() -> Iterator[Peer]:
    peer = Peer("pipe")
    yield peer
    peer.close()


@pytest.fixture(params=[False, True], ids=["polled", "threads"])
def threads(request: pytest.FixtureRequest) -> bool:
    return request.param


@contextlib.asynccontextmanager
async def connected(peer: Peer, receiver: Recorder, **options: Any) -> AsyncIterator[Connection]:
    connection = Connection(peer.inbound, peer.outbound, **options)
    await connection.start(receiver)
    try:
        yield connection
    finally:
        peer.close()  # a thread in a blocking call is freed by this
        await connection.aclose()


async def test_frames_go_both_ways_in_order(peer: Peer, threads: bool) -> None:
    recorder = Recorder()
    bodies = [b'{"n":%d,"pad":"%s"}' % (n, b"x" * (n * 37 % 9000)) for n in range(300)]
    stream = b"".join(encode(body, "header") for body in bodies)
    async with connected(peer, recorder, threads=threads) as connection:
        sending = asyncio.create_task(peer.write(stream))
        await recorder.until(lambda heard: len(heard) == len(bodies))
        await sending
        assert recorder.heard == bodies
        for body in bodies:
            connection.send(body)
        assert await peer.read(len(stream)) == stream


async def test_the_answer_has_the_framing_of_the_request(pipes: Peer, threads: bool) -> None:
    recorder = Recorder()
    async with connected(pipes, recorder, threads=threads) as connection:
        connection.send(b"1")
        assert connection.framing is None
        await pipes.write(b'{"a":1}\n')
        await recorder.until(len)
        assert connection.framing == "ndjson"
        connection.send(b"2")
        assert await pipes.read(24) == encode(b"1", "header") + b"2\n"


async def test_bytes_that_were_read_already_come_first(pipes: Peer, threads: bool) -> None:
    recorder = Recorder()
    await pipes.write(b"2}\n3\n")
    async with connected(pipes, recorder, threads=threads, framing="ndjson", initial=b'1\n{"a":'):
        await recorder.until(lambda heard: len(heard) == 3)
        assert recorder.heard == [b"1", b'{"a":2}', b"3"]


async def test_end_of_input_comes_after_the_last_message(peer: Peer, threads: bool) -> None:
    recorder = Recorder()
    async with connected(peer, recorder, threads=threads):
        await peer.write(b"{}\n[1]")
        if stat.S_ISSOCK(os.fstat(peer.to_sidecar).st_mode):
            with socket.socket(fileno=os.dup(peer.to_sidecar)) as end:
                end.shutdown(socket.SHUT_WR)
        else:
            peer.close("to_sidecar")
        await recorder.until(lambda heard: "eof" in heard)
        assert recorder.heard == [b"{}", b"[1]", "eof"]


async def test_a_failing_receiver_costs_one_message_only(pipes: Peer, threads: bool) -> None:
    recorder = Recorder(fail_on=b"{}")
    reported: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: reported.append(context))
    async with connected(pipes, recorder, threads=threads):
        await pipes.write(b"{}\n[]\n")
        await recorder.until(lambda heard: len(heard) == 2)
        assert recorder.heard == [b"{}", b"[]"]
    assert [str(context["exception"]) for context in reported] == ["a bug"]


async def test_frames_of_one_tick_leave_in_one_write(pipes: Peer) -> None:
    recorder = Recorder()
    async with connected(pipes, recorder, threads=False) as connection:
        for number in range(20):
            connection.send(b"%d" % number)
        assert os.get_blocking(pipes.from_sidecar)
        os.set_blocking(pipes.from_sidecar, False)
        with pytest.raises(BlockingIOError):
            os.read(pipes.from_sidecar, 1)
        assert await connection.flush(5)
        assert os.read(pipes.from_sidecar, 4096) == b"".join(encode(b"%d" % n, "header") for n in range(20))


async def test_producers_wait_above_the_high_mark_and_go_on_below_the_low_one(peer: Peer, threads: bool) -> None:
    recorder = Recorder()
    async with connected(peer, recorder, threads=threads, limits=SMALL) as connection:
        await asyncio.wait_for(connection.drain(), 5)
        connection.send(BIG)
        assert connection.queued_bytes() > SMALL.drain_above
        waiting = asyncio.create_task(connection.drain())
        await asyncio.sleep(0)
        assert not waiting.done()
        assert not await connection.flush(0.01)
        frame = encode(BIG, "header")
        assert await peer.read(len(frame)) == frame
        await asyncio.wait_for(waiting, 5)
        assert await connection.flush(5)
        assert connection.queued_bytes() == 0


async def test_a_client_that_does_not_read_is_not_read_from_until_it_does(peer: Peer, threads: bool) -> None:
    recorder = Recorder()
    async with connected(peer, recorder, threads=threads, limits=SMALL, framing="ndjson") as connection:
        connection.send(BIG)
        assert connection.queued_bytes() > SMALL.pause_reading_above
        await peer.write(b"1\n" * 10)
        connection.send(b"2")
        assert not await connection.flush(0.05)
        assert len(recorder.heard) <= 10  # a thread may have had one chunk in hand
        writing = asyncio.create_task(peer.write(b"3\n" * 1_000_000))
        assert not await connection.flush(0.05)
        assert not writing.done()
        assert await peer.read(len(BIG) + 3) == BIG + b"\n2\n"
        await writing
        await recorder.until(lambda heard: len(heard) == 1_000_010)


async def test_below_that_mark_a_client_that_does_not_read_is_served(pipes: Peer, threads: bool) -> None:
    recorder = Recorder()
    async with connected(pipes, recorder, threads=threads) as connection:
        connection.send(BIG)
        await pipes.write(b'{"a":1}\n' * 50_000)
        await recorder.until(lambda heard: len(heard) == 50_000)
        assert connection.queued_bytes() > 500_000


async def test_a_client_that_leaves_too_much_unread_is_given_up(pipes: Peer, threads: bool) -> None:
    recorder = Recorder()
    limits = WriterLimits(hard_cap=3_000_000)
    async with connected(pipes, recorder, threads=threads, limits=limits) as connection:
        connection.send(b'"' + b"x" * 5_000_000 + b'"')  # one message may be longer than the cap
        connection.send(BIG)
        connection.send(BIG)
        await asyncio.sleep(0)
        assert recorder.heard == []
        for _ in range(3):
            connection.send(BIG)
        assert "unread" in await recorder.gone()
        connection.send(BIG)
        assert connection.queued_bytes() == 0
        assert not await connection.flush(5)
        await asyncio.wait_for(connection.drain(), 5)


async def test_a_client_that_takes_nothing_is_given_up(pipes: Peer, threads: bool) -> None:
    recorder = Recorder()
    async with connected(pipes, recorder, threads=threads, limits=WriterLimits(stuck_after=0.2)) as connection:
        connection.send(BIG)
        waiting = asyncio.create_task(connection.flush(20))
        assert "nothing for 0.2 s" in await recorder.gone()
        assert not await waiting


async def test_a_slow_client_is_not_a_stuck_one(pipes: Peer, threads: bool) -> None:
    recorder = Recorder()
    async with connected(pipes, recorder, threads=threads, limits=WriterLimits(stuck_after=0.3)) as connection:
        connection.send(BIG)
        for _ in range(10):
            await pipes.read(70_000)
            await asyncio.sleep(0.06)
        assert recorder.heard == []
        assert connection.queued_bytes() > 0


async def test_a_client_that_closes_its_end_is_noticed_while_nothing_is_sent(pipes: Peer, threads: bool) -> None:
    recorder = Recorder()
    async with connected(pipes, recorder, threads=threads):
        pipes.close("from_sidecar")
        assert "closed" in await recorder.gone()


async def test_a_client_that_closes_its_end_is_noticed_on_writing(peer: Peer, threads: bool) -> None:
    recorder = Recorder()
    async with connected(peer, recorder, threads=threads) as connection:
        connection.send(BIG)
        waiting = asyncio.create_task(connection.drain())
        peer.close()
        await recorder.gone()
        connection.send(BIG)
        await asyncio.wait_for(waiting, 5)
        assert connection.queued_bytes() == 0


async def test_a_client_that_left_before_the_start_is_noticed(pipes: Peer, threads: bool) -> None:
    recorder = Recorder()
    pipes.close("from_sidecar")
    async with connected(pipes, recorder, threads=threads):
        await recorder.gone()


async def test_descriptors_are_left_blocking_as_they_were(pipes: Peer) -> None:
    kept = os.dup(pipes.inbound), os.dup(pipes.outbound)
    connection = Connection(pipes.inbound, pipes.outbound, threads=False)
    await connection.start(Recorder())
    assert not any(map(os.get_blocking, kept))
    await connection.aclose()
    assert all(map(os.get_blocking, kept))
    for fd in kept:
        os.close(fd)


async def test_a_pipe_that_is_stderr_as_well_stays_blocking(pipes: Peer) -> None:
    saved = os.dup(2)
    os.dup2(pipes.outbound, 2)
    try:
        async with connected(pipes, Recorder()) as connection:
            assert os.get_blocking(2)
            connection.send(b"{}")
            assert await pipes.read(23) == encode(b"{}", "header")
    finally:
        os.dup2(saved, 2)
        os.close(saved)


async def test_regular_files_are_read_and_written(tmp_path: Any) -> None:
    (tmp_path / "in").write_bytes(b'{"a":1}\n{"b":2}')
    recorder = Recorder()
    inbound = os.open(tmp_path / "in", os.O_RDONLY)
    outbound = os.open(tmp_path / "out", os.O_WRONLY | os.O_CREAT)
    connection = Connection(inbound, outbound)
    await connection.start(recorder)
    await recorder.until(lambda heard: "eof" in heard)
    connection.send(BIG)
    assert await connection.flush(20)
    await connection.aclose()
    assert recorder.heard == [b'{"a":1}', b'{"b":2}', "eof"]
    assert (tmp_path / "out").read_bytes() == BIG + b"\n"


async def test_closing_leaves_no_thread_and_no_descriptor(pipes: Peer, threads: bool) -> None:
    inbound, outbound = pipes.inbound, pipes.outbound
    before = set(threading.enumerate())
    connection = Connection(inbound, outbound, threads=threads)
    await connection.start(Recorder())
    started = set(threading.enumerate()) - before
    await connection.aclose()
    for thread in started:
        await asyncio.to_thread(thread.join, 10)
        assert not thread.is_alive()
    for fd in (inbound, outbound):
        with pytest.raises(OSError, match="Bad file"):
            os.fstat(fd)
