"""Holds a log of the wire against the rules of the contract: lines in, findings out. Reads no file, starts nothing.

A log is in the format of the golden conversations. It may hold several processes, one after the other, each of which
ends by a line `exit` or `kill`; the last one may go on. It may come from anywhere: nothing in it makes `check` raise.
"""

import re
from collections import Counter
from collections.abc import Sequence
from typing import Final

from .client_rules import ClientRules
from .conversations import Line
from .findings import Finding
from .messages import short
from .shapes import fault_of, hides, members, text
from .sidecar_rules import SidecarRules

_GAP: Final = re.compile(r" missing here\b|^the (client|parent)\b")
"""What the recorder says where messages are not in its record: it left some out, or nobody read them any longer."""


def check(lines: Sequence[Line], excused: Counter[tuple[str, int]] | None = None) -> list[Finding]:
    """What in a log is against the rules, in the order of its lines.

    Args:
        lines: The log.
        excused: How often a request of a method may be refused with a code, because it is meant to be.
    """
    client, sidecar, unreadable = ClientRules(excused or Counter()), SidecarRules(), list[Finding]()
    for line in lines:
        if _is_gap(line):
            client.lose()
            sidecar.lose()
        match line.kind:
            case "→":
                client.sent(line)
                sidecar.sent(line)
            case "←" if (fault := fault_of(line.value)) is not None:
                unreadable.append(Finding("sidecar", f"{fault}: {short(line.value)}", line.number))
            case "←":
                client.received(line)
                sidecar.received(line)
            case "eof":
                client.closed()
            case "exit":
                client.exited(line)
                sidecar.exited(line)
            case "kill":
                client.begin()
                sidecar.begin()
            case "#":
                pass
    return sorted([*unreadable, *client.findings, *sidecar.findings], key=lambda finding: finding.line or 0)


def _is_gap(line: Line) -> bool:
    """Whether from here on something that was said is not known."""
    if line.kind == "#":
        return _GAP.search(text(line.value)) is not None
    return line.kind in ("→", "←") and hides(members(line.value))
