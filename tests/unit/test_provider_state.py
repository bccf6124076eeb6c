"""A provider's typed state: read once made, renamed, refused, and safe from the threads that tools run in."""

import json
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import date
from typing import Any

import pytest
from pydantic import BaseModel, ConfigDict, Field

from providers.api.session import Session
from providers.api.state import ProviderState, StateMismatch


class Memory(BaseModel):
    memory_id: str = "none"
    visits: int = 0


@dataclass
class Tally:
    words: dict[str, int] = field(default_factory=dict[str, int])
    days: tuple[date, ...] = ()


class Aliased(BaseModel):
    model_config = ConfigDict(strict=True)

    user_name: str = Field(alias="userName")
    born: date | None = None


def counted() -> tuple[ProviderState[Memory], list[Session | None]]:
    """A state that notes for whom its first value was made."""
    made: list[Session | None] = []

    def initial(session: Session | None) -> Memory:
        made.append(session)
        return Memory(memory_id=f"m{len(made)}")

    return ProviderState(Memory, initial, key="memory"), made


def test_the_first_value_is_made_once_a_session_and_written_at_once() -> None:
    state, made = counted()
    one, two = Session("one"), Session("two")

    assert [state.get(one).memory_id, state.get(one).memory_id, state.get(two).memory_id] == ["m1", "m1", "m2"]
    assert one.state == {"memory": {"memory_id": "m1", "visits": 0}}
    assert made == [one, two]


def test_the_first_value_outlives_the_process() -> None:
    state, made = counted()
    session = Session("s")
    state.get(session)

    restored = Session.from_dict(json.loads(json.dumps(session.to_dict())))

    assert state.get(restored) == Memory(memory_id="m1")
    assert made == [session]


def test_without_a_session_a_value_is_made_each_time_and_nothing_is_kept() -> None:
    state, made = counted()

    state.save(None, Memory(memory_id="lost"))

    assert [state.get(None).memory_id, state.get(None).memory_id] == ["m1", "m2"]
    assert state.update(None, lambda memory: memory.model_copy(update={"visits": 5})).visits == 5
    assert made == [None] * 3


def test_a_first_value_that_is_refused_leaves_nothing_behind() -> None:
    def refuse(session: Session | None) -> Memory:
        raise PermissionError("no user is known")

    session = Session("s", state={"other": 1})

    with pytest.raises(PermissionError, match="no user is known"):
        ProviderState(Memory, refuse, key="memory").get(session)

    assert session.state == {"other": 1}


def test_without_more_the_first_value_is_the_model_s_own_under_the_model_s_name() -> None:
    session = Session("s")

    assert ProviderState(Memory).get(session) == Memory()
    assert list(session.state) == ["Memory"]


def test_the_empty_corner_that_a_provider_is_given_counts_as_nothing() -> None:
    state, _ = counted()
    session = Session("s")
    session.state_of("memory")

    assert state.get(session).memory_id == "m1"


def test_what_is_read_is_the_reader_s_own_until_it_is_saved() -> None:
    state, _ = counted()
    session = Session("s")
    memory = state.get(session)

    memory.visits = 3
    assert state.get(session).visits == 0

    state.save(session, memory)
    assert state.get(session).visits == 3


def test_a_dataclass_comes_back_as_it_was() -> None:
    state = ProviderState(Tally)
    session = Session("s")
    tally = Tally({"a": 1}, (date(2025, 11, 1),))

    state.save(session, tally)

    assert state.get(Session.from_dict(json.loads(json.dumps(session.to_dict())))) == tally


def test_a_strict_model_with_aliases_comes_back_as_it_was() -> None:
    state = ProviderState(Aliased, lambda session: Aliased(userName="R", born=date(2005, 1, 2)), key="k")
    session = Session("s")
    first = state.get(session)

    assert state.get(session) == first


def test_a_host_may_write_the_aliases() -> None:
    session = Session("s", state={"k": {"userName": "R", "born": "2005-01-02"}})

    assert ProviderState(Aliased, key="k").get(session).born == date(2005, 1, 2)


def test_a_value_under_an_earlier_key_moves() -> None:
    session = Session("s", state={"oldest": {"visits": 1}, "old": {"visits": 2}, "new": {}})

    assert ProviderState(Memory, key="new", renamed_from=["old", "oldest"]).get(session).visits == 2
    assert session.state == {"oldest": {"visits": 1}, "new": {"visits": 2}}


