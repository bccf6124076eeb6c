"""`trustFolder`: a host passes on its user's word on a workspace."""

import asyncio
from pathlib import Path

from protocol.base import Empty
from protocol.state import TrustFolderParams
from sidecar.config.project import distrust_folder, find_project, trust_project
from sidecar.errors import InvalidParams
from sidecar.handlers.reload_config import announced
from sidecar.handlers.services import Call, Services


async def trust_folder(params: TrustFolderParams, call: Call, services: Services) -> Empty:
    """Sessions that are opened from now on see it. A folder without a `sidecar.toml` has nothing to be trusted."""
    folder = Path(params.path)
    if not folder.is_absolute() or "\0" in params.path:
        fault = {"path": "path", "message": "not absolute"}
        raise InvalidParams("path must be the absolute path of a folder", [fault])
    async with announced(services):
        work = _trust if params.trusted else distrust_folder
        await asyncio.to_thread(work, folder, services.workspaces.config_file)
        services.workspaces.forget()
    return Empty()


def _trust(folder: Path, config_file: Path | None) -> None:
    path = find_project(folder, beside=config_file)
    if path is not None:
        trust_project(path)
