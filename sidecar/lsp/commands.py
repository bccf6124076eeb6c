"""The commands of `workspace/executeCommand`: one conversation, for editors that know nothing of the sidecar.

They ask the sidecar by its own methods, through a port; what sessions and runs are is not known here.
"""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Final, Protocol, TypeGuard, cast

from sidecar.errors import InvalidParams, ServerCancelled, SessionBusy, SidecarError
from sidecar.sessions.ids import new_id

from .progress import Progress
from .run_display import RunDisplay, ending, state_line

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable

    from protocol.base import Json, JsonObject

    from .client_capabilities import ClientCapabilities
    from .editor_tasks import EditorTasks
    from .progress import Token

COMMANDS: Final = (
    "sidecar.run",
    "sidecar.explain",
    "sidecar.fix",
    "sidecar.cancel",
    "sidecar.newSession",
    "sidecar.showState",
)
"""As `capabilities.json` advertises them."""

EDITS: Final[JsonObject] = {
    "type": "editor_context",
    "sourceId": "editor_edits",
    "config": {"include": [], "edits": True},
}
"""What the conversation's agent has besides its own, where the editor takes edits. No other session gets it unasked."""

_BUSY: Final = "the agent is still at work; wait for its answer, or stop it with sidecar.cancel"

_STATE: Final = ("session", "run", "queue", "providers", "state", "usage", "pending", "documents")

# MessageType of LSP.
_ERROR: Final = 1
_WARNING: Final = 2
_INFO: Final = 3


class Sidecar(Protocol):
    """What the commands need of the sidecar: params and results as on the wire, errors as `SidecarError`."""

    async def create_session(self, params: JsonObject) -> JsonObject:
        """`createSession`."""
        ...

    async def run(self, params: JsonObject, on_event: Callable[[JsonObject], None]) -> JsonObject:
        """`run` to its end; its events go to `on_event`."""
        ...

    async def cancel_run(self, params: JsonObject) -> JsonObject:
        """`cancelRun`."""
        ...

    async def get_state(self, params: JsonObject) -> JsonObject:
        """`getState`."""
        ...


class Client(Protocol):
    """What they need of the editor."""

    def notify(self, method: str, params: JsonObject) -> None:
        """Send a notification."""
        ...

    async def create_progress(self, token: str) -> bool:
        """Whether the editor will show progress under this token."""
        ...


