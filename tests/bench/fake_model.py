"""A model endpoint for tests: `/v1/chat/completions` and `/v1/models` over raw HTTP, with every ending that there is.

    async with FakeModel() as model:
        model.says("hello")                              # one reply, one line
        model.says(T("Once upon"), Stall())              # text, then silence
        model.calls("weather", {"city": "Ghent"})        # a tool call
        model.fails(429, retry_after=1)
        model.otherwise(lambda request: [request.last_user_text])      # when nothing is scripted
        ...
        assert model.last_request.is_well_paired()

Replies are taken in order, one a request. A request that finds none is answered 400, and fails the test at the end.
A request whose tool calls and results do not pair is answered 400 too. Use `url` as base URL; any key will do.
"""

import asyncio
import contextlib
import json
import socket
import struct
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from types import TracebackType
from typing import Any, Self

from tests.bench.model_script import (
    CLOSE,
    CUT,
    DONE,
    EOF,
    TC,
    Chunk,
    F,
    Item,
    Piece,
    Ping,
    Raw,
    Reply,
    Stall,
    T,
    Think,
    answer,
    encode,
)
from tests.bench.recorded import Recorded

__all__ = [
    "CLOSE", "CUT", "DONE", "EOF", "TC", "Chunk", "F", "FakeModel", "Item", "Ping", "Raw", "Recorded", "Reply",
    "Stall", "T", "Think",
]  # fmt: skip

Fallback = Callable[[Recorded], "Reply | Sequence[Item]"]