def test_a_value_under_the_present_key_wins_over_an_earlier_one() -> None:
    bag: dict[str, Any] = {"old": {"visits": 1}, "new": {"visits": 2}}
    session = Session("s", state=bag)

    assert ProviderState(Memory, key="new", renamed_from=["old"]).get(session).visits == 2
    assert session.state == {"old": {"visits": 1}, "new": {"visits": 2}}


@pytest.mark.parametrize(
    ("key", "stored", "place"),
    [
        ("memory", {"visits": "often"}, "'memory.visits'"),
        ("old", {"memory_id": ["secret"]}, "'old.memory_id'"),
        ("memory", "text", "'memory'"),
        ("memory", {"visits": {1}}, "memory.visits holds a set"),
    ],
)
def test_a_stored_value_that_does_not_fit_is_named_and_left_alone(key: str, stored: Any, place: str) -> None:
    state = ProviderState(Memory, key="memory", renamed_from=["old"])
    session = Session("s", state={key: stored})

    with pytest.raises(StateMismatch) as failure:
        state.get(session)
    with pytest.raises(StateMismatch):
        state.update(session, lambda memory: memory)

    assert place in str(failure.value)
    assert "often" not in str(failure.value)
    assert "secret" not in str(failure.value)
    assert session.state == {key: stored}


def test_what_is_no_json_is_not_saved() -> None:
    @dataclass
    class Loose:
        value: float = 0

    state = ProviderState(Loose, key="loose")
    session = Session("s")
    state.save(session, Loose(1))

    with pytest.raises(ValueError, match=r"loose\.value holds nan"):
        state.save(session, Loose(float("nan")))

    assert state.get(session) == Loose(1)


@pytest.mark.parametrize("keys", [{"key": ""}, {"key": " \t"}, {"key": "k", "renamed_from": ["old", ""]}])
def test_a_blank_key_is_refused(keys: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="blank"):
        ProviderState(Memory, **keys)


def test_a_change_that_fails_writes_nothing() -> None:
    state, _ = counted()
    session = Session("s")
    state.get(session)

    def change(memory: Memory) -> Memory:
        memory.visits = 9
        raise KeyError

    with pytest.raises(KeyError):
        state.update(session, change)

    assert state.get(session).visits == 0


def test_no_change_from_any_thread_is_lost() -> None:
    state, made = counted()
    session = Session("s")
    together = threading.Barrier(4)

    def visit(memory: Memory) -> Memory:
        seen = memory.visits
        time.sleep(0)  # lets another thread go on, if the lock did not keep it out
        return memory.model_copy(update={"visits": seen + 1})

    def many() -> None:
        together.wait()
        for _ in range(50):
            state.update(session, visit)

    with ThreadPoolExecutor(4) as threads:
        for done in [threads.submit(many) for _ in range(4)]:
            done.result()

    assert state.get(session).visits == 200
    assert made == [session]


def test_the_bag_can_be_copied_while_threads_write_it_without_the_lock() -> None:
    session = Session("s", state={f"k{n}": n for n in range(200)})
    copying, stop = threading.Event(), threading.Event()

    def write() -> int:
        copying.wait()
        rounds = 0
        while not stop.is_set():
            for n in range(200):
                session.state[f"new{n}"] = rounds
            for n in range(200):
                del session.state[f"new{n}"]
            rounds += 1
        return rounds

    with ThreadPoolExecutor(2) as threads:
        writers = [threads.submit(write)]
        try:
            copying.set()
            copies = [session.snapshot() for _ in range(2000)]
            dicts = [session.to_dict() for _ in range(200)]
        finally:
            stop.set()
        assert all(writer.result() > 0 for writer in writers)

    assert all(copy[f"k{n}"] == n for copy in copies for n in (0, 199))
    assert all(whole["state"]["k7"] == 7 for whole in dicts)


def test_a_snapshot_of_the_bag_is_no_part_of_it() -> None:
    session = Session("s", state={"a": 1})
    copy = session.snapshot()

    copy["b"] = 2
    session.state["c"] = 3

    assert (copy, session.state) == ({"a": 1, "b": 2}, {"a": 1, "c": 3})
