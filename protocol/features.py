"""What `initialize` says this build can do, and the limits that a host has to know. Constants only."""

from typing import Final

FEATURES: Final[dict[str, dict[str, dict[str, bool]]]] = {
    "streaming": {},
    "replay": {},
    "structuredOutput": {},
    "queue": {},
    "steering": {},
    "fork": {},
    "export": {},
    "reloadConfig": {},
    "trust": {},
    "plugins": {},
    "tools": {},
    "middleware": {},
    "delegation": {},
    "independentProviders": {},
    "perServiceCallHistory": {},
    "serviceHistory": {},
    "explain": {},
    "memories": {},
    "hostTools": {},
    "hostProviders": {},
    "approvals": {},
    "elicitation": {"form": {}, "url": {}},
    "editorContext": {},
}
"""An object a feature; `{}` means supported. A feature that is absent is refused with `capabilityRequired`."""

LIMITS: Final[dict[str, int]] = {"maxMessageBytes": 64 * 1024 * 1024, "maxQueuedRuns": 16, "maxInFlight": 4096}
"""The defaults of those limits of the contract that a host meets."""
