"""`run`: one prompt to the real server, its answer streamed to the terminal. Ctrl-C cancels the run."""

import argparse
import asyncio
import json
import sys
from contextlib import suppress
from typing import Final

from sidecar_client import RpcError, Run, RunEvent, RunResult, Session, SidecarClient
from sidecar_client.types import CreateSessionParams, JsonObject, OneOffParams, RunParams

from . import output
from .command import Arguments, Command, CommandError, serve_arguments
from .output import Output

CANCEL_SECONDS: Final = 3.0
"""How long a run may take to end after Ctrl-C."""


class _Screen:
    """Shows a run to people: the answer's text on stdout, everything else on stderr."""

    def __init__(self) -> None:
        self._out, self._err = output.stdout(), output.stderr()
        self._open_line = False
        self._streamed: set[str] = set()

    def event(self, event: RunEvent) -> None:
        data = event["data"]
        if "parentRunId" in event and event["type"].startswith("message."):
            return  # an agent that works for ours; its answer comes as a tool's
        match event["type"]:
            case "message.delta":
                self._streamed.add(data["messageId"])
                self._text(data["text"])
            case "message.completed" if data["role"] == "assistant":
                if data["messageId"] not in self._streamed:
                    self._text("".join(block.get("text", "") for block in data["content"] if block["type"] == "text"))
                self._end_line()
            case "tool.started" if data["status"] == "running":
                self._note(f"tool {data['name']} {json.dumps(data['arguments'], ensure_ascii=False)}")
            case "tool.completed" if data["status"] != "completed":
                self._note(f"tool {data['name']}: {data['status']}")
            case "provider.failed":
                self._complain(f"provider {data['sourceId']} failed: {data['error']['message']}")
            case "warning":
                self._complain(data["message"])
            case _:
                pass

    def result(self, result: RunResult) -> None:
        self._end_line()
        for warning in result["warnings"]:
            self._note(warning["message"])

    def error(self, error: RpcError) -> None:
        del error  # `main` tells people
        self._end_line()

    def _text(self, text: str) -> None:
        if text:
            self._out.write(text)
            self._open_line = not text.endswith("\n")

    def _end_line(self) -> None:
        if self._open_line:
            self._out.line()
            self._open_line = False

    def _note(self, text: str) -> None:
        if self._err.is_terminal:
            self._complain(text)

    def _complain(self, text: str) -> None:
        self._end_line()
        self._err.line(f"· {text}", "dim")


class _JsonLines:
    """Shows a run to programs: one object a line, with the one key `event`, `result` or `error`."""

    def __init__(self) -> None:
        self._out: Output = output.stdout()

    def event(self, event: RunEvent) -> None:
        self._write(event=event)

    def result(self, result: RunResult) -> None:
        self._write(result=result)

    def error(self, error: RpcError) -> None:
        self._write(error={"code": error.code, "message": error.message, "data": error.data})

    def _write(self, **line: RunEvent | RunResult | JsonObject) -> None:
        self._out.line(json.dumps(line, ensure_ascii=False))


def _configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("prompt", help="what to say; - reads it from stdin")
    parser.add_argument("--session", metavar="ID", help="remember: go on with this session, or begin it")
    parser.add_argument("--agent", metavar="NAME", help="an agent of the configuration")
    parser.add_argument("--model", metavar="MODEL", help="endpoint:model, e.g. openai:gpt-4.1-mini")
    parser.add_argument("--timeout", metavar="SECONDS", type=_seconds, help="cancel the run after this time")
    parser.add_argument("--json", action="store_true", help="print events, and at last the result, as JSON lines")


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0.001 <= seconds <= 1e9:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of seconds above 0.001")
    return seconds


def _execute(arguments: Arguments) -> int:
    prompt = sys.stdin.read() if arguments.prompt == "-" else arguments.prompt
    screen = _JsonLines() if arguments.json else _Screen()
    result = asyncio.run(_run(arguments, prompt, screen))
    if result["stopReason"] == "inputRequired":
        raise CommandError("the run waits for an approval, which this command cannot give; use a host that can")
    if result["stopReason"] == "timeout":
        raise CommandError(f"the run did not end within {arguments.timeout:g} s; give it more with --timeout")
    if result["status"] != "completed":
        raise CommandError(f"the run was {result['status']} ({result['stopReason']})")
    return 0


async def _run(arguments: Arguments, prompt: str, screen: _Screen | _JsonLines) -> RunResult:
    async with SidecarClient.start(serve_arguments(arguments)) as client:
        run = await _start(client, arguments, prompt)
        try:
            result = await _show(run, screen)
        except RpcError as error:
            screen.error(error)
            raise
        except asyncio.CancelledError:  # Ctrl-C: let the run end as cancelled, and be stored
            run.cancel()
            with suppress(TimeoutError):
                await asyncio.wait_for(_show(run, screen), CANCEL_SECONDS)
            raise
    return result


async def _show(run: Run, screen: _Screen | _JsonLines) -> RunResult:
    async for event in run:
        screen.event(event)
    result = await run.result()
    screen.result(result)
    return result


async def _start(client: SidecarClient, arguments: Arguments, prompt: str) -> Run:
    params = RunParams()
    if arguments.timeout is not None:
        params["timeoutMs"] = round(arguments.timeout * 1000)
    if arguments.model is not None:
        params["options"] = {"model": arguments.model}
    if arguments.session is not None:
        session = await _open_session(client, arguments)
        return session.stream(prompt, **params)
    one_off = OneOffParams(**params)
    if arguments.agent is not None:
        one_off["agent"] = arguments.agent
    return client.stream(prompt, **one_off)


async def _open_session(client: SidecarClient, arguments: Arguments) -> Session:
    try:
        session = await client.resume_session(arguments.session)
    except RpcError as error:
        if error.kind != "sessionNotFound":
            raise
        params = CreateSessionParams(sessionId=arguments.session)
        if arguments.agent is not None:
            params["agent"] = arguments.agent
        return await client.create_session(**params)
    its_agent = session.info["agent"]
    if arguments.agent not in (None, its_agent):
        raise CommandError(f"session {arguments.session!r} has the agent {its_agent!r}; leave --agent out", code=2)
    return session


COMMAND = Command("run", "send one prompt and print the answer", _configure, _execute)
