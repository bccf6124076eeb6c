"""What is stored of a message with memories in it: all but the memories, which are put back as they are by then."""

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from protocol.messages import Message, text_message
from providers.api.memory import MemoryHit, MemoryRecord, Scope
from providers.memory_text import NOTED, noted, shown
from sidecar.memory.records import write_of
from sidecar.memory.retrieval import StoredMemory
from sidecar.sessions.recalled import ERASED, Recalled, has_memories, recalled_in, texts_of
from sidecar.stores.plain_memories import PlainMemories

ALICE = Scope(user_id="Alice")
TEXTS = st.lists(st.text(st.characters(exclude_categories=("Cs",)), min_size=1), max_size=6)


def records(texts: Sequence[str], *, at: str = "2026-01-01T10:00:00Z") -> list[MemoryRecord]:
    return [MemoryRecord(f"m{n}", "memory", ALICE, text, at, role="user") for n, text in enumerate(texts)]


def message(prompt: str, found: Sequence[MemoryRecord], recent: Sequence[MemoryRecord] = ()) -> Message:
    hits = [MemoryHit(record, 1.0, count=1 + n) for n, record in enumerate(found)]
    metadata = noted(prompt, hits, recent, "memory", {"userId": "Alice"})
    return text_message("user", shown(prompt, hits, recent)).model_copy(update={"metadata": metadata})


def recalled(one: Message) -> Recalled:
    found = recalled_in(one)
    assert found is not None
    return Recalled.model_validate_json(found.model_dump_json(by_alias=True))


@given(prompt=st.text(max_size=20), texts=TEXTS, split=st.integers(0, 6))
def test_what_is_cut_out_is_put_back_to_the_letter(prompt: str, texts: list[str], split: int) -> None:
    found = records(texts)
    one = message(prompt, found[:split], found[split:])
    places = recalled(one)

    rest = places.cut_out(one.text)

    assert rest is not None
    assert len(rest) == len(one.text) - sum(map(len, texts))
    kept = {("memory", ALICE, record.memory_id): record.text for record in found}
    assert places.put_back(rest, kept) == one.text
    assert places.put_back(rest, {}).count(ERASED) >= len(texts)


def test_a_memory_of_another_scope_or_collection_is_not_put_back() -> None:
    one = message("Earlier:", records(["I like tea."]))
    places = recalled(one)
    rest = places.cut_out(one.text)
    assert rest is not None

    foreign = {("memory", Scope(user_id="Bob"), "m0"): "beer", ("other", ALICE, "m0"): "wine"}

    assert places.put_back(rest, foreign) == f"Earlier:\n[2026-01-01 10:00, user] {ERASED}"


def test_a_text_that_somebody_has_changed_is_not_cut() -> None:
    one = message("Earlier:", records(["I like tea."]))

    assert recalled(one).cut_out(one.text + "!") is None
    assert recalled(one).cut_out("") is None


def test_what_is_noted_by_others_in_another_form_is_not_believed() -> None:
    for noted_there in ({}, [], "x", {"collection": "memory"}, _with(scope={}), _with(at="yesterday")):
        one = text_message("user", "text").model_copy(update={"metadata": {NOTED: noted_there}})
        assert has_memories(one)
        assert recalled_in(one) is None
    assert not has_memories(text_message("user", "text"))


def _with(*, scope: object = None, at: str = "2026-01-01T10:00:00Z") -> dict[str, object]:
    place = {"memoryId": "m", "createdAt": at, "start": 0, "end": 1}
    whose = {"userId": "Alice"} if scope is None else scope
    return {"collection": "memory", "scope": whose, "length": 4, "memories": [place]}


async def test_texts_are_found_among_many_of_the_same_time_and_those_that_are_gone_are_not() -> None:
    shelf = PlainMemories()
    shelf.is_open = True
    many = records([f"thing {n}" for n in range(30)])
    older, newer = records(["old"], at="2025-01-01T10:00:00Z"), records(["new"], at="2027-01-01T10:00:00Z")
    for record in [*older, *many[1:], *newer]:
        shelf.put(write_of(record))
    shelf.put(write_of(MemoryRecord("m5", "memory", Scope(user_id="Bob"), "Bob's", many[5].created_at)))
    gone = MemoryRecord("gone", "memory", ALICE, "x", many[0].created_at)

    texts = await texts_of([recalled(message("", [many[1], many[5], many[29], gone]))], StoredMemory(shelf))

    assert texts == {("memory", ALICE, f"m{n}"): f"thing {n}" for n in (1, 5, 29)}
