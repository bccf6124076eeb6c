"""Says what came of an examination: for people, a line a conversation; for programs, one JSON object."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Final

from sidecar.cli.output import Output

from .conversations import Conversation
from .examination import Outcome
from .findings import Finding

_MARKS: Final = {"kept": ("✓", "green"), "broken": ("✗", "bold red"), "notPlayed": ("\N{EN DASH}", "dim")}


@dataclass(frozen=True)
class Verdict:
    """What came of one conversation in all weathers."""

    name: str
    obstacle: str | None = None
    """Why it was not played; None where it was."""
    outcomes: Sequence[Outcome] = field(default_factory=tuple[Outcome, ...])

    @property
    def status(self) -> str:
        """`kept`, `broken` or `notPlayed`."""
        if self.obstacle is not None:
            return "notPlayed"
        return "broken" if any(outcome.findings for outcome in self.outcomes) else "kept"


def show(verdict: Verdict, out: Output) -> None:
    """One conversation, for people."""
    mark, style = _MARKS[verdict.status]
    out.line(f"{mark} {verdict.name}{f': {verdict.obstacle}' if verdict.obstacle else ''}", style)
    for outcome in verdict.outcomes:
        where = "in rough weather: " if outcome.weather == "rough" else ""
        for finding in outcome.findings:
            out.line("    " + f"{where}{finding}".replace("\n", "\n    "))


def show_list(conversations: Sequence[Conversation], out: Output) -> None:
    """What there is to play, for people."""
    for each in conversations:
        mark, style = _MARKS["notPlayed"] if each.obstacle else (" ", "")
        out.line(f"{mark} {each.name}: {each.obstacle or each.summary}", style)


def show_record(findings: Sequence[Finding], out: Output, *, ended: bool) -> None:
    """What was found in a record, for people; `ended`: whether it goes on to the end of its conversation."""
    for finding in findings:
        out.line(str(finding))
    if not ended:
        out.line("the record ends in the middle of a conversation: nobody is blamed for what is not there")
    out.line(f"{len(findings)} against the rules" if findings else "all rules are kept", "bold red" if findings else "")


def show_count(verdicts: Sequence[Verdict], out: Output) -> None:
    """The last line, for people."""
    counts = _counts(verdicts)
    told = f"{counts['kept']} kept, {counts['broken']} broken, {counts['notPlayed']} not played"
    out.line(told, "bold red" if counts["broken"] else "bold green")


def as_json(verdicts: Sequence[Verdict]) -> str:
    """All of it, for programs."""
    conversations = [
        {
            "name": verdict.name,
            "status": verdict.status,
            **({"reason": verdict.obstacle} if verdict.obstacle else {}),
            "findings": [
                {"weather": outcome.weather, **asdict(finding)}
                for outcome in verdict.outcomes
                for finding in outcome.findings
            ],
        }
        for verdict in verdicts
    ]
    return json.dumps({"conversations": conversations, **_counts(verdicts)}, ensure_ascii=False, indent=1)


def list_as_json(conversations: Sequence[Conversation]) -> str:
    """What there is to play, for programs."""
    items = [
        {"name": each.name, "summary": each.summary, **({"reason": each.obstacle} if each.obstacle else {})}
        for each in conversations
    ]
    return json.dumps({"conversations": items}, ensure_ascii=False, indent=1)


def findings_as_json(findings: Sequence[Finding], *, ended: bool) -> str:
    """What was found in a record, for programs."""
    found = [asdict(finding) for finding in findings]
    return json.dumps({"findings": found, "ended": ended}, ensure_ascii=False, indent=1)


def _counts(verdicts: Sequence[Verdict]) -> dict[str, int]:
    return {status: sum(verdict.status == status for verdict in verdicts) for status in _MARKS}
