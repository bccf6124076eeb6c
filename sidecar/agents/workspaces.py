"""The configuration of each folder that sessions work in: its agents, models and limits. It runs no agent."""

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

from protocol.sessions import WireWarning
from sidecar.config.endpoints import EndpointConfig
from sidecar.config.keypath import dotted
from sidecar.config.limits import Limits
from sidecar.config.load import Loaded, Sources, combine
from sidecar.config.model import Config
from sidecar.config.project import Project, find_project, is_fresh, may_be_trusted, read_project
from sidecar.config.scope import fixed_keys, process_keys
from sidecar.config.untrusted import named
from sidecar.errors import SidecarError
from sidecar.models.registry import Models
from sidecar.telemetry import LOGGER

from .catalog import AgentCatalog, ResolvedAgent
from .registered import Registered

IGNORED: Final = "configIgnored"
"""Kind of the warnings that say what of a configuration does not count."""
NEEDS_RESTART: Final = "restartNeeded"
"""Kind of the warnings that say what a running process does not take up."""

_MOST_KEPT: Final = 64


@dataclass(frozen=True, slots=True)
class Workspace:
    """What a session gets that works in some folder."""

    loaded: Loaded
    catalog: AgentCatalog
    models: Models
    registered: Registered
    """The tools and middleware that its agents may name."""
    warnings: tuple[WireWarning, ...] = ()

    @property
    def limits(self) -> Limits:
        """The limits that count in this folder."""
        return self.loaded.config.limits

    @property
    def plugins(self) -> tuple[Path, ...]:
        """Where its plug-ins are."""
        return self.loaded.plugins

    def file_of(self, agent: ResolvedAgent) -> str | None:
        """The file that names an agent's providers, if one does."""
        origin = self.loaded.origin(("agents", agent.name, "context_providers"))
        return origin if not agent.is_inline and Path(origin).is_absolute() else None


@dataclass(frozen=True, slots=True)
class _Kept:
    project: Project
    workspace: Workspace


class _Endpoints(NamedTuple):
    """What endpoints are made of."""

    endpoints: Mapping[str, EndpointConfig]
    default_model: str | None
    plugins: tuple[Path, ...]


