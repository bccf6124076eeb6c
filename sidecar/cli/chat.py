"""`chat`: a conversation on the terminal, in one session. Ctrl-C cancels a run; a second one, or Ctrl-D, leaves."""

import argparse
import asyncio
from collections.abc import Callable, Coroutine
from contextlib import AsyncExitStack
from typing import Any, Final

from sidecar_client import RpcError, Session, SidecarClient
from sidecar_client.types import CreateSessionParams, RunInput, RunKeywords, RunResult

from . import output
from .asking import Asking, no_input_option
from .command import Arguments, Command, serve_arguments
from .line_editor import LineEditor, history_file
from .opening import open_session
from .screen import TextScreen, show
from .session_text import describe_message, describe_state, transcript

PROMPT: Final = "> "


class _Chat:
    """The conversation: what is typed goes to the session, or to one of the commands that begin with a slash."""

    def __init__(self, client: SidecarClient, arguments: Arguments, screen: TextScreen, asking: Asking) -> None:
        self._client = client
        self._arguments = arguments
        self._out, self._err = output.stdout(), output.stderr()
        self._screen = screen
        self._asking = asking
        self._session: Session | None = None
        self._commands: dict[str, Callable[[Session], Coroutine[Any, Any, None]]] = {
            "/new": self._new,
            "/state": self._state,
            "/history": self._history,
        }

    async def begin(self) -> None:
        """Open the session."""
        if self._arguments.session is None:
            self._session = await self._client.create_session(**self._wanted())
        else:
            self._session = await open_session(self._client, self._arguments.session, self._wanted())
        self._screen.remark(f"session {self._session.session_id}; /new, /state, /history, /quit")
        if self._session.pending_requests:
            await self._go_on(self._session)

    async def take(self, text: str) -> bool:
        """Do what a line says; whether to go on."""
        session, line = self._session, text.strip()
        if not line or session is None:
            return True
        if line == "/quit":
            return False
        try:
            if not line.startswith("/"):
                await self._run(session, text)
            elif line in self._commands:
                await self._commands[line](session)
            else:
                self._screen.remark(f"there is no {line.split()[0]}; there are {', '.join(self._commands)} and /quit")
        except RpcError as error:
            self._err.line(f"agent-sidecar: {error.message}", "red")
        return True

    def hint(self) -> None:
        """Ctrl-C where nothing runs."""
        self._err.line()
        self._screen.remark("Ctrl-C again, or Ctrl-D, leaves")

    async def _run(self, session: Session, text: str) -> None:
        result = await self._seen_through(session, text)
        self._tell_end(result)
        if result["stopReason"] == "inputRequired":
            await self._go_on(session)

    async def _seen_through(self, session: Session, run_input: RunInput) -> RunResult:
        params = RunKeywords()
        if self._arguments.model is not None:
            params["options"] = {"model": self._arguments.model}
        run = session.stream(run_input, **params)
        try:
            return await show(run, self._screen)
        except asyncio.CancelledError:  # Ctrl-C; a second one comes through as KeyboardInterrupt
            run.cancel()
            self._screen.remark("the run is being cancelled; Ctrl-C again leaves")
            return await show(run, self._screen)

    async def _go_on(self, session: Session) -> None:
        """Ask for what runs wait for, and let each go on; after Ctrl-C they wait on."""
        while True:
            try:
                answers = await self._asking.parked(self._client, session.session_id)
            except asyncio.CancelledError:
                self._screen.remark("the call waits on; the next chat in this session asks again")
                return
            if answers is None:
                return
            self._tell_end(await self._seen_through(session, answers))

    def _tell_end(self, result: RunResult) -> None:
        if result["status"] != "completed":
            self._screen.remark(f"the run was {result['status']}")
        elif result["stopReason"] == "inputRequired":
            self._screen.remark("the run waits for consent")
        elif result["stopReason"] != "endTurn":
            self._screen.remark(f"the answer ended with {result['stopReason']}")

    async def _new(self, session: Session) -> None:
        self._session = await self._client.create_session(**self._wanted())
        await session.close()
        self._screen.remark(f"session {self._session.session_id}")

    async def _state(self, session: Session) -> None:
        self._out.write(describe_state(await session.get_state()))

    async def _history(self, session: Session) -> None:
        async for message in transcript(session.session_id, self._client):
            self._out.line(describe_message(message))

    def _wanted(self) -> CreateSessionParams:
        given = {key: getattr(self._arguments, key) for key in ("agent", "model")}
        wanted: CreateSessionParams = {}
        if given["agent"] is not None:
            wanted["agent"] = given["agent"]
        if given["model"] is not None:
            wanted["model"] = given["model"]
        return wanted


def _configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--session", metavar="ID", help="go on with this session, or begin it; default: a new one")
    parser.add_argument("--agent", metavar="NAME", help="an agent of the configuration")
    parser.add_argument("--model", metavar="MODEL", help="endpoint:model, e.g. openai:gpt-4.1-mini")
    no_input_option(parser)


def _execute(arguments: Arguments) -> int:
    with LineEditor(history_file()) as editor, asyncio.Runner() as runner:
        stack = AsyncExitStack()
        try:
            _converse(runner.run(_begin(stack, arguments)), editor, runner)
        finally:
            runner.run(stack.aclose())
    return 0


async def _begin(stack: AsyncExitStack, arguments: Arguments) -> _Chat:
    screen = TextScreen()
    asking = Asking(screen, no_input=arguments.no_input)
    starting = SidecarClient.start(serve_arguments(arguments), host=asking.host, reconnect=True)
    chat = _Chat(await stack.enter_async_context(starting), arguments, screen, asking)
    await chat.begin()
    return chat


def _converse(chat: _Chat, editor: LineEditor, runner: asyncio.Runner) -> None:
    """Take lines until the end. The loop runs while a line is dealt with, and rests while one is awaited."""
    warned = False
    while True:
        try:
            line = editor.ask(PROMPT)
        except KeyboardInterrupt:
            if warned:
                return
            warned = True
            chat.hint()
            continue
        warned = False
        if line is None or not runner.run(chat.take(line)):
            return


COMMAND = Command("chat", "talk with an agent on the terminal", _configure, _execute)
