"""What a user is shown of a run, a state or a session: short texts, made from the wire's objects."""

from typing import Final

from protocol.base import JsonObject

SHOWN_CHARACTERS: Final = 2000
"""Of a text that grows, its end is shown."""


class RunDisplay:
    """The line that stands for a run under way: what it does, or the answer so far."""

    def __init__(self) -> None:
        self._text = ""
        self._stage = ""

    @property
    def line(self) -> str:
        """To be shown now."""
        return self._text[-SHOWN_CHARACTERS:] or self._stage

    def take(self, event: JsonObject) -> None:
        """An event of the run; what its delegates write is theirs."""
        data = event["data"]
        is_delegate = "parentRunId" in event
        match event["type"]:
            case "message.started" if not is_delegate:
                self._text = ""
            case "message.delta" if not is_delegate:
                self._text += data["text"]
            case "run.queued":
                self._stage = "waiting for another run"
            case "provider.started":
                self._stage = f"{data['sourceId']}: {data['phase']}"
            case "reasoning.delta":
                self._stage = "reasoning"
            case "tool.started":
                self._text = ""
                self._stage = f"tool {data['name']}"
            case _:
                pass


def ending(result: JsonObject) -> str:
    """How a run ended, in a word or two."""
    status, reason = result["status"], result["stopReason"]
    return reason if status == "completed" or reason == status else f"{status}: {reason}"


def state_line(state: JsonObject) -> str:
    """A session's state in one line; the process's, where there is no session yet."""
    documents = f"{len(state.get('documents', ()))} open documents"
    session = state.get("session")
    if session is None:
        return f"no session yet; {documents}"
    usage: dict[str, int] = state.get("usage") or {}
    tokens = usage.get("inputTokens", 0) + usage.get("outputTokens", 0)
    stage = f" ({state['activeRun']['stage']})" if state.get("activeRun") else ""
    return f"session {session['sessionId']}: {session['status']}{stage}; {tokens} tokens; {documents}"
