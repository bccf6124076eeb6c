"""The runs of one client that have no answer yet, and which of them an event belongs to. Sends nothing."""

from .run import Run
from .types import RunEvent


class Runs:
    """Runs by session and id, which is unique in its session only; a one-off run by its id alone."""

    def __init__(self) -> None:
        self._runs: dict[tuple[str | None, str], Run] = {}

    @property
    def unanswered(self) -> list[Run]:
        """The runs that wait for an answer, oldest first."""
        return list(dict.fromkeys(self._runs.values()))

    def add(self, run: Run) -> None:
        """A run that was begun."""
        self._runs[run.params.get("sessionId"), run.run_id] = run

    def remove(self, run: Run) -> None:
        """It has its answer; harmless if it is not here."""
        for key in [key for key, known in self._runs.items() if known is run]:
            del self._runs[key]

    def of(self, event: RunEvent) -> Run | None:
        """The run that an event belongs to; a delegated run's events belong to the run that began it all."""
        session_id, run_id = event["sessionId"], event.get("runId", "")
        for its_id in (run_id, event.get("parentRunId", "")):
            for key in ((session_id, its_id), (None, its_id)):
                if (run := self._runs.get(key)) is not None:
                    self._runs[session_id, run_id] = run
                    return run
        return None
