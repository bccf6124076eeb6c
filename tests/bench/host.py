"""A fake host: starts the real binary over pipes and holds every byte that comes back against the contract.

async with FakeHost(store=f"sqlite:{path}") as host:
    session = await host.create_session(model="scripted:echo")
    result = await session.run("hello")                     # the answer; an error raises RpcError
    run = session.start("tell me a story")                  # or: a run under way
    await run.text_contains("Once")
    await session.cancel()
    assert (await run.result())["status"] == "cancelled"
    host.kill()                                             # kill -9; `await host.wait()` gives the exit code
"""

import asyncio
import itertools
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any, Final, NamedTuple, Self

from tests.bench.contract import check_params, check_result
from tests.bench.handles import PATIENCE_S, Asked, HostRun, HostSession, RpcError
from tests.bench.ledger import Ledger
from tests.bench.sidecar_process import SidecarProcess
from tests.bench.wire import EventChecker, Framing, Json, StrictParser, encode

__all__ = ["LATER", "FakeHost", "HostGone", "HostRun", "HostSession", "Refuses", "RpcError"]


class Refuses(NamedTuple):
    """The host answers with an error."""

    code: int
    message: str


LATER: Final = object()
"""What answers a request of the sidecar's later, or never."""


class HostGone(Exception):
    """The sidecar ended before it answered."""


