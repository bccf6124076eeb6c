"""From an id that a host chose to a file name that is safe and its own on every disk. Touches no file."""

import base64
import hashlib
import re
from typing import Final

PREFIX: Final = "~session-"
"""How the name begins where the id cannot be one. No id that is taken as it is begins so."""
MAX_NAME: Final = 180
"""Characters of a name, before what a caller appends; most file systems end at 255 bytes."""

_PLAIN: Final = re.compile(r"[a-z0-9_-](?:[a-z0-9._-]*[a-z0-9_-])?")
_DEVICES: Final = frozenset(
    {"con", "prn", "aux", "nul", *(f"{device}{number}" for device in ("com", "lpt") for number in range(10))}
)
"""Names that Windows keeps for devices, whatever follows after a dot."""


def file_name(identity: str, prefix: str = PREFIX) -> str:
    """One name for each id: two ids never share one, not even where a disk ignores case or joins accents.

    Small letters, digits, `.`, `_` and `-` are kept as they are; anything else, also a leading or closing dot, is
    spelt in base32, and what would be too long in the hex digits of its SHA-256.

    Args:
        identity: The id; any text.
        prefix: Of names that are not the id itself; it begins with `~`.
    """
    if len(identity) <= MAX_NAME and _PLAIN.fullmatch(identity) and identity.partition(".")[0] not in _DEVICES:
        return identity
    raw = identity.encode("utf-8", "surrogatepass")
    name = prefix + base64.b32encode(raw).decode("ascii").rstrip("=").lower()
    return name if len(name) <= MAX_NAME else f"{prefix}sha256-{hashlib.sha256(raw).hexdigest()}"
