"""Checks on params that types alone cannot say. Each raises what the host is told."""

from pathlib import PurePath

from sidecar.errors import InvalidParams


def check_cwd(cwd: str | None) -> None:
    """A session's folder is an absolute path.

    Raises:
        InvalidParams: it is not.
    """
    if cwd is not None and not PurePath(cwd).is_absolute():
        raise InvalidParams("cwd must be an absolute path", [{"path": "cwd", "message": "not absolute"}])
