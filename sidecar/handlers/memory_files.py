"""Which stores of files a memory method looks into: those of `file_memory` that can be known here. Reads no file."""

from collections.abc import Iterator
from contextlib import suppress

from pydantic import ValidationError

from providers.file_memory import FileMemoryProvider
from providers.file_memory_config import FileMemoryConfig
from providers.file_stores import FilesystemPlace, MemoryPlace, SharedStore, StoreError, StoreLimits, open_store
from sidecar.sessions.file_memories import FileMemories

from .services import Services

_TYPE = "file_memory"
_ANY_SIZE = StoreLimits(file_bytes=16 << 20, folder_bytes=64 << 20)
"""The most that an entry may allow."""

_Place = tuple[FilesystemPlace | MemoryPlace, str | None]
"""A store, and the folder that a relative path starts from."""


async def memory_files(services: Services) -> FileMemories:
    """The default stores, those that the configured agents name, and those of sessions that are open here."""
    workspace = await services.workspaces.of(None)
    cwd = services.sessions.default_cwd
    places: list[_Place] = [(FilesystemPlace(type="filesystem"), None), (MemoryPlace(type="memory"), None)]
    for agent in workspace.loaded.config.agents.values():
        for entry in agent.context_providers or ():
            if entry.type == _TYPE:
                with suppress(ValidationError):  # such an agent cannot run, and has left nothing
                    places.append((FileMemoryConfig.model_validate(entry.config or {}).store, cwd))
    places.extend(_of_sessions(services))
    stores: dict[tuple[str, str | None], SharedStore] = {}
    for place, folder in places:
        with suppress(StoreError):  # no provider can have opened it either
            stores.setdefault(_key(place, folder), open_store(place, folder, _ANY_SIZE))
    return FileMemories(list(stores.values()))


def _of_sessions(services: Services) -> Iterator[_Place]:
    for session in services.sessions.open_sessions:
        for bound in session.plan.providers:
            provider = bound.provider
            if isinstance(provider, FileMemoryProvider) and isinstance(provider.config, FileMemoryConfig):
                yield provider.config.store, provider.surroundings.cwd


def _key(place: FilesystemPlace | MemoryPlace, folder: str | None) -> tuple[str, str | None]:
    """What two entries have in common that name one store."""
    if isinstance(place, MemoryPlace) or place.path is None:
        return place.type, None
    return place.type, f"{folder}\0{place.path}"
