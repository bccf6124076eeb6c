"""`trustFolder`: a host passes on its user's word on a workspace."""

import asyncio
from pathlib import Path

from protocol.base import Empty
from protocol.state import TrustFolderParams
from sidecar.config.project import distrust_folder, find_project, trust_project
from sidecar.errors import InvalidParams

from .reload_config import announced
from .services import Call, Services


async def trust_folder(params: TrustFolderParams, call: Call, services: Services) -> Empty:
    """Sessions that are opened from now on see it. A folder without a `sidecar.toml` has nothing to be trusted."""
    folder = Path(params.path)
    if not folder.is_absolute():
        fault = {"path": "path", "message": "not absolute"}
        raise InvalidParams("path must be the absolute path of a folder", [fault])
    async with announced(services):
        await asyncio.to_thread(_apply, folder, services.workspaces.config_file, trusted=params.trusted)
        services.workspaces.forget()
    return Empty()


def _apply(folder: Path, config_file: Path | None, *, trusted: bool) -> None:
    if not trusted:
        distrust_folder(folder, beside=config_file)
        return
    path = find_project(folder, beside=config_file)
    if path is not None:
        trust_project(path)
