"""An ACP client made of raw lines, which holds every message in both directions against the published schema."""

import asyncio
import json
import sys
from asyncio.subprocess import PIPE
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, TypeVar

from jsonschema import Draft202012Validator

from tests.e2e.cli_process import COMMAND, Cli

Json = dict[str, Any]
T = TypeVar("T")

SCHEMA: Final = Path(sys.prefix) / "editors/node_modules/@agentclientprotocol/sdk/schema/v1/schema.json"
"""Comes with the TypeScript SDK, which `.ci/run` installs; without it the messages are not held against it."""
TIMEOUT_S: Final = 30.0
LINE_BYTES: Final = 64 << 20
"""Longest message that is taken."""
CAPABLE: Final[Json] = {"elicitation": {"form": {}, "url": {}}, "session": {"notices": {}}}
"""What a client declares that can do everything."""


class AcpError(Exception):
    """An error answer."""

    def __init__(self, error: Json) -> None:
        super().__init__(error["message"])
        self.code: int = error["code"]
        self.data: Json = error.get("data") or {}
        self.kind: str = self.data.get("kind", "")


class Schema:
    """The definitions of the published schema, by what the messages are."""

    def __init__(self, document: Json) -> None:
        self._defs: Json = document["$defs"]

    @classmethod
    def installed(cls) -> "Schema | None":
        return cls(json.loads(SCHEMA.read_text())) if SCHEMA.is_file() else None

    def check(self, method: str, value: Any, *kinds: str) -> None:
        """Hold params or a result of a method against its definition; methods of ours have none."""
        if method.startswith("_"):
            return
        (name,) = [n for n, d in self._defs.items() if d.get("x-method") == method and n.endswith(kinds)]
        self.check_as(name, value)

    def check_as(self, name: str, value: Any) -> None:
        schema = {"$ref": f"#/$defs/{name}", "$defs": self._defs}
        errors = [f"{error.json_path}: {error.message}" for error in Draft202012Validator(schema).iter_errors(value)]
        assert not errors, (name, errors, value)


