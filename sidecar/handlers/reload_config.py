"""`reloadConfig`: read the configuration again. Sessions take it up when they are opened or resumed."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from protocol.base import Empty
from protocol.methods import CONFIG_UPDATED
from protocol.sessions import WireWarning
from protocol.state import ConfigUpdated, ReloadConfigResult
from sidecar.agents.workspaces import IGNORED
from sidecar.errors import SidecarError

from .services import Call, Services


async def reload_config(params: Empty, call: Call, services: Services) -> ReloadConfigResult:
    """A configuration that is wrong is refused, and the one before stays."""
    return await reload(services)


async def reload(services: Services) -> ReloadConfigResult:
    """Read it again; what counts for whom is `Workspaces.reload`'s to say.

    Raises:
        ConfigInvalid: it is wrong.
        CapabilityRequired: it asks for what this build does not have.
    """
    async with announced(services):
        fixed = await services.workspaces.reload()
        services.config_error = None
    await services.workspaces.close_unused(services.sessions.models_in_use)
    try:
        workspace = await services.workspaces.of(None)
    except SidecarError as error:  # the project's file: its sessions will be refused, and no others
        base = services.workspaces.base
        wrong = WireWarning(kind=IGNORED, message=error.message)
        return ReloadConfigResult(agents=len(base.catalog.infos()), warnings=(*fixed, *base.warnings, wrong))
    return ReloadConfigResult(agents=len(workspace.catalog.infos()), warnings=(*fixed, *workspace.warnings))


@asynccontextmanager
async def announced(services: Services) -> AsyncGenerator[None, None]:
    """Tell the client if what can be named in a request is another after this than before."""
    before = await _on_offer(services)
    yield
    after = await _on_offer(services)
    if after != before:
        services.sessions.outlet.notify(CONFIG_UPDATED, after.wire())


async def _on_offer(services: Services) -> ConfigUpdated:
    try:
        workspace = await services.workspaces.of(None)
    except SidecarError:
        workspace = services.workspaces.base
    return ConfigUpdated(
        agents=tuple(info.name for info in workspace.catalog.infos()),
        models=tuple(info.model for info in await workspace.models.infos(workspace.catalog.models())),
    )
