"""Which version of the program this is, and which versions of the protocol it speaks. Constants only."""

from typing import Final

VERSION: Final = "0.1.0"
"""The distribution's version; hatch reads it from this line."""

PROTOCOL_VERSION: Final = 1
"""The newest major version of the wire contract that this build speaks."""

PROTOCOL_VERSIONS: Final = (1,)
"""Every major version that this build speaks, oldest first."""
