"""Opens the store at its first use, and again after a failure: a full disk must not end the process."""

import asyncio
from collections.abc import Callable

from sidecar.errors import SidecarError, StorageFailed
from sidecar.stores.base import Damaged, Foreign, Owner, SessionStore, StoreError

from .storage_errors import storage_error


class StoreAccess:
    """The durable store, opened when it is first needed, and the one in memory for what is ephemeral."""

    def __init__(self, make: Callable[[], SessionStore], ephemeral: SessionStore, owner: Owner, place: str) -> None:
        self.ephemeral = ephemeral
        self._make = make
        self._owner = owner
        self._place = place
        self._store: SessionStore | None = None
        self._lock = asyncio.Lock()
        self._ephemeral_is_open = False

    async def durable(self) -> SessionStore:
        """The store, open.

        Raises:
            StorageFailed: it cannot be opened; the next call tries again.
        """
        if self._store is None:
            async with self._lock:
                if self._store is None:
                    self._store = await self._open()
        return self._store

    async def has_stored(self, session_id: str) -> bool:
        """Whether the durable store has such a session; one that cannot be read has none."""
        try:
            await (await self.durable()).load(session_id)
        except (StoreError, SidecarError):
            return False
        return True

    async def prepare(self) -> None:
        """Open both ahead of the first request; a failure is told to whoever needs the store."""
        await self.ephemeral.open(self._owner)
        self._ephemeral_is_open = True
        try:
            await self.durable()
        except SidecarError:
            return

    async def close(self) -> None:
        """Close both."""
        if self._store is not None:
            await self._store.close()
        if self._ephemeral_is_open:
            await self.ephemeral.close()

    async def _open(self) -> SessionStore:
        store = self._make()
        try:
            await store.open(self._owner)
        except Foreign as error:
            raise StorageFailed(
                f"{self._place} cannot be used as a store: {error}; name another with --store sqlite:PATH or memory"
            ) from error
        except Damaged as error:
            raise StorageFailed(f"{self._place} is damaged: {error.what}; restore it, or name another") from error
        except StoreError as error:
            raise storage_error(error, "") from error
        return store