class FakeHost:
    """One sidecar process and the host's end of its pipes."""

    def __init__(
        self,
        *,
        store: str = "memory",
        framing: Framing = "ndjson",
        args: tuple[str, ...] = (),
        env: dict[str, str] | None = None,
        cwd: Path | None = None,
        initialize: Json | None = None,
        greet: bool = True,
        under: tuple[str, ...] = (),
        fresh: bool = False,
        check: bool = True,
        ledger: Ledger | None = None,
    ) -> None:
        """Say what to start.

        Args:
            store: `--store`.
            framing: How both ends cut messages.
            args: Further arguments of `serve`.
            env: Added to the environment, which names no endpoint.
            cwd: Where it works.
            initialize: The params of the first request.
            greet: Whether `initialize` is sent at all.
            under: A command to start it with, such as a parent that can be killed.
            fresh: Whether the program is started anew instead of being forked from a warm process.
            check: Whether every event is held against the contract.
            ledger: Where to write down what was acknowledged, before anyone is told of it.
        """
        self.framing = framing
        self.messages: list[Json] = []
        """Everything that came, in order."""
        self.arrived: list[float] = []
        """When each of them came, on the monotonic clock."""
        self.stderr = b""
        self.serves: dict[str, Callable[[Json], Any]] = {}
        """Method of the host's → what answers it from the params; `LATER` leaves it open. Others stay unanswered."""
        self._args = ("serve", "--store", store, *args)
        self._env = env or {}
        self.may_be_cut = "AGENT_SIDECAR_CRASH_AT" in self._env
        """The test makes the sidecar end in the middle of a frame."""
        self._cwd = cwd
        self._initialize = initialize or {}
        self._greet = greet
        self._under = under
        self._fresh = fresh
        self._ids = itertools.count(1001)  # below that, ids are the tests' own
        self._waiting: dict[int | str, asyncio.Future[Json]] = {}
        self._methods: dict[int | str, str] = {}
        self._replays: dict[int | str, Json] = {}
        self._changed = asyncio.Condition()
        self._checker = EventChecker() if check else None
        self._ledger = ledger
        self._ended = False
        self._fault: Exception | None = None
        self._tasks: list[asyncio.Task[None]] = []
        self.paused = asyncio.Event()
        self.paused.set()

    async def __aenter__(self) -> Self:
        await self.start()
        if self._greet:
            await self.request("initialize", self._initialize)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.process.returncode is None and kind is None:
            if all(answer.done() for answer in self._waiting.values()):
                self.process.stdin.close()
            else:
                self.kill(signal.SIGTERM)
            try:
                async with asyncio.timeout(PATIENCE_S):
                    await self.process.wait()
            finally:
                if self.process.returncode is None:
                    self.kill()
        elif self.process.returncode is None:
            self.kill()
        await self.wait()
        if kind is None:
            assert b"Traceback" not in self.stderr, self.stderr.decode(errors="replace")

    async def start(self) -> None:
        """Start the process; say nothing yet."""
        environment = {key: value for key, value in os.environ.items() if not key.startswith(("OPENAI_", "PYTHONPATH"))}
        self.process = await SidecarProcess.start(
            self._args, {**environment, **self._env}, self._cwd, self._under, fresh=self._fresh
        )
        self._tasks = [asyncio.create_task(self._read()), asyncio.create_task(self._read_stderr())]

    # ---- talking --------------------------------------------------------------------------------------------------

    def write(self, data: bytes) -> None:
        """Raw bytes to the sidecar's stdin."""
        self.process.stdin.write(data)

    def send(self, message: Json | list[Any]) -> None:
        """One message."""
        self.write(encode(message, self.framing))

    def notify(self, method: str, params: Json | None = None) -> None:
        """A notification."""
        self.send({"jsonrpc": "2.0", "method": method, **({} if params is None else {"params": params})})

    def ask(self, method: str, params: Any = None, *, request_id: int | str | None = None) -> Asked:
        """Send a request; its answer is waited for elsewhere."""
        request_id = next(self._ids) if request_id is None else request_id
        self._methods[request_id] = method
        if method == "resumeSession" and isinstance(params, dict):
            self._replays[request_id] = params.get("replayFrom") or {}
        answer = self._waiting[request_id] = asyncio.get_running_loop().create_future()
        if self._ended:
            answer.set_exception(HostGone("the sidecar has ended"))
            answer.exception()
        if self._ledger is not None:
            self._ledger.asked(self.process.pid, request_id, method, params or {})
        self.send(
            {"jsonrpc": "2.0", "id": request_id, "method": method, **({} if params is None else {"params": params})}
        )
        return Asked(self, request_id, answer)

    async def request(self, method: str, params: Any = None) -> Any:
        """Send a request and wait for its result. An error raises `RpcError`."""
        return await self.ask(method, params).result()

    async def exchange(self, message: Json | list[Any] | bytes) -> Json:
        """Send something as it is, right or wrong; the next answer, to whatever id."""
        seen = len(self.messages)
        self.write(message) if isinstance(message, bytes) else self.send(message)
        return (await self.until(lambda: [found for found in self.messages[seen:] if "method" not in found]))[0]

    async def refusal(self, method: str, params: Any = None) -> RpcError:
        """Send a request that must be answered with an error."""
        message = await self.ask(method, params).message()
        assert "error" in message, f"not refused: {message}"
        return RpcError(message["error"])

    def asked(self, method: str) -> list[Json]:
        """The requests of one method that the sidecar has sent so far."""
        return [message for message in self.messages if message.get("method") == method and "id" in message]

    def reply(self, request: Json, result: Any) -> None:
        """Answer one of those."""
        self.send({"jsonrpc": "2.0", "id": request["id"], "result": result})

    # ---- sessions -------------------------------------------------------------------------------------------------

    async def create_session(self, **params: Any) -> HostSession:
        """`createSession`."""
        result = await self.request("createSession", params)
        return HostSession(self, result["session"]["sessionId"], result)

    async def resume_session(self, session_id: str, **params: Any) -> HostSession:
        """`resumeSession`."""
        result = await self.request("resumeSession", {"sessionId": session_id, **params})
        return HostSession(self, session_id, result)

    # ---- what came ------------------------------------------------------------------------------------------------

    def events(self, session_id: str | None = None, *types: str) -> list[Json]:
        """Events so far, of a session, of some types."""
        return [
            message["params"]
            for message in self.messages
            if message.get("method") == "run/event"
            and session_id in (None, message["params"]["sessionId"])
            and (not types or message["params"]["type"] in types)
        ]

    async def until(self, condition: Callable[[], Any]) -> Any:
        """Wait until something is true of what came; fail when the sidecar ends first."""
        async with asyncio.timeout(PATIENCE_S), self._changed:
            while not (found := condition()):
                if self._fault is not None:
                    raise self._fault
                if self._ended:
                    raise HostGone(self.stderr.decode(errors="replace")[-2000:])
                await self._changed.wait()
            return found

    async def until_end(self) -> None:
        """Wait until stdout has ended: whoever held it is gone."""
        async with asyncio.timeout(PATIENCE_S), self._changed:
            await self._changed.wait_for(lambda: self._ended)

    # ---- ending ---------------------------------------------------------------------------------------------------

    def kill(self, number: int = signal.SIGKILL) -> None:
        """Send a signal; -9 by default."""
        if self.process.returncode is None:
            self.may_be_cut |= number == signal.SIGKILL
            self.process.send_signal(number)

    def hang_up(self) -> None:
        """Close stdin: say that nothing more will come."""
        self.process.stdin.close()

    def stop_reading(self) -> None:
        """Close our end of the sidecar's stdout."""
        self.process.close_stdout()

    async def wait(self) -> int:
        """Wait for the end; the exit code (negative: died of that signal)."""
        async with asyncio.timeout(PATIENCE_S):
            code = await self.process.wait()
            await asyncio.gather(*self._tasks)
        self.process.close()
        return code

    # ---- reading --------------------------------------------------------------------------------------------------

    async def _read(self) -> None:
        """Read until the end. What breaks the contract fails everyone who waits, and the end of the test."""
        try:
            await self._read_all()
        except Exception as error:
            self._fault = error
            raise
        finally:
            for waiting in self._waiting.values():
                if not waiting.done():
                    waiting.set_exception(self._fault or HostGone("the sidecar ended before it answered"))
                    waiting.exception()
            async with self._changed:
                self._ended = True
                self._changed.notify_all()

    async def _read_all(self) -> None:
        parser = StrictParser(self.framing)
        while True:
            await self.paused.wait()
            data = await self.process.stdout.read(1 << 20)
            came, now = parser.feed(data), time.monotonic()
            if self._ledger is not None:
                self._ledger.took(self.process.pid, came)
            for message in came:
                self.arrived.append(now)
                self._take(message)
            if not data:
                break
            async with self._changed:
                self._changed.notify_all()
        if not self.may_be_cut and (self.process.returncode is None or self.process.returncode >= 0):
            parser.finish()

    def _take(self, message: Json) -> None:
        self.messages.append(message)
        if "method" in message and self._checker is not None:
            check_params(message["method"], message.get("params"))
        if "method" in message and "id" in message:
            self._serve(message)
        elif message.get("method") == "run/event":
            if self._checker is not None:
                self._checker.check(message["params"])
        elif "method" not in message:
            waiting = self._waiting.get(message["id"])
            if waiting is not None:
                assert not waiting.done(), f"answered twice: {message}"
                result = message.get("result")
                if self._checker is not None and "result" in message:
                    check_result(self._methods[message["id"]], result)
                if (
                    self._checker is not None
                    and isinstance(result, dict)
                    and {"configOptions", "lastSeq"} <= set(result)
                ):
                    self._checker.answered(result["session"]["sessionId"], result["lastSeq"])
                    self._expect_replay(result, self._replays.pop(message["id"], {}))
                waiting.set_result(message)

    def _serve(self, message: Json) -> None:
        serves = self.serves.get(message["method"])
        result = serves(message["params"]) if serves is not None else LATER
        if isinstance(result, Refuses):
            error = {"code": result.code, "message": result.message}
            self.send({"jsonrpc": "2.0", "id": message["id"], "error": error})
        elif result is not LATER:
            self.reply(message, result)

    def _expect_replay(self, result: Json, replay: Json) -> None:
        """What follows the answer of `resumeSession` begins where the request said."""
        if self._checker is not None and replay.get("type") in ("start", "seq"):
            self._checker.replaying_from(result["session"]["sessionId"], replay.get("seq", 0))

    async def _read_stderr(self) -> None:
        while data := await self.process.stderr.read(1 << 16):
            self.stderr += data
            async with self._changed:
                self._changed.notify_all()