class FakeModel:
    """The endpoint. All of it runs on the test's own loop."""

    def __init__(self, *, models: Sequence[str] = ("fake",), strict: bool = True) -> None:
        self.models = list(models)
        self.strict = strict
        """Whether unpaired requests are answered 400."""
        self.requests: list[Recorded] = []
        """Chat requests, oldest first."""
        self.other_requests: list[Recorded] = []
        self.unscripted: list[Recorded] = []
        self.connections = 0
        """Open at this moment."""
        self._replies: deque[Reply] = deque()
        self._fallback: Fallback | None = None
        self._listing: Reply | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._changed = asyncio.Condition()

    # What a test says

    def says(self, *items: Item, cut_every: int | None = None) -> None:
        """Answer one request with this stream. Strings are text; an ending that is left out is added."""
        self._replies.append(Reply(answer(*items), cut_every=cut_every))

    def calls(self, *names_and_arguments: str | dict[str, Any], say: str = "") -> None:
        """Answer one request with tool calls: name, arguments, name, arguments, …; ids are `call_REQUEST_NUMBER`."""
        pairs = zip(names_and_arguments[::2], names_and_arguments[1::2], strict=True)
        turn = len(self.requests) + len(self._replies)
        calls = [TC(i, f"call_{turn}_{i}", str(name), json.dumps(args)) for i, (name, args) in enumerate(pairs)]
        self.says(*([say] if say else []), *calls)

    def fails(
        self,
        status: int,
        *,
        times: int = 1,
        retry_after: float | str | None = None,
        error: dict[str, Any] | None = None,
        headers: dict[str, str] | None = None,
    ) -> None:
        """Answer requests with an error of that status."""
        headers = dict(headers or {})
        if retry_after is not None:
            headers["retry-after"] = str(retry_after)
        body = {"error": {"message": "the fake model fails", "type": "fake", "code": None} | (error or {})}
        self._replies.extend([_document(status, json.dumps(body), "application/json", headers)] * times)

    def completes(self, body: Any, status: int = 200) -> None:
        """Answer one request with a JSON document instead of a stream."""
        self._replies.append(_document(status, json.dumps(body), "application/json"))

    def shows(self, html: str = "<!doctype html><title>Welcome</title>", status: int = 200) -> None:
        """Answer one request with a web page."""
        self._replies.append(_document(status, html, "text/html"))

    def hangs(self, seconds: float | None = None) -> None:
        """Accept one request, and send not even headers for so long; then reset the connection."""
        self._replies.append(Reply(before_head=[Stall(seconds), CUT]))

    def drops(self, times: int = 1) -> None:
        """Reset the connection on reading a request."""
        self._replies.extend([Reply(before_head=[CUT])] * times)

    def replies(self, reply: Reply) -> None:
        """Answer one request with exactly this."""
        self._replies.append(reply)

    def otherwise(self, fallback: Fallback) -> None:
        """What to answer when nothing is scripted: for many sessions at once, where an order means nothing."""
        self._fallback = fallback

    def lists(self, reply: Reply) -> None:
        """Answer `/v1/models` with exactly this, instead of with `models`."""
        self._listing = reply

    # What a test asks

    @property
    def url(self) -> str:
        """The base URL."""
        return f"http://127.0.0.1:{self._port}/v1"

    @property
    def environment(self) -> dict[str, str]:
        """The environment of a sidecar whose default model is this one."""
        return {"OPENAI_BASE_URL": self.url, "OPENAI_API_KEY": "sk-test", "OPENAI_MODEL": self.models[0]}

    @property
    def last_request(self) -> Recorded:
        """The newest chat request."""
        return self.requests[-1]

    async def received(self, count: int = 1, within: float = 5.0) -> Recorded:
        """Wait until so many chat requests have come in all, and return the newest of them."""
        async with asyncio.timeout(within), self._changed:
            await self._changed.wait_for(lambda: len(self.requests) >= count)
        return self.requests[count - 1]

    async def quiet(self, within: float = 5.0) -> None:
        """Wait until no connection is open."""
        async with asyncio.timeout(within), self._changed:
            await self._changed.wait_for(lambda: self.connections == 0)

    # The server

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0, limit=1 << 26)
        self._port: int = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if error is None and self.unscripted:
            raise AssertionError(f"{len(self.unscripted)} requests had no scripted reply: {self.unscripted[0].body}")

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.ensure_future(self._serve(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await self._count(+1)
        try:
            begun: bytes | None = b""
            while begun is not None:
                begun = await self._handle(await _read_request(reader, begun), reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()
            with contextlib.suppress(ConnectionError):
                await writer.wait_closed()
            await self._count(-1)

    async def _count(self, step: int) -> None:
        async with self._changed:
            self.connections += step
            self._changed.notify_all()

    async def _handle(
        self, request: Recorded, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> bytes | None:
        """Answer one request. Returns what was already read of the next; `None` if there can be none."""
        reply = await self._reply_to(request)
        playing = asyncio.ensure_future(_play(reply, writer))
        watching = asyncio.ensure_future(reader.read(1))
        try:
            await asyncio.wait([playing, watching], return_when=asyncio.FIRST_COMPLETED)
            request.hung_up = not playing.done()
        finally:
            request.gone.set()
            for task in (playing, watching):
                task.cancel()
            await asyncio.gather(playing, watching, return_exceptions=True)
        if request.hung_up or not playing.result():
            return None
        return b"" if watching.cancelled() else watching.result() or None

    async def _reply_to(self, request: Recorded) -> Reply:
        if request.path.endswith("/models"):
            self.other_requests.append(request)
            if self._listing is not None:
                return self._listing
            listed = [{"id": name, "object": "model"} for name in self.models]
            return _document(200, json.dumps({"object": "list", "data": listed}), "application/json")
        if not request.path.endswith("/chat/completions"):
            self.other_requests.append(request)
            return _document(404, "{}", "application/json")
        async with self._changed:
            self.requests.append(request)
            self._changed.notify_all()
        return self._chat_reply(request)

    def _chat_reply(self, request: Recorded) -> Reply:
        if self.strict and not request.is_well_paired():
            return _document(400, '{"error":{"message":"unpaired tool calls","type":"invalid"}}', "application/json")
        if self._replies:
            return self._replies.popleft()
        if self._fallback is not None:
            reply = self._fallback(request)
            return reply if isinstance(reply, Reply) else Reply(answer(*reply))
        self.unscripted.append(request)
        return _document(400, '{"error":{"message":"nothing is scripted","type":"fake"}}', "application/json")


def _document(status: int, body: str, content_type: str, headers: dict[str, str] | None = None) -> Reply:
    return Reply([Raw(body.encode()), EOF], status, {"content-type": content_type} | (headers or {}))


async def _read_request(reader: asyncio.StreamReader, begun: bytes) -> Recorded:
    begun = begun or await reader.readexactly(1)
    if begun == b"\x16":
        raise ConnectionError("a TLS handshake")
    head = begun + await reader.readuntil(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").split("\r\n")
    method, target, _ = first.split(" ", 2)
    headers = {
        name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines if line)
    }
    body = await reader.readexactly(int(headers.get("content-length", 0)))
    return Recorded(method, target.partition("?")[0], headers, body)


async def _play(reply: Reply, writer: asyncio.StreamWriter) -> bool:
    """Write a reply; whether the connection is still good."""
    if any([await _act(piece, writer, _nothing) for piece in reply.before_head]):
        return False
    headers = {"content-type": "text/event-stream", "transfer-encoding": "chunked"} | reply.headers
    lines = [f"HTTP/1.1 {reply.status} Fake", *(f"{name}: {value}" for name, value in headers.items()), "", ""]
    writer.write("\r\n".join(lines).encode())

    async def body(data: bytes) -> None:
        step = reply.cut_every or max(len(data), 1)
        for start in range(0, len(data), step):
            part = data[start : start + step]
            writer.write(b"%x\r\n%b\r\n" % (len(part), part))
            await writer.drain()
            await asyncio.sleep(0)

    for piece in reply.pieces:
        if await _act(piece, writer, body):
            return False
    writer.write(b"0\r\n\r\n")
    await writer.drain()
    return True


async def _act(piece: Piece, writer: asyncio.StreamWriter, body: Callable[[bytes], Awaitable[None]]) -> bool:
    """Play one piece; whether the connection ended with it."""
    match piece:
        case Stall(seconds):
            await asyncio.sleep(seconds if seconds is not None else 3600)
        case Ping(every, times):
            for _ in range(times if times is not None else 1 << 30):
                await asyncio.sleep(every)
                await body(b": ping\n\n")
        case _ if piece is CUT:
            await writer.drain()
            await asyncio.sleep(0.02)  # a reset overtakes bytes that the other side has not read yet
            connection = writer.get_extra_info("socket")
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            writer.transport.abort()
            return True
        case _ if piece is CLOSE:
            return True
        case _:
            await body(encode(piece))
    return False


async def _nothing(data: bytes) -> None:
    del data
