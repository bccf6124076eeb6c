"""Checks on params that types alone cannot say. Each raises what the host is told."""

from pathlib import PurePath

from protocol.runs import RunParams
from sidecar.errors import CapabilityRequired, InvalidParams

_RUN_NOT_YET = {
    "middleware": "middleware",
    "function_invocation_kwargs": "tools",
}
"""Fields of `run` that this build does not have: field → feature."""


def refuse_what_is_not_there(params: RunParams) -> None:
    """Refuse fields and values of `run` whose feature this build lacks.

    Raises:
        CapabilityRequired: naming the feature.
    """
    for field, feature in _RUN_NOT_YET.items():
        if getattr(params, field) is not None:
            raise CapabilityRequired(feature, f"run with {field!r}")
    options = params.options
    if options is not None:
        if options.store:
            raise CapabilityRequired("serviceHistory", "option 'store'")
        if options.tool_choice not in (None, "auto", "none"):
            raise CapabilityRequired("tools", "option 'toolChoice'")


def check_cwd(cwd: str | None) -> None:
    """A session's folder is an absolute path.

    Raises:
        InvalidParams: it is not.
    """
    if cwd is not None and not PurePath(cwd).is_absolute():
        raise InvalidParams("cwd must be an absolute path", [{"path": "cwd", "message": "not absolute"}])