class Workspaces:
    """Finds the configuration of a folder. A project's file is read again only when it, or its trust, has changed."""

    def __init__(
        self,
        read: Callable[[], Sources],
        sources: Sources | None,
        make_models: Callable[[Config, Sequence[Path]], Models],
        *,
        folder: str | None = None,
    ) -> None:
        """Nothing is read yet.

        Args:
            read: Reads everything but projects' files again; may raise `SidecarError`.
            sources: What it gave; `None` where it was refused.
            make_models: The endpoints of a configuration, given where its plug-ins are.
            folder: Where a session works that names none.

        Raises:
            ConfigInvalid: the sources contradict each other.
        """
        self.folder = folder
        self._read = read
        self._make_models = make_models
        self._process_project: Path | None = None
        self._models: list[tuple[_Endpoints, Models]] = []
        self._kept: dict[Path, _Kept] = {}
        self._lock = asyncio.Lock()
        self._sources = sources
        empty = Loaded(Config(), (), (), {})
        self.base = self._workspace(combine(sources) if sources is not None else empty, None)
        """The configuration of folders without a project's file."""

    @property
    def config_file(self) -> Path | None:
        """`--config`."""
        return self._sources.config_file if self._sources is not None else None

    def of_process(self) -> Config:
        """What counts for the whole process: with the project in whose folder it starts, where that is trusted.

        It reads files, so it is asked once, at the start. What is wrong with a project's file is said when a session
        asks for it.
        """
        sources, folder = self._sources, self.folder
        path = find_project(Path(folder), beside=sources.config_file) if sources is not None and folder else None
        if sources is None or path is None or not may_be_trusted(path):
            return self.base.loaded.config
        project = read_project(path)
        with suppress(SidecarError):
            if project.trust == "trusted":
                config = combine(sources, project).config
                self._process_project = path
                return config
        return self.base.loaded.config

    async def of(self, folder: str | None) -> Workspace:
        """The configuration of a folder; of the process's own, where none is named.

        Raises:
            ConfigInvalid: a trusted project's file is wrong.
            CapabilityRequired: a trusted project's file asks for what this build does not have.
        """
        folder = folder or self.folder
        while folder is not None and (sources := self._sources) is not None:
            found = await asyncio.to_thread(self._look, Path(folder), sources)
            if sources is not self._sources:
                continue  # it was read anew meanwhile
            if found is None:
                break
            if isinstance(found, _Kept):
                return found.workspace
            return self._keep(*found)
        return self.base

    async def reload(self) -> tuple[WireWarning, ...]:
        """Read everything again; sessions that are opened from now on get what it says.

        Returns:
            What is ignored, and what counts only after a restart.

        Raises:
            ConfigInvalid: something is wrong; everything stays as it was.
            CapabilityRequired: it asks for what this build does not have; everything stays as it was.
        """
        async with self._lock:
            sources, loaded = await asyncio.to_thread(self._read_again)
            before = self.base.loaded.config
            self._sources = sources
            self._kept.clear()
            self.base = self._workspace(loaded, None)
            fixed = fixed_keys(before, loaded.config)
            for warning in self.base.warnings:
                LOGGER.warning("%s", warning.message)
        return tuple(
            WireWarning(
                kind=NEEDS_RESTART, message=f"{dotted(key)} changed; it counts when the sidecar is started again"
            )
            for key in fixed
        )

    def forget(self) -> None:
        """Look at every project's file anew the next time."""
        self._kept.clear()

    async def close_unused(self, in_use: Collection[Models]) -> None:
        """Close the endpoints of configurations that no session has any more."""
        wanted = [*in_use, self.base.models, *(kept.workspace.models for kept in self._kept.values())]
        unused = [models for _, models in self._models if models not in wanted]
        self._models = [(made_of, models) for made_of, models in self._models if models in wanted]
        for models in unused:
            await models.aclose()

    async def aclose(self) -> None:
        """Close every endpoint."""
        models, self._models = self._models, []
        await asyncio.gather(*(each.aclose() for _, each in models))

    def _read_again(self) -> tuple[Sources, Loaded]:
        sources = self._read()
        return sources, combine(sources)

    def _look(self, folder: Path, sources: Sources) -> _Kept | tuple[Project, Loaded] | None:
        path = find_project(folder, beside=sources.config_file)
        if path is None:
            return None
        kept = self._kept.get(path)
        if kept is not None and is_fresh(kept.project):
            return kept
        project = read_project(path)
        return project, combine(sources, project)

    def _keep(self, project: Project, loaded: Loaded) -> Workspace:
        workspace = self._workspace(loaded, project)
        for warning in workspace.warnings:
            if warning not in self.base.warnings:
                LOGGER.warning("%s", warning.message)
        self._kept.pop(project.path, None)
        self._kept[project.path] = _Kept(project, workspace)
        if len(self._kept) > _MOST_KEPT:
            del self._kept[next(iter(self._kept))]
        return workspace

    def _workspace(self, loaded: Loaded, project: Project | None) -> Workspace:
        config = loaded.config
        messages = [*loaded.warnings, *(self._of_process(project) if project is not None else ())]
        return Workspace(
            loaded,
            AgentCatalog(config.agents, default_agent=config.default_agent),
            self._models_of(loaded),
            Registered(config.tools, config.middleware, loaded.plugins),
            tuple(WireWarning(kind=IGNORED, message=message) for message in messages),
        )

    def _of_process(self, project: Project) -> tuple[str, ...]:
        if project.trust != "trusted" or project.layer is None or project.path == self._process_project:
            return ()
        keys = process_keys(project.layer.data)
        why = "which counts only for a sidecar that is started in this project"
        return (f"{project.path}: ignored {named(keys)}, {why}",) if keys else ()

    def _models_of(self, loaded: Loaded) -> Models:
        """The endpoints of a configuration; configurations that agree on them share their connections."""
        config = loaded.config
        has_plugins = any(endpoint.is_plugin for endpoint in config.endpoints.values())
        wanted = _Endpoints(config.endpoints, config.default_model, loaded.plugins if has_plugins else ())
        for known, models in self._models:
            if known == wanted:
                return models
        models = self._make_models(config, wanted.plugins)
        self._models.append((wanted, models))
        return models