class Acp:
    """One agent process and the connection to it.

    Attributes:
        folder: Where it works.
        updates: The `update` of every `session/update`, in order.
        serves: Method → what answers the agent's requests.
        asked: What the agent has asked: method and params.
        withdrawn: Ids of the requests that it has taken back.
        loose: Answers to no request that is known.
        log: Everything that was received.
    """

    def __init__(self, cli: Cli, *arguments: str, check: bool = True) -> None:
        self.updates: list[Json] = []
        self.serves: dict[str, Callable[[Json], Any]] = {}
        self.asked: list[tuple[str, Json]] = []
        self.withdrawn: list[Any] = []
        self.loose: list[Json] = []
        self.log: list[Json] = []
        self.errors = b""
        self.folder = cli.folder
        self._cli, self._arguments = cli, arguments
        self._schema = Schema.installed() if check else None
        self._answers: dict[int, tuple[str, asyncio.Future[Json]]] = {}
        self._news = asyncio.Condition()
        self._failure: BaseException | None = None

    async def __aenter__(self) -> "Acp":
        self.process = await asyncio.create_subprocess_exec(
            *COMMAND, "acp", *self._arguments, stdin=PIPE, stdout=PIPE, stderr=PIPE,
            cwd=self.folder, env=self._cli.environment, limit=LINE_BYTES,
        )  # fmt: skip
        self._reader = asyncio.create_task(self._read())
        return self

    async def __aexit__(self, *_: object) -> None:
        if self.process.returncode is None:
            self.process.kill()
            self.resume_reading()
        await self.process.wait()
        await self._reader

    async def initialize(self, capabilities: Json | None = None) -> Json:
        return await self.request("initialize", {"protocolVersion": 1, "clientCapabilities": capabilities or {}})

    async def new_session(self, **params: Any) -> str:
        created = await self.request("session/new", {"cwd": str(self.folder), "mcpServers": [], **params})
        return created["sessionId"]

    async def prompt(self, session_id: str, text: str) -> Json:
        return await self.request("session/prompt", prompt(session_id, text))

    async def request(self, method: str, params: Json) -> Any:
        return await self.begin(method, params)

    def begin(self, method: str, params: Json) -> "asyncio.Task[Any]":
        """Send a request now; the task is its result."""
        return self.begin_all((method, params))[0]

    def begin_all(self, *requests: tuple[str, Json]) -> "list[asyncio.Task[Any]]":
        """Send requests and, without an id, notifications in one write."""
        lines, tasks = b"", []
        for method, params in requests:
            message: Json = {"jsonrpc": "2.0", "method": method, "params": params}
            is_request = method not in ("session/cancel", "$/cancel_request")
            self._check(method, params, "Request" if is_request else "Notification")
            if is_request:
                message["id"] = self.next_id
                answer: asyncio.Future[Json] = asyncio.get_running_loop().create_future()
                self._answers[self.next_id] = method, answer
                tasks.append(asyncio.create_task(self._result(method, answer)))
            lines += json.dumps(message).encode() + b"\n"
        self.write(lines)
        return tasks

    @property
    def next_id(self) -> int:
        return len(self._answers) + 1

    def notify(self, method: str, params: Json) -> None:
        self.begin_all((method, params))

    def write(self, data: bytes) -> None:
        """Anything at all."""
        assert self.process.stdin is not None
        self.process.stdin.write(data)

    def pause_reading(self) -> None:
        """Take nothing of what the agent sends."""
        self._pipe.pause_reading()

    def resume_reading(self) -> None:
        self._pipe.resume_reading()

    def hang_up(self) -> None:
        """Close the agent's output."""
        self._pipe.close()

    @property
    def _pipe(self) -> asyncio.ReadTransport:
        return self.process._transport.get_pipe_transport(1)

    async def until(self, look: Callable[[], T]) -> T:
        """What `look` finds, once it finds something."""
        async with asyncio.timeout(TIMEOUT_S), self._news:
            while not (found := look()):
                if self._failure is not None:
                    raise self._failure
                if self._reader.done():
                    raise AssertionError(f"the agent has ended: {self.errors.decode()}")
                await self._news.wait()
        return found

    async def end(self) -> int:
        """Close its input; its exit code."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        return await self.exit_code()

    async def exit_code(self) -> int:
        async with asyncio.timeout(TIMEOUT_S):
            code = await self.process.wait()
            await asyncio.shield(self._reader)
        if self._failure is not None:
            raise self._failure
        return code

    def text(self, kind: str = "agent_message_chunk") -> str:
        """What was said, put together."""
        return "".join(u["content"]["text"] for u in self.of_kind(kind) if u["content"]["type"] == "text")

    def of_kind(self, kind: str) -> list[Json]:
        return [update for update in self.updates if update["sessionUpdate"] == kind]

    async def _result(self, method: str, answer: "asyncio.Future[Json]") -> Any:
        async with asyncio.timeout(TIMEOUT_S):
            message = await answer
        if "error" in message:
            raise AcpError(message["error"])
        return message["result"]

    async def _read(self) -> None:
        assert self.process.stdout is not None
        assert self.process.stderr is not None
        errors = asyncio.create_task(self.process.stderr.read())
        try:
            async for line in self.process.stdout:
                self._take(json.loads(line))
                async with self._news:
                    self._news.notify_all()
        except BaseException as error:
            self._failure = error
            for _, answer in self._answers.values():
                if not answer.done():
                    answer.set_exception(error)
        self.errors = await errors
        async with self._news:
            self._news.notify_all()

    def _take(self, message: Json) -> None:
        self.log.append(message)
        assert message["jsonrpc"] == "2.0"
        if "method" not in message:
            self._take_answer(message)
            return
        method, params = message["method"], message["params"]
        self._check(method, params, "Request" if "id" in message else "Notification")
        if "id" in message:
            self.asked.append((method, params))
            if method in self.serves and (result := self.serves[method](params)) is not None:
                self.answer(message["id"], method, result)
        elif method == "$/cancel_request":
            self.withdrawn.append(params["requestId"])
        else:
            assert method == "session/update"
            self.updates.append(params["update"])

    def answer(self, request_id: Any, method: str, result: Any) -> None:
        """Answer a request of the agent's."""
        if isinstance(result, AcpError):
            reply = {"error": {"code": result.code, "message": str(result)}}
        else:
            self._check(method, result, "Response")
            reply = {"result": result}
        self.write(json.dumps({"jsonrpc": "2.0", "id": request_id, **reply}).encode() + b"\n")

    def _take_answer(self, message: Json) -> None:
        method, answer = self._answers.get(message["id"], ("", None))
        if "error" in message:
            if self._schema is not None:
                self._schema.check_as("Error", message["error"])
        elif method:
            self._check(method, message["result"], "Response")
        if answer is None or answer.done():
            self.loose.append(message)
        else:
            answer.set_result(message)

    def _check(self, method: str, value: Any, *kinds: str) -> None:
        if self._schema is not None:
            self._schema.check(method, value, *kinds)


def prompt(session_id: str, text: str) -> Json:
    """Params of a prompt."""
    return {"sessionId": session_id, "prompt": [{"type": "text", "text": text}]}


def joined(updates: list[Json]) -> list[tuple[str, Any]]:
    """What was shown, with the chunks of a message put together: the same live and replayed."""
    shown: list[tuple[str, Any]] = []
    for update in updates:
        kind = update["sessionUpdate"]
        if not kind.endswith("_chunk"):
            shown.append((kind, {key: value for key, value in update.items() if key != "sessionUpdate"}))
            continue
        key, text = (kind, update["messageId"]), update["content"]["text"]
        if shown and shown[-1][0] == kind and shown[-1][1][0] == key[1]:
            text = shown.pop()[1][1] + text
        shown.append((kind, (key[1], text)))
    return shown
