"""Vectors follow after the records: in batches, over restarts and failures, and anew for another model."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from providers.api.memory import EmbedderError
from sidecar.memory.vector_filler import BATCH, VectorFiller
from sidecar.stores.base import SessionStore
from sidecar.stores.memories import OtherModel

from .memory_cases import ALICE, MadeUpEmbedder, asked, by_vectors, of, remember, said
from .store_cases import Place


@pytest.fixture(params=["memory", "sqlite"])
async def place(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Place]:
    place = Place(request.param, tmp_path)
    yield place
    await place.close()


@pytest.fixture
async def store(place: Place) -> SessionStore:
    return await place.open()


async def test_all_that_is_pending_is_embedded_in_batches_and_once(store: SessionStore) -> None:
    count = BATCH * 2 + 3
    await remember(store, *(said(f"{n}", f"note {n}") for n in range(count)))
    embedder, seen = MadeUpEmbedder(), list[tuple[int, int]]()
    filler = VectorFiller(store.memories, embedder)
    assert await filler.fill("memory", lambda done, total: seen.append((done, total))) == count
    assert await filler.fill("memory") == 0
    assert sorted(embedder.asked) == sorted(("passage", f"note {n}") for n in range(count))
    assert seen == [(BATCH, count), (BATCH * 2, count), (count, count)]
    found = await store.memories.find(of(ALICE), "", asked("note 99"), 1)
    assert by_vectors(found) == ["note 99"]


async def test_what_an_embedder_failed_at_is_done_after_a_restart(place: Place, store: SessionStore) -> None:
    await remember(store, said("1", "here"), said("2", "there", collection="other"))
    with pytest.raises(EmbedderError):
        await VectorFiller(store.memories, MadeUpEmbedder(fails=True)).fill_all()
    await store.close()
    store = await place.open()
    embedder = MadeUpEmbedder()
    assert await VectorFiller(store.memories, embedder).fill_all() == 2
    assert [text for _, text in embedder.asked] == ["here", "there"]
    assert await VectorFiller(store.memories, embedder).fill_all() == 0


async def test_neighbours_are_embedded_along_where_that_is_wanted(store: SessionStore) -> None:
    await remember(store, said("1", "text", context="before"), said("2", "alone"))
    embedder = MadeUpEmbedder()
    await VectorFiller(store.memories, embedder, with_context=True).fill("memory")
    assert [text for _, text in embedder.asked] == ["before\ntext", "alone"]


async def test_another_model_has_to_embed_anew(store: SessionStore) -> None:
    await remember(store, said("1", "text"))
    await VectorFiller(store.memories, MadeUpEmbedder()).fill("memory")
    other = MadeUpEmbedder(name="other")
    await remember(store, said("2", "more text"))
    with pytest.raises(OtherModel):
        await VectorFiller(store.memories, other).fill("memory")
    assert await VectorFiller(store.memories, other).embed_anew("memory") == 2
    (info,) = await store.memories.collections()
    assert (info.embedder, info.pending) == ("other", 0)
    found = await store.memories.find(of(ALICE), "", asked("text", "other"), 5)
    assert len(found.dense) == 2
