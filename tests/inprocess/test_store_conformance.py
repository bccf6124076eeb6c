"""What every store promises (`store.md`), within one process. Another store is one more parameter of `place`."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from sidecar.stores.base import (
    Event,
    Exists,
    Fenced,
    HideRun,
    Lease,
    Missing,
    PutCall,
    PutMessage,
    PutRequest,
    PutRun,
    PutSession,
    PutState,
    Refused,
    SeqConflict,
    SessionQuery,
    SessionStore,
    Unavailable,
    Unit,
)

from .store_cases import TIME, Place, all_seqs, first, new_owner, said, scaled, unit


@pytest.fixture(params=["memory", "sqlite"])
async def place(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Place]:
    place = Place(request.param, tmp_path)
    yield place
    await place.close()


@pytest.fixture
async def store(place: Place) -> SessionStore:
    return await place.open()


async def restart(place: Place, store: SessionStore) -> SessionStore:
    await store.close()
    return await place.open()


async def test_a_unit_reads_back_whole(store: SessionStore) -> None:
    lease = await store.create("s", first("s", PutState("mode", b'"plan"'), PutState("gone", b"1")))
    events = [Event(1, "run.started", TIME, b"{}", "r1"), Event(2, "message.completed", TIME, b"{}", "r1", "m1")]
    puts = (
        PutMessage("m1", "r1", b'"hello"'),
        PutState("gone", None),
        PutRun("r1", b'{"run": 1}', ended=False),
        PutRun("r0", b"{}", ended=True),
        PutCall("c1", "r1", b'{"call": 1}', open=True),
        PutCall("c0", "r1", b"{}", open=False),
        PutRequest("q1", b'{"ask": 1}'),
    )
    assert await store.commit(Unit("u1", "s", lease.epoch, 0, events, puts)) == 2

    snapshot = await store.load("s")
    assert (snapshot.body, snapshot.state) == (b'{"of": "s"}', {"mode": b'"plan"'})
    assert (snapshot.seq, snapshot.first_seq, snapshot.epoch, snapshot.message_count) == (2, 1, 1, 1)
    assert snapshot.owner is not None
    assert snapshot.owner.id == lease.owner
    assert [(run.run_id, run.body, run.ended) for run in snapshot.unfinished_runs] == [("r1", b'{"run": 1}', False)]
    assert [(call.call_id, call.run_id, call.open) for call in snapshot.open_calls] == [("c1", "r1", True)]
    assert snapshot.requests == {"q1": b'{"ask": 1}'}
    read = (await store.events("s", 0, 10, 1 << 20)).items
    assert [item.event for item in read] == events
    assert [item.message for item in read] == [None, b'"hello"']


async def test_what_was_written_is_there_after_a_restart(place: Place, store: SessionStore) -> None:
    lease = await store.create("s", first("s"))
    await store.commit(said("s", lease.epoch, 0, "m1"))
    before = await store.load("s")

    store = await restart(place, store)

    assert await store.load("s") == replace(before, owner=None)
    again = await store.acquire("s")
    assert (again.seq, again.took_over) == (1, False)
    assert again.epoch > lease.epoch


async def test_the_holder_of_an_old_epoch_can_write_nothing(place: Place, store: SessionStore) -> None:
    old = await store.create("s", first("s"))
    written = unit("s", old.epoch, 0)
    await store.commit(written)
    store = await restart(place, store)
    new = await store.acquire("s")

    for late in (written, unit("s", old.epoch, 1)):
        with pytest.raises(Fenced):
            await store.commit(late)
    with pytest.raises(Fenced):
        await store.delete(old)
    await store.release(old)

    assert (await store.load("s")).owner is not None, "an old lease released the new one"
    assert await store.commit(unit("s", new.epoch, 1)) == 2


async def test_a_released_session_takes_no_more_units(store: SessionStore) -> None:
    lease = await store.create("s", first("s"))
    await store.release(lease)
    await store.release(lease)
    with pytest.raises(Fenced):
        await store.commit(unit("s", lease.epoch, 0))
    assert (await store.load("s")).owner is None


async def test_taking_a_session_that_is_mine_gives_the_lease_that_i_hold(store: SessionStore) -> None:
    lease = await store.create("s", first("s"))
    await store.commit(unit("s", lease.epoch, 0))
    assert await store.acquire("s") == replace(lease, seq=1)


async def test_the_same_unit_counts_once_however_often_it_comes(store: SessionStore) -> None:
    lease = await store.create("s", first("s"))
    once = said("s", lease.epoch, 0, "m1")
    assert await asyncio.gather(*(store.commit(once) for _ in range(5))) == [1] * 5
    assert await store.commit(unit("s", lease.epoch, 1, events=3)) == 4
    assert await store.commit(once) == 1, "a retry answers what the first try reached"
    assert await all_seqs(store, "s") == [1, 2, 3, 4]
    assert (await store.load("s")).message_count == 1


async def test_a_unit_without_events_counts_once_too(store: SessionStore) -> None:
    lease = await store.create("s", first("s"))
    once = unit("s", lease.epoch, 0, PutState("k", b"1"), events=0)
    assert await store.commit(once) == 0
    await store.commit(unit("s", lease.epoch, 0, PutState("k", b"2"), events=0))
    assert await store.commit(once) == 0
    assert (await store.load("s")).state == {"k": b"2"}


async def test_a_bad_unit_in_a_batch_fails_alone(store: SessionStore) -> None:
    leases = [await store.create(f"s{n}", first(f"s{n}")) for n in range(64)]
    units = [said(lease.session, lease.epoch, 0, "m") for lease in leases]
    units[10] = unit("s10", 7, 0)
    units[20] = said("s20", 1, 0, "m", b"x" * (1 << 20) + b"y")
    units[30] = unit("s30", 1, 5)

    results = await asyncio.gather(*map(store.commit, units), return_exceptions=True)

    failed = {n: type(result) for n, result in enumerate(results) if isinstance(result, Exception)}
    assert failed == {10: Fenced, 20: Refused, 30: SeqConflict}
    for n in range(64):
        assert await all_seqs(store, f"s{n}") == ([] if n in failed else [1])


async def test_events_must_be_numbered_from_the_expected_seq(store: SessionStore) -> None:
    lease = await store.create("s", first("s"))
    gap = Unit("u", "s", lease.epoch, 0, [Event(1, "x", TIME, b""), Event(3, "x", TIME, b"")])
    with pytest.raises(SeqConflict):
        await store.commit(gap)
    assert (await store.load("s")).seq == 0


async def test_an_event_cannot_refer_to_a_message_that_is_not_stored(store: SessionStore) -> None:
    lease = await store.create("s", first("s"))
    dangling = Unit("u", "s", lease.epoch, 0, [Event(1, "x", TIME, b"", None, "nowhere")], [PutState("k", b"1")])
    with pytest.raises(Refused):
        await store.commit(dangling)
    assert (await store.load("s")).state == {}, "the unit was written in part"
    await store.commit(said("s", lease.epoch, 0, "m1"))
    assert await store.commit(Unit("v", "s", lease.epoch, 1, [Event(2, "x", TIME, b"", None, "m1")])) == 2


async def test_creating_with_the_same_key_gives_one_session(place: Place, store: SessionStore) -> None:
    attempts = [store.create("s", first("s", PutRun("r", b"1", ended=False)), key="k") for _ in range(8)]
    leases = await asyncio.gather(*attempts)
    assert set(leases) == {Lease("s", leases[0].owner, 1, 0)}

    store = await restart(place, store)
    again = await store.create("s", first("s", PutState("new", b"1")), key="k")

    assert (again.epoch, again.seq) == (2, 0)
    assert (await store.load("s")).state == {}
    run = await store.find_run("s", "r")
    assert run is not None
    assert run.body == b"1"
    assert await store.find_run("s", "other") is None


@pytest.mark.parametrize("key", ["other", None])
async def test_an_id_that_is_taken_is_not_given_out_again(store: SessionStore, key: str | None) -> None:
    await store.create("s", first("s"), key="k")
    with pytest.raises(Exists):
        await store.create("s", first("s"), key=key)


async def test_the_first_unit_sent_again_answers_without_a_key(store: SessionStore) -> None:
    opening = first("s")
    assert await store.create("s", opening) == await store.create("s", opening)


async def test_a_session_begins_with_its_record(store: SessionStore) -> None:
    with pytest.raises(Refused):
        await store.create("s", unit("s", 1, 0))
    with pytest.raises(SeqConflict):
        await store.create("s", replace(first("s"), epoch=2))
    with pytest.raises(Missing):
        await store.load("s")


async def test_a_deleted_session_is_gone_and_its_id_is_free(store: SessionStore) -> None:
    lease = await store.create("s", first("s", PutState("k", b"1"), PutRequest("q", b"1")))
    await store.commit(said("s", lease.epoch, 0, "m1", run_id="r"))
    await store.delete(lease)
    await store.delete(lease)
    for read in (store.load("s"), store.messages("s"), store.events("s", 0, 1, 1), store.find_run("s", "r")):
        with pytest.raises(Missing):
            await read
    for write in (store.acquire("s"), store.commit(unit("s", 1, 1))):
        with pytest.raises(Missing):
            await write
    await store.create("s", first("s"))
    fresh = await store.load("s")
    assert (fresh.seq, fresh.state, fresh.requests, fresh.message_count) == (0, {}, {}, 0)


async def test_pruned_events_are_gone_and_the_rest_goes_on(store: SessionStore) -> None:
    lease = await store.create("s", first("s"))
    await store.commit(unit("s", lease.epoch, 0, events=10))
    await store.commit(unit("s", lease.epoch, 10, prune_through=4))
    assert (await store.load("s")).first_seq == 5
    assert await all_seqs(store, "s") == [5, 6, 7, 8, 9, 10, 11]
    await store.commit(unit("s", lease.epoch, 11, events=0, prune_through=99))
    assert (await store.load("s")).first_seq == 12
    assert await store.commit(unit("s", lease.epoch, 11)) == 12
    assert await all_seqs(store, "s") == [12]


async def test_a_rewritten_message_keeps_its_place_and_a_hidden_one_is_found_by_events(store: SessionStore) -> None:
    lease = await store.create("s", first("s"))
    await store.commit(said("s", lease.epoch, 0, "m1", b"1", run_id="r1"))
    await store.commit(said("s", lease.epoch, 1, "m2", b"2", run_id="r2"))
    await store.commit(unit("s", lease.epoch, 2, PutMessage("m1", "r1", b"one"), HideRun("r2"), events=0))
    await store.commit(said("s", lease.epoch, 2, "m3", b"3"))

    shown = (await store.messages("s")).items
    assert [(m.position, m.message_id, m.body) for m in shown] == [(1, "m1", b"one"), (3, "m3", b"3")]
    everything = (await store.messages("s", hidden=True, newest_first=True)).items
    assert [(m.message_id, m.in_history) for m in everything] == [("m3", True), ("m2", False), ("m1", True)]
    assert [m.message_id for m in (await store.messages("s", run_id="r2", hidden=True)).items] == ["m2"]
    assert [item.message for item in (await store.events("s", 0, 9, 1 << 20)).items] == [b"one", b"2", b"3"]
    assert (await store.load("s")).message_count == 2


@pytest.mark.parametrize("newest_first", [False, True])
async def test_the_transcript_is_paged_by_count_and_bytes(store: SessionStore, newest_first: bool) -> None:
    lease = await store.create("s", first("s"))
    for n in range(9):
        await store.commit(said("s", lease.epoch, n, f"m{n}", b"x" * 100))
    pages: list[list[int]] = []
    after: int | None = None
    while True:
        page = await store.messages("s", after=after, limit=4, max_bytes=250, newest_first=newest_first)
        pages.append([message.position for message in page.items])
        if page.next is None:
            break
        after = int(page.next)
    wanted = [[1, 2], [3, 4], [5, 6], [7, 8], [9]]
    assert pages == ([[9, 8], [7, 6], [5, 4], [3, 2], [1]] if newest_first else wanted)
    assert len((await store.messages("s", max_bytes=1)).items) == 1, "a page holds at least one message"
    assert len((await store.events("s", 0, 5, 1)).items) == 1


async def test_events_are_paged_without_skip_or_repeat_while_others_are_written(store: SessionStore) -> None:
    lease = await store.create("s", first("s"))
    total = scaled(60)

    async def write() -> None:
        for seq in range(total):
            await store.commit(unit("s", lease.epoch, seq))

    writing = asyncio.create_task(write())
    seen: list[int] = []
    while len(seen) < total:
        page = await store.events("s", seen[-1] if seen else 0, 3, 1 << 20)
        seen += [item.event.seq for item in page.items]
        await asyncio.sleep(0)
    await writing
    assert seen == list(range(1, total + 1))


async def test_a_page_of_sessions_is_cut_by_bytes_and_holds_at_least_one(store: SessionStore) -> None:
    for n in range(3):
        await store.create(f"s{n}", first(f"s{n}", updated_at=f"2026-01-0{n + 1}T00:00:00Z"))
    body = len(b'{"of": "s0"}')

    async def page(max_bytes: int) -> list[str]:
        found = await store.list(SessionQuery(), None, 10, max_bytes)
        assert (found.next is None) == (len(found.items) == 3)
        return [row.session for row in found.items]

    assert await page(3 * body) == ["s2", "s1", "s0"]
    assert await page(3 * body - 1) == ["s2", "s1"]
    assert await page(1) == ["s2"]


async def test_sessions_are_listed_newest_first_without_repeat_while_others_change(store: SessionStore) -> None:
    for n in range(20):
        await store.create(f"s{n:02}", first(f"s{n:02}", updated_at=f"2026-01-{n // 2 + 1:02}T00:00:00Z"))
    seen: list[str] = []
    cursor: str | None = None
    while True:
        page = await store.list(SessionQuery(), cursor, 3)
        seen += [row.session for row in page.items]
        cursor = page.next
        if cursor is None:
            break
        # What was seen already moves to the front, and a new session comes.
        moved = PutSession(b"{}", f"2026-02-01T00:00:{len(seen):02}Z")
        lease = await store.acquire(seen[0])
        await store.commit(unit(seen[0], lease.epoch, lease.seq, moved, events=0))
        await store.create(f"new{len(seen)}", first(f"new{len(seen)}", updated_at="2026-03-01T00:00:00Z"))
    assert seen == [f"s{n:02}" for n in range(19, -1, -1)]


async def test_lists_are_filtered_by_folder_text_and_archived(store: SessionStore) -> None:
    await store.create("Alpha", first("Alpha", title="Straße 100%", cwd="/a"))
    await store.create("beta", first("beta", cwd="/b"))
    lease = await store.create("old", first("old", cwd="/a"))
    away = PutSession(b"{}", TIME, cwd="/a", archived=True)
    await store.commit(unit("old", lease.epoch, 0, away, PutRun("r", b"1", ended=False), PutRequest("q", b"1")))

    async def found(query: SessionQuery) -> set[str]:
        return {row.session for row in (await store.list(query, None, 10)).items}

    assert await found(SessionQuery()) == {"Alpha", "beta"}
    assert await found(SessionQuery(archived=None)) == {"Alpha", "beta", "old"}
    assert await found(SessionQuery(archived=True)) == {"old"}
    assert await found(SessionQuery(cwd="/a", archived=None)) == {"Alpha", "old"}
    for text, wanted in {
        "STRASSE": {"Alpha"},
        "alph": {"Alpha"},
        "100%": {"Alpha"},
        "%": {"Alpha"},
        "_": set(),
    }.items():
        assert await found(SessionQuery(text=text)) == wanted, text
    row = (await store.list(SessionQuery(archived=True), None, 1)).items[0]
    assert (row.has_unfinished_run, row.has_requests, row.seq) == (True, True, 1)
    assert row.owner is not None


@pytest.mark.parametrize("cursor", ["", "!", "e30", "WzEsMl0", "é", "W" * 9])
async def test_a_malformed_cursor_is_a_value_error(store: SessionStore, cursor: str) -> None:
    with pytest.raises(ValueError, match="malformed cursor"):
        await store.list(SessionQuery(), cursor, 10)


async def test_the_same_call_id_in_two_runs_is_two_calls(store: SessionStore) -> None:
    lease = await store.create("s", first("s"))
    calls = (PutCall("c", "r1", b"1", open=True), PutCall("c", "r2", b"2", open=True))
    await store.commit(unit("s", lease.epoch, 0, *calls, events=0))
    await store.commit(unit("s", lease.epoch, 0, PutCall("c", "r1", b"3", open=False), events=0))
    assert [(call.run_id, call.body) for call in (await store.load("s")).open_calls] == [("r2", b"2")]


async def test_a_store_that_is_not_open_says_so(store: SessionStore) -> None:
    lease = await store.create("s", first("s"))
    with pytest.raises(Unavailable, match="open already"):
        await store.open(new_owner())
    await store.close()
    await store.close()
    for call in (store.load("s"), store.commit(unit("s", 1, 0)), store.release(lease)):
        with pytest.raises(Unavailable, match="not open"):
            await call
