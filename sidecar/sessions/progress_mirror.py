"""Mirrors a run into LSP's `$/progress`, for clients that asked for it by token. Changes nothing of the run."""

from collections.abc import Callable

from protocol.base import JsonObject

Notify = Callable[[str, JsonObject], None]
Token = str | int


class ProgressMirror:
    """Begin, report and end for a work-done token; text deltas for a partial-result token."""

    def __init__(self, notify: Notify, work_done: Token | None, partial_result: Token | None) -> None:
        self._notify = notify
        self._work_done = work_done
        self._partial_result = partial_result
        self._begun = False

    def begin(self, agent: str) -> None:
        """The run has begun."""
        if self._work_done is not None:
            self._begun = True
            self._progress(self._work_done, {"kind": "begin", "title": f"Agent {agent}", "cancellable": True})

    def event(self, event: str, data: JsonObject) -> None:
        """Something ephemeral has happened in the run."""
        if event == "message.delta" and self._partial_result is not None:
            self._progress(self._partial_result, {"text": data["text"]})
        elif event == "provider.started" and self._work_done is not None:
            self._progress(self._work_done, {"kind": "report", "message": f"{data['phase']}: {data['sourceId']}"})

    def end(self, status: str) -> None:
        """The run has ended."""
        if self._begun and self._work_done is not None:
            self._begun = False
            self._progress(self._work_done, {"kind": "end", "message": status})

    def _progress(self, token: Token, value: JsonObject) -> None:
        self._notify("$/progress", {"token": token, "value": value})