class Commands:
    """The commands, and the session that they mean: made when first needed, kept until `sidecar.newSession`."""

    def __init__(self, sidecar: Sidecar, client: Client, can: ClientCapabilities, tasks: EditorTasks) -> None:
        """Ask nothing yet.

        Args:
            sidecar: Runs agents.
            client: The editor.
            can: What it has declared.
            tasks: Knows what the agent is asked about a place in a document.
        """
        self._sidecar = sidecar
        self._client = client
        self._can = can
        self._tasks = tasks
        self._session_id: str | None = None
        self._opening = asyncio.Lock()
        self._stops: dict[Token, asyncio.Event] = {}

    @staticmethod
    def takes(params: Json) -> bool:
        """Whether the params of `workspace/executeCommand` name one of these."""
        return isinstance(params, dict) and cast("JsonObject", params).get("command") in COMMANDS

    async def execute(self, params: JsonObject, stop: asyncio.Event) -> JsonObject:
        """Do what a command says, and show it.

        Args:
            params: those of `workspace/executeCommand` that `takes` knows.
            stop: set when the client cancels the request: a run is then answered with its result, as `run` is.

        Raises:
            SidecarError: as the sidecar refused or failed; the user has been shown its message.
        """
        command, arguments = params["command"], params.get("arguments")
        try:
            match command:
                case "sidecar.run":
                    return await self._run(_run_params(arguments), params.get("workDoneToken"), stop)
                case "sidecar.explain":
                    return await self._run(self._tasks.explain(_only(arguments)), params.get("workDoneToken"), stop)
                case "sidecar.fix":
                    return await self._run(self._tasks.fix(_only(arguments)), params.get("workDoneToken"), stop)
                case "sidecar.cancel":
                    return await self._cancel(_options(command, arguments))
                case "sidecar.newSession":
                    return await self._new_session(_options(command, arguments))
                case _:
                    return await self._show_state()
        except ServerCancelled:  # whoever ends the editor wants to read nothing of it
            raise
        except SessionBusy:
            self._show(_ERROR, _BUSY)
            raise
        except SidecarError as error:
            self._show(_ERROR, error.message)
            raise

    def cancel_progress(self, params: Json) -> None:
        """`window/workDoneProgress/cancel`: without effect where nothing is under way with that token."""
        token = cast("JsonObject", params).get("token") if isinstance(params, dict) else None
        if _is_token(token) and token in self._stops:
            self._stops[token].set()

    async def _run(self, given: JsonObject, token: Json, stop: asyncio.Event) -> JsonObject:
        session_id = given["sessionId"] if "sessionId" in given else await self._session()
        params = {"runId": new_id("run"), **given, "sessionId": session_id, "wait": "completed"}
        display = RunDisplay()
        async with self._progress(token, stop) as progress:

            def on_event(event: JsonObject) -> None:
                display.take(event)
                progress.report(display.line)

            try:
                result = await self._run_until_stopped(params, on_event, stop)
            except SidecarError:
                progress.outcome = "failed"
                raise
            progress.outcome = ending(result)
        if result["status"] == "completed":
            self._show(_INFO, result["text"] or f"(no text: {ending(result)})")
        else:
            self._show(_WARNING, f"{result['text']}\n({ending(result)})".strip())
        return result

    async def _run_until_stopped(
        self, params: JsonObject, on_event: Callable[[JsonObject], None], stop: asyncio.Event
    ) -> JsonObject:
        # The run first: it must be known before anything can ask to cancel it.
        run = asyncio.create_task(self._sidecar.run(params, on_event))
        stopped = asyncio.create_task(stop.wait())
        try:
            await asyncio.wait({run, stopped}, return_when=asyncio.FIRST_COMPLETED)
            if not run.done():
                await self._sidecar.cancel_run({"sessionId": params["sessionId"], "runId": params["runId"]})
            return await run
        finally:
            stopped.cancel()
            run.cancel()

    async def _cancel(self, given: JsonObject) -> JsonObject:
        if not given and self._session_id is None:
            return {"status": "notRunning"}
        return await self._sidecar.cancel_run(given or {"sessionId": self._session_id})

    async def _new_session(self, given: JsonObject) -> JsonObject:
        async with self._opening:
            created = await self._create(given)
        self._show(_INFO, f"new session {self._session_id}")
        return created

    async def _show_state(self) -> JsonObject:
        session = {} if self._session_id is None else {"sessionId": self._session_id}
        state = await self._sidecar.get_state({**session, "include": list(_STATE)})
        self._show(_INFO, state_line(state))
        return state

    async def _session(self) -> str:
        async with self._opening:
            if self._session_id is None:
                await self._create({})
            return str(self._session_id)

    async def _create(self, params: JsonObject) -> JsonObject:
        given: Json = params.get("contextProviders") or []
        if self._can.apply_edit and isinstance(given, list):  # whatever else it is, `createSession` refuses it
            params = {**params, "contextProviders": [*cast("list[Json]", given), EDITS]}
        created = await self._sidecar.create_session(params)
        self._session_id = created["session"]["sessionId"]
        return created

    @asynccontextmanager
    async def _progress(self, given: Json, stop: asyncio.Event) -> AsyncGenerator[Progress]:
        """Progress under the client's token, or under one of ours where it takes those; its user may set `stop`."""
        token: Token | None = given if _is_token(given) else None
        create = None
        if token is None and self._can.progress:
            token = new_id("progress")
            create = partial(self._client.create_progress, token)
        if token is not None:
            self._stops[token] = stop
        try:
            async with Progress(self._client.notify, token, "agent-sidecar", create=create) as progress:
                yield progress
        finally:
            if token is not None:
                self._stops.pop(token, None)

    def _show(self, kind: int, message: str) -> None:
        self._client.notify("window/showMessage", {"type": kind, "message": message})


def _is_token(value: Json) -> TypeGuard[Token]:
    return isinstance(value, str | int) and not isinstance(value, bool)


def _run_params(arguments: Json) -> JsonObject:
    """`[prompt]`, or `[{input, …}]` with params of `run`."""
    given = _only(arguments)
    if isinstance(given, str):
        return {"input": given}
    if isinstance(given, dict) and "input" in given:
        return cast("JsonObject", given)
    raise _refused("sidecar.run takes one argument: the prompt, or an object with `input` as for `run`")


def _options(command: str, arguments: Json) -> JsonObject:
    """Nothing, or one object with params of the method that the command stands for."""
    given = _only(arguments)
    if given is None:
        return {}
    if isinstance(given, dict):
        return cast("JsonObject", given)
    raise _refused(f"{command} takes no argument, or one object")


def _only(arguments: Json) -> Json:
    """The one argument; None where there is none. Some editors send null for an empty list, or null in it."""
    given = cast("list[Json]", arguments) if isinstance(arguments, list) else arguments
    if given is None or given == []:
        return None
    if isinstance(given, list) and len(cast("list[Json]", given)) == 1:
        return cast("list[Json]", given)[0]
    raise _refused("arguments must be a list of one at most")


def _refused(message: str) -> InvalidParams:
    return InvalidParams(message, [{"path": "arguments", "message": message}])
