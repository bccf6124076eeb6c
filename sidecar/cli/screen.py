"""Shows a run as it goes: to people, or as JSON lines to programs. It starts none."""

import asyncio
import json
from contextlib import suppress
from typing import Final, Protocol

from sidecar_client import RpcError, Run, RunEvent, RunResult
from sidecar_client.types import ExplainRunResult, JsonObject

from . import output
from .explanation import write_explanation

CANCEL_SECONDS: Final = 3.0
"""How long a run may take to end after Ctrl-C."""


class Screen(Protocol):
    """Where a run is shown."""

    def event(self, event: RunEvent) -> None:
        """Something happened."""
        ...

    def result(self, result: RunResult) -> None:
        """The run ended, and did not fail."""
        ...

    def error(self, error: RpcError) -> None:
        """The run failed."""
        ...

    def explanation(self, explanation: ExplainRunResult) -> None:
        """What the model saw; after the result, or the error."""
        ...

    def pause(self) -> None:
        """Something that is no part of the run is about to be shown."""
        ...


class TextScreen:
    """Shows a run to people: the answer's text on stdout, everything else on stderr."""

    def __init__(self) -> None:
        self._out, self._err = output.stdout(), output.stderr()
        self._open_line = False
        self._streamed: set[str] = set()

    def event(self, event: RunEvent) -> None:
        """Show what a person wants to see of it."""
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
                self.pause()
            case "tool.started" if data["status"] == "running":
                self._note(f"tool {data['name']} {json.dumps(data['arguments'], ensure_ascii=False)}")
            case "tool.completed" if data["status"] != "completed":
                self._note(f"tool {data['name']}: {data['status']}")
            case "provider.failed":
                self.remark(f"provider {data['sourceId']} failed: {data['error']['message']}")
            case "warning":
                self.remark(data["message"])
            case _:
                pass

    def result(self, result: RunResult) -> None:
        """End the line, and show the warnings."""
        self.pause()
        for warning in result["warnings"]:
            self._note(warning["message"])

    def error(self, error: RpcError) -> None:
        """End the line: the caller tells people what went wrong."""
        del error
        self.pause()

    def explanation(self, explanation: ExplainRunResult) -> None:
        """Show it on stderr: stdout is the answer's."""
        write_explanation(explanation, self._err)

    def pause(self) -> None:
        """End the line."""
        if self._open_line:
            self._out.line()
            self._open_line = False

    def remark(self, text: str) -> None:
        """Say something that is no part of the answer, on a line of its own."""
        self.pause()
        self._err.line(f"· {text}", "dim")

    def _text(self, text: str) -> None:
        if text:
            self._out.write(text)
            self._open_line = not text.endswith("\n")

    def _note(self, text: str) -> None:
        if self._err.is_terminal:
            self.remark(text)


class JsonLines:
    """Shows a run to programs: one object a line, with the one key `event`, `result`, `error` or `explanation`."""

    def __init__(self) -> None:
        self._out = output.stdout()

    def event(self, event: RunEvent) -> None:
        """Write the whole event."""
        self._write(event=event)

    def result(self, result: RunResult) -> None:
        """Write the whole result."""
        self._write(result=result)

    def error(self, error: RpcError) -> None:
        """Write the error as the sidecar answered it."""
        self._write(error={"code": error.code, "message": error.message, "data": error.data})

    def explanation(self, explanation: ExplainRunResult) -> None:
        """Write it whole."""
        self._write(explanation=explanation)

    def pause(self) -> None:
        """Nothing: each object has its line."""

    def _write(self, **line: RunEvent | RunResult | ExplainRunResult | JsonObject) -> None:
        self._out.line(json.dumps(line, ensure_ascii=False))


async def show(run: Run, screen: Screen) -> RunResult:
    """Show a run to its end.

    Raises:
        RpcError: It failed; the screen was told.
        SidecarDied: The sidecar ended first.
    """
    try:
        async for event in run:
            screen.event(event)
        result = await run.result()
    except RpcError as error:
        screen.error(error)
        raise
    screen.result(result)
    return result


async def show_or_cancel(run: Run, screen: Screen) -> RunResult:
    """Show a run; where this is cancelled, by Ctrl-C, cancel the run and show how it ends.

    Raises:
        RpcError: It failed; the screen was told.
        SidecarDied: The sidecar ended first.
    """
    try:
        return await show(run, screen)
    except asyncio.CancelledError:  # let it end as cancelled, and be stored
        run.cancel()
        with suppress(TimeoutError):
            await asyncio.wait_for(show(run, screen), CANCEL_SECONDS)
        raise
