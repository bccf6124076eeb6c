"""`run`: one prompt to the real server, its answer streamed to the terminal. Ctrl-C cancels the run, questions too."""

import argparse
import asyncio
import sys
from contextlib import suppress

from sidecar_client import RpcError, Run, RunResult, SidecarClient
from sidecar_client.types import CreateSessionParams, OneOffKeywords, RunKeywords

from .asking import Asking, no_input_option
from .command import Arguments, Command, CommandError, serve_arguments
from .opening import open_session
from .screen import JsonLines, Screen, TextScreen, show_or_cancel


def _configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("prompt", help="what to say; - reads it from stdin")
    parser.add_argument("--session", metavar="ID", help="remember: go on with this session, or begin it")
    parser.add_argument("--agent", metavar="NAME", help="an agent of the configuration")
    parser.add_argument("--model", metavar="MODEL", help="endpoint:model, e.g. openai:gpt-4.1-mini")
    parser.add_argument("--timeout", metavar="SECONDS", type=_seconds, help="cancel the run after this time")
    parser.add_argument("--json", action="store_true", help="print events, and at last the result, as JSON lines")
    parser.add_argument("--explain", action="store_true", help="at last show what the model saw, and from whom")
    no_input_option(parser)


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
    screen: Screen = JsonLines() if arguments.json else TextScreen()
    result = asyncio.run(_run(arguments, prompt, screen))
    if result["stopReason"] == "inputRequired":
        raise CommandError("the run waits for consent to a call; agent-sidecar chat --session asks, on a terminal")
    if result["stopReason"] == "timeout":
        raise CommandError(f"the run did not end within {arguments.timeout:g} s; give it more with --timeout")
    if result["status"] != "completed":
        raise CommandError(f"the run was {result['status']} ({result['stopReason']})")
    return 0


async def _run(arguments: Arguments, prompt: str, screen: Screen) -> RunResult:
    asking = Asking(screen, no_input=arguments.no_input)
    async with SidecarClient.start(serve_arguments(arguments), host=asking.host) as client:
        run = await _start(client, arguments, prompt)
        try:
            result = await show_or_cancel(run, screen)
            while result["stopReason"] == "inputRequired":
                answers = await asking.parked(client, result["sessionId"])
                if answers is None:
                    break
                run = client.start_run({**run.params, "input": answers, "runId": None})
                result = await show_or_cancel(run, screen)
        except RpcError:
            if arguments.explain:
                with suppress(RpcError):  # of a run that was refused nothing is known
                    await _explain(client, run, screen)
            raise
        if arguments.explain:
            await _explain(client, run, screen)
        return result


async def _explain(client: SidecarClient, run: Run, screen: Screen) -> None:
    screen.explanation(await client.explain_run(run.run_id, session_id=run.params.get("sessionId")))


async def _start(client: SidecarClient, arguments: Arguments, prompt: str) -> Run:
    params = RunKeywords()
    if arguments.timeout is not None:
        params["timeoutMs"] = round(arguments.timeout * 1000)
    if arguments.model is not None:
        params["options"] = {"model": arguments.model}
    if arguments.session is not None:
        new = CreateSessionParams() if arguments.agent is None else CreateSessionParams(agent=arguments.agent)
        session = await open_session(client, arguments.session, new)
        return session.stream(prompt, **params)
    one_off = OneOffKeywords(**params) if arguments.agent is None else OneOffKeywords(**params, agent=arguments.agent)
    return client.stream(prompt, **one_off)


COMMAND = Command("run", "send one prompt and print the answer", _configure, _execute)
