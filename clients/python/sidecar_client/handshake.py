"""Holds a sidecar's answer to `initialize` against what this client can work with. Sends nothing."""

import re
from typing import Final, cast

from .errors import RpcError, SidecarClientError, SidecarIncompatible
from .types import JsonObject

PROTOCOL_VERSIONS: Final = (1,)
OLDEST_SIDECAR: Final = "0.1.0"
"""The oldest release that has everything which this client relies on."""
_NAME: Final = "agent-sidecar"


def checked(answer: object) -> JsonObject:
    """The answer of `initialize`, if a sidecar gave it that this client can work with.

    Raises:
        SidecarIncompatible: It is no sidecar, or one of another version.
    """
    info, sidecar = _block(answer, "serverInfo"), _block(answer, "capabilities", "experimental", "sidecar")
    name, release, version = info.get("name"), info.get("version"), sidecar.get("protocolVersion")
    if name != _NAME or not sidecar:
        raise SidecarIncompatible(f"what was started is no {_NAME}, but {name or 'a nameless server'}")
    if version not in PROTOCOL_VERSIONS:
        raise _incompatible(f"{_NAME} {release} speaks protocol version {version}")
    if _numbers(str(release)) < _numbers(OLDEST_SIDECAR):
        raise _incompatible(f"{_NAME} {release} is too old, {OLDEST_SIDECAR} is needed")
    return cast("JsonObject", answer)


def refusal(error: RpcError) -> SidecarClientError:
    """What it means that `initialize` was answered with this error."""
    if error.kind != "protocolVersionUnsupported":
        return error
    return _incompatible(f"the sidecar speaks the protocol versions {error.data.get('supported')}")


def _incompatible(what: str) -> SidecarIncompatible:
    ours = ", ".join(map(str, PROTOCOL_VERSIONS))
    return SidecarIncompatible(f"{what}; this client speaks protocol version {ours}. Install another {_NAME}")


def _block(value: object, *keys: str) -> JsonObject:
    """The object under these keys; empty where there is none."""
    block = cast("JsonObject", value) if isinstance(value, dict) else {}
    return _block(block.get(keys[0]), *keys[1:]) if keys else block


def _numbers(release: str) -> tuple[int, ...]:
    """A release to be compared by; what follows its three numbers does not count."""
    found = re.match(r"(\d+)(?:\.(\d+))?(?:\.(\d+))?", release)
    return tuple(int(number) for number in found.groups("0")) if found else (0, 0, 0)
