"""Plug-ins that a test writes, in a folder and as an installed package; Python's imports are left as they were."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from providers import plugins


@contextmanager
def clean_imports() -> Iterator[None]:
    """Forget modules whose names begin with `plug_`, and every folder of plug-ins."""
    path, hooks, modules = list(sys.path), list(sys.path_hooks), set(sys.modules)
    plugins.installed.cache_clear()
    try:
        yield
    finally:
        for name in set(sys.modules) - modules:
            if name.startswith("plug_"):
                del sys.modules[name]
        sys.path[:], sys.path_hooks[:] = path, hooks
        plugins._folders.clear()
        plugins.installed.cache_clear()
        sys.path_importer_cache.clear()


def write_plugin(folder: Path, name: str, text: str) -> Path:
    """Write a module into a folder of plug-ins; gives the folder."""
    folder.mkdir(mode=0o755, exist_ok=True)
    (folder / f"{name}.py").write_text(text, encoding="utf-8")
    return folder


def install(folder: Path, modules: dict[str, str], **entry_points: str) -> Path:
    """Write a package as pip would leave it.

    Args:
        folder: Where; it is not put on the path.
        modules: Name → code.
        entry_points: Group → `name = module:object`.
    """
    info = folder / "plug_dist-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: plug-dist\nVersion: 1.0\n")
    sections = [f"[agent_sidecar.{group}]\n{lines}\n" for group, lines in entry_points.items()]
    (info / "entry_points.txt").write_text("\n".join(sections))
    for name, text in modules.items():
        (folder / f"{name}.py").write_text(text, encoding="utf-8")
    return folder
