"""No scope ever reads, counts or erases what is another's, whatever their ids look like."""

from collections.abc import Iterable
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from providers.api.memory import Scope
from sidecar.stores.memory import MemoryStore
from sidecar.stores.sqlite import SqliteStore

from .memory_cases import asked, by_vectors, by_words, fill, of, remember, said
from .store_cases import new_owner, scaled

# Another's id, another way to write it, what a query language may take for something else, and what is not seen.
OTHERS = ["alice", "alice ", " alice", "Alice", "ALICE", "alic\u00e9", "alice\u0301", "alice/../bob", "\uff10", "0"]
SYNTAX = [
    "%",
    "_",
    "alice%",
    "*",
    "null",
    "None",
    "[]",
    '"',
    "'",
    "' OR 1=1 --",
    "\x00",
    "alice\x00",
    "\u200b",
    "爱丽丝",
]

ids = st.sampled_from([*OTHERS, *SYNTAX]) | st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=6)
keys = st.none() | ids
scopes = st.builds(Scope, keys, keys, keys, keys).filter(lambda scope: not scope.is_empty)


def parts(scope: Scope) -> tuple[str | None, ...]:
    return scope.application_id, scope.agent_id, scope.session_id, scope.user_id


def belongs(record: Scope, asked_for: Scope) -> bool:
    return all(key in (None, mine) for key, mine in zip(parts(asked_for), parts(record), strict=True))


def canaries(records: Iterable[Scope], asked_for: Scope) -> list[str]:
    return sorted(f"canary {n}" for n, scope in enumerate(records) if belongs(scope, asked_for))


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
@given(stored=st.lists(scopes, min_size=1, max_size=8), others=st.lists(scopes, max_size=4))
@settings(max_examples=scaled(40))
async def test_every_surface_gives_exactly_what_is_the_scopes_own(
    kind: str, stored: list[Scope], others: list[Scope]
) -> None:
    with TemporaryDirectory() as folder:
        store = SqliteStore(Path(folder, "s.db"), durability="normal") if kind == "sqlite" else MemoryStore()
        await store.open(new_owner())
        await remember(store, *(said(f"{n}", f"canary {n}", scope) for n, scope in enumerate(stored)))
        await fill(store)
        narrower = [Scope(user_id=scope.user_id) for scope in stored if scope.user_id is not None]
        for scope in (*stored, *others, *narrower):
            wanted = canaries(stored, scope)
            found = await store.memories.find(of(scope), "canary", asked("canary"), 50)
            assert sorted(by_words(found)) == sorted(by_vectors(found)) == wanted
            rows = await store.memories.newest(of(scope), 50)
            assert sorted(row.write.text for row in rows) == wanted
            assert await store.memories.count(of(scope)) == len(wanted)
        gone = stored[0]
        assert await store.memories.forget("memory", gone, None) == len(canaries(stored, gone))
        for scope in stored:
            left = [text for text in canaries(stored, scope) if text not in canaries(stored, gone)]
            assert sorted(by_words(await store.memories.find(of(scope), "canary", None, 50))) == left
        await store.close()
