"""Vectors: what every store promises of them, and how they follow after the records, over restarts and failures."""

from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Literal

import pytest

from providers.api.memory import EmbedderError, MemoryQuery, Vector
from sidecar.memory.retrieval import StoredMemory
from sidecar.memory.vector_filler import BATCH, VectorFiller
from sidecar.stores.base import Refused, SessionStore
from sidecar.stores.memories import OtherModel
from sidecar.stores.memory_rows import QueryVector

from .memory_cases import (
    ALICE,
    BOB,
    DIMENSION,
    MadeUpEmbedder,
    asked,
    by_vectors,
    by_words,
    fill,
    made_up,
    of,
    remember,
    said,
    vector,
)
from .store_cases import Place


@pytest.fixture(params=["memory", "sqlite"])
async def place(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Place]:
    place = Place(request.param, tmp_path)
    yield place
    await place.close()


@pytest.fixture
async def store(place: Place) -> SessionStore:
    return await place.open()


async def test_the_nearest_are_found_in_order_and_in_scope(store: SessionStore) -> None:
    await remember(store, *(said(f"{n}", f"t{n}") for n in range(4)), said("b", "bob's", BOB))
    await store.memories.use_embedder("memory", "e", 2)
    waiting = {one.text: one.ref for one in await store.memories.pending("memory", 0, 10)}
    directions = {"t0": (0, 1), "t1": (1, 1), "t2": (1, 0), "bob's": (1, 0)}
    await store.memories.fill("memory", "e", [(waiting[text], vector(*to)) for text, to in directions.items()])
    found = await store.memories.find(of(ALICE), "", QueryVector("e", vector(1, 0)), 2)
    assert (by_vectors(found), found.is_cut) == (["t2", "t1"], True)
    found = await store.memories.find(of(ALICE), "", QueryVector("e", vector(1, 0)), 4)
    assert (by_vectors(found), found.is_cut) == (["t2", "t1", "t0"], False)
    assert found.rows[found.dense[0]].vector == vector(1, 0)


async def test_pending_vectors_are_listed_in_batches_and_after_a_restart(place: Place, store: SessionStore) -> None:
    await remember(store, *(said(f"{n}", f"t{n}", context="around") for n in range(5)))
    first_two = await store.memories.pending("memory", 0, 2)
    assert [(one.text, one.context) for one in first_two] == [("t0", "around"), ("t1", "around")]
    await store.memories.use_embedder("memory", "made-up", DIMENSION)
    await store.memories.fill("memory", "made-up", [(one.ref, made_up(one.text)) for one in first_two])
    await store.close()
    store = await place.open()
    assert [one.text for one in await store.memories.pending("memory", 0, 9)] == ["t2", "t3", "t4"]
    assert [one.text for one in await store.memories.pending("memory", first_two[1].ref + 1, 9)] == ["t3", "t4"]
    (info,) = await store.memories.collections()
    assert (info.records, info.pending, info.embedder, info.dimension) == (5, 3, "made-up", DIMENSION)


async def test_another_model_is_an_error_that_names_the_command(store: SessionStore) -> None:
    await remember(store, said("1", "text"))
    await fill(store)
    for call in (
        store.memories.use_embedder("memory", "other", DIMENSION),
        store.memories.use_embedder("memory", "made-up", 7),
        store.memories.fill("memory", "other", []),
        store.memories.find(of(ALICE), "text", asked("text", "other"), 3),
        store.memories.find(of(ALICE), "text", QueryVector("made-up", vector(1, 2, 3)), 3),
    ):
        with pytest.raises(OtherModel, match="agent-sidecar memory embed --collection memory"):
            await call
    with pytest.raises(Refused):
        await store.memories.fill("memory", "made-up", [(1, vector(1, 2, 3))])

    await store.memories.drop_vectors("memory")
    await store.memories.use_embedder("memory", "other", 7)
    assert len(await store.memories.pending("memory", 0, 9)) == 1


async def test_a_collection_without_vectors_is_searched_by_words(store: SessionStore) -> None:
    await remember(store, said("1", "text"))
    found = await store.memories.find(of(ALICE), "text", asked("text"), 3)
    assert (by_words(found), by_vectors(found)) == (["text"], [])
    with pytest.raises(Refused):
        await store.memories.fill("memory", "made-up", [])


async def test_without_numpy_words_are_all_there_is(store: SessionStore, monkeypatch: pytest.MonkeyPatch) -> None:
    await remember(store, said("1", "text"), said("2", "unlike"))
    await fill(store)
    for module in ("stores.sqlite_search", "stores.plain_memories", "memory.likeness"):
        monkeypatch.setattr(f"sidecar.{module}.is_available", lambda: False)
    found = await store.memories.find(of(ALICE), "text", asked("text"), 3)
    assert (by_words(found), by_vectors(found)) == (["text"], [])
    (hit,) = await StoredMemory(store.memories, embedder=MadeUpEmbedder()).search(MemoryQuery("memory", ALICE, "text"))
    assert hit.record.memory_id == "1"


# Made after the fact.


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


class Picky(MadeUpEmbedder):
    """Fails where a text is among those that it cannot take."""

    async def embed(self, texts: Sequence[str], *, role: Literal["query", "passage"]) -> Sequence[Vector]:
        if "bad" in texts:
            raise EmbedderError("a text cannot be embedded")
        return await super().embed(texts, role=role)


async def test_a_text_that_cannot_be_embedded_keeps_no_other_from_its_vector(store: SessionStore) -> None:
    await remember(store, said("1", "good"), said("2", "bad"), said("3", "better"))

    assert await VectorFiller(store.memories, Picky()).fill_all() == 2

    assert [one.text for one in await store.memories.pending("memory", 0, 10)] == ["bad"]
