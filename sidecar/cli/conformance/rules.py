"""Holds a log of the wire against the rules of the contract: lines in, findings out. Reads no file, starts nothing.

A log is in the format of the golden conversations. It may hold several processes, one after the other, each of which
ends by a line `exit` or `kill`; the last one may go on.
"""

from collections import Counter
from collections.abc import Sequence

from .client_rules import ClientRules
from .conversations import Line
from .findings import Finding
from .sidecar_rules import SidecarRules


def check(
    lines: Sequence[Line], excused: Counter[tuple[str, int]] | None = None, *, whole: bool = True
) -> list[Finding]:
    """What in a log is against the rules, in the order of its lines.

    Args:
        lines: The log.
        excused: How often a request of a method may be refused with a code, because it is meant to be.
        whole: Whether the conversation is over where the log is.
    """
    client, sidecar = ClientRules(excused or Counter()), SidecarRules()
    for line in lines:
        match line.kind:
            case "→":
                client.sent(line)
                sidecar.sent(line)
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
    if whole and lines:
        client.finish(lines[-1])
    return sorted([*client.findings, *sidecar.findings], key=lambda finding: finding.line or 0)
