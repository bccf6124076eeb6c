"""`structured_memory` as its entries say: its wording, facts to begin with, several side by side."""

from typing import Any

import pytest

from providers.structured_memory_config import StructuredMemoryConfig
from sidecar.errors import ConfigInvalid, ModelUnavailable
from tests.bench.agent_run import AgentRun, plan_of
from tests.bench.fake_client import FakeClient, gives, says

PET = {"type": "string", "description": "The name of the user's dog."}
PERSON = {"type": "object", "properties": {"name": {"type": "string"}, "pet": PET}}


def memory(source_id: str = "user_info", schema: Any = PERSON, *, state_key: str | None = None, **config: Any) -> Any:
    place = {} if state_key is None else {"stateKey": state_key}
    return {"type": "structured_memory", "sourceId": source_id, **place, "config": {"schema": schema, **config}}


async def told(entry: Any, **known: Any) -> list[str]:
    """The instructions of a run, a line each."""
    run = AgentRun(FakeClient(says("ok"), gives({})), plan=plan_of(entry))
    run.session.state["user_info"] = known
    await run.say("hi")
    return run.client.requests[0].instructions.splitlines()


async def test_our_own_words_name_the_field_and_what_its_description_says() -> None:
    asks = await told(memory())
    assert "the user's name yet" in asks[0]
    assert "the user's pet (The name of the user's dog) yet" in asks[1]
    assert all("answer no other question" in line for line in asks)

    assert (await told(memory(), pet="Rex"))[1] == "The user's pet (The name of the user's dog): Rex."


@pytest.mark.parametrize(
    ("decline", "strict"),
    [
        (True, [True, True]),
        (False, [False, False]),
        ({"pet": False}, [True, False]),
        ({"name": False, "pet": True}, [False, True]),
    ],
)
async def test_other_questions_wait_for_a_fact_or_do_not(decline: Any, strict: list[bool]) -> None:
    asks = await told(memory(decline=decline))

    assert ["answer no other question" in line for line in asks] == strict
    assert ["Answer as usual" in line for line in asks] == [not waits for waits in strict]
    assert all("yet" in line for line in asks)


async def test_one_s_own_words_have_places_for_name_description_and_value() -> None:
    words = "{field}|{description}|{label}|{value}|{other}"
    asks = await told(memory(ask={"pet": words}, known=words, decline={"name": False}), name="Ann {label}")

    assert asks == [
        "name|the user's name|name|Ann {label}|{other}",
        "pet|The name of the user's dog|pet (The name of the user's dog)|null|{other}",
    ]


async def test_a_field_that_is_nullable_is_asked_for_as_what_it_is_when_known() -> None:
    fields = {
        "a": {"type": ["string", "null"], "default": None},
        "b": {"anyOf": [{"type": "integer"}, {"type": "null"}], "description": "A number."},
        "c": {"anyOf": [{"type": "integer"}, {"type": "boolean"}, {"type": "null"}]},
        "d": {"type": ["string", "integer", "null"]},
    }
    client = FakeClient(says("ok"), *(gives({name: None}) for name in fields), single_field=True)
    run = AgentRun(client, plan=plan_of(memory(schema={"properties": fields}, grounded=False)))

    await run.say("hi")

    asked: dict[str, Any] = {}
    for request in client.requests[1:]:
        assert request.response_schema is not None
        asked |= request.response_schema["properties"]
    assert asked == {
        "a": {"type": "string", "maxLength": 100},
        "b": {"type": "integer", "description": "A number."},
        "c": {"anyOf": [{"type": "integer"}, {"type": "boolean"}]},
        "d": {"type": ["string", "integer"]},
    }


@pytest.mark.parametrize(
    ("field", "given", "kept"),
    [
        ({"type": "string"}, "20", {}),
        ({"type": "string", "pattern": r"^\d+$"}, "20", {"a": "20"}),
        ({"enum": ["20", "30"]}, "20", {"a": "20"}),
        ({"enum": ["20", "30"]}, "30", {}),
        ({"type": "string", "format": "date"}, "1990-05-17", {"a": "1990-05-17"}),
        ({"type": "string", "format": "date"}, "17.5.1990", {"a": "1990-05-17"}),
        ({"type": "string", "format": "date"}, "1990-05-18", {}),
        ({"type": "string", "format": "date"}, "born", {}),
    ],
)
async def test_a_small_model_s_digits_are_kept_only_where_the_field_is_one_of_digits(
    field: Any, given: str, kept: dict[str, Any]
) -> None:
    client = FakeClient(says("ok"), gives({"a": given}), single_field=True)
    run = AgentRun(client, plan=plan_of(memory(schema={"properties": {"a": field}})))

    await run.say("I am 20, born 17.5.1990")

    assert run.session.state == {"user_info": kept}


@pytest.mark.parametrize("single_field", [False, True])
@pytest.mark.parametrize(
    ("said", "kept"),
    [
        ("17/5/90", {}),
        ("1/1/1990", {"born": "1990-01-01"}),
        ("May 17, 1990", {"born": "1990-05-17"}),
        ("3. Oktober 1985 geboren", {"born": "1985-10-03"}),
        ("from 1990-05-17 to 1990-05-18", {}),
        ("5/6/1990", {}),
        ("1990", {}),
    ],
)
async def test_a_date_field_holds_dates_of_one_meaning_in_one_notation(
    said: str, kept: dict[str, Any], single_field: bool
) -> None:
    entry = memory(schema={"properties": {"born": {"type": "string", "format": "date"}}})
    run = AgentRun(FakeClient(says("ok"), gives({"born": said}), single_field=single_field), plan=plan_of(entry))

    await run.say(said)

    assert run.session.state == {"user_info": kept}


async def test_a_small_model_copies_a_date_as_it_is_written() -> None:
    entry = memory(schema={"properties": {"born": {"type": "string", "format": "date"}}})
    run = AgentRun(FakeClient(says("ok"), gives({"born": None}), single_field=True), plan=plan_of(entry))

    await run.say("1/1/90")

    sent = run.client.requests[1].response_schema
    assert sent is not None
    assert sent["properties"] == {"born": {"type": "string", "maxLength": 10}}


async def test_a_date_does_not_give_way_to_a_number_in_it_that_a_small_model_takes_for_an_age() -> None:
    fields = {"born": {"type": "string", "format": "date"}, "age": {"type": "integer"}}
    client = FakeClient(says("ok"), gives({"born": "1990-05-17"}), gives({"age": 1990}), single_field=True)
    run = AgentRun(client, plan=plan_of(memory(schema={"properties": fields})))

    await run.say("born 1990-05-17")

    assert run.session.state == {"user_info": {"born": "1990-05-17"}}


async def test_a_larger_model_s_digits_are_kept_where_the_user_wrote_them() -> None:
    """Case 53: a phone number, a date and a postcode stand in the text; another one does not."""
    fields = {name: {"type": "string"} for name in ("phone", "born", "postcode", "pin")}
    found = {"phone": "555-1234", "born": "1990-05-17", "postcode": "01234", "pin": "1234"}
    run = AgentRun(FakeClient(says("ok"), gives(found)), plan=plan_of(memory(schema={"properties": fields})))

    await run.say("Call 555-1234; I was born on 17/05/1990 and live in 01234 Dresden")

    assert run.session.state == {"user_info": {name: found[name] for name in ("phone", "born", "postcode")}}


async def test_initial_facts_are_used_from_the_first_run_and_never_asked_for_nor_overwritten() -> None:
    client = FakeClient(says("ok"), gives({"name": "Bob", "pet": "Rex"}), says("ok"))
    run = AgentRun(client, plan=plan_of(memory(initial={"name": "Ann", "pet": None})))

    await run.say("Bob has a dog, Rex")

    assert "The user's name: Ann." in client.requests[0].instructions
    assert "name yet" not in client.requests[0].instructions
    asked = client.requests[1].response_schema
    assert asked is not None
    assert list(asked["properties"]) == ["pet"]
    assert run.session.state == {"user_info": {"name": "Ann", "pet": "Rex"}}


async def test_a_session_that_brings_facts_of_its_own_begins_with_those() -> None:
    run = AgentRun(FakeClient(says("ok"), gives({})), plan=plan_of(memory(initial={"name": "Ann"})))
    run.session.state["user_info"] = {"pet": "Rex"}

    await run.say("hi")

    assert run.session.state == {"user_info": {"pet": "Rex"}}


@pytest.mark.parametrize(
    ("config", "named"),
    [
        ({"initial": {"nmae": "Ann"}}, "initial.nmae: no field of the schema; did you mean 'name'?"),
        ({"initial": {"name": 7}}, "initial.name"),
        ({"decline": {"shoe": True}}, "decline names 'shoe'"),
        ({"decline": "no"}, "config.decline"),
    ],
)
def test_an_option_that_does_not_fit_the_schema_is_refused_by_name(config: dict[str, Any], named: str) -> None:
    with pytest.raises(ConfigInvalid) as refused:
        plan_of(memory(**config))

    assert named in refused.value.message


def test_every_option_is_described() -> None:
    schema = StructuredMemoryConfig.model_json_schema()

    assert [key for key, option in schema["properties"].items() if not option.get("description")] == []
    assert schema["required"] == ["schema"]


HOME = {"properties": {"city": {"type": "string"}}}


def side_by_side(*answers: Any) -> AgentRun:
    """Two memories in one agent; the later one learns first."""
    client = FakeClient(says("ok"), *answers)
    return AgentRun(client, plan=plan_of(memory("who", state_key="person"), memory("where", HOME, decline=False)))


async def test_memories_side_by_side_learn_and_ask_each_for_itself_with_a_call_each() -> None:
    run = side_by_side(gives({"city": "Lisbon", "name": "Ann"}), gives({"name": "Ann", "pet": None, "city": "Rome"}))

    await run.say("I am Ann, from Lisbon, not from Rome")

    assert run.session.state == {"person": {"name": "Ann"}, "where": {"city": "Lisbon"}}
    asked = [list((request.response_schema or {})["properties"]) for request in run.client.requests[1:]]
    assert asked == [["city"], ["name", "pet"]]
    asks = run.client.requests[0].instructions.splitlines()
    assert [line.split("user's ")[1].split(" ")[0] for line in asks] == ["name", "pet", "city"]
    hooks = [(event["sourceId"], event["phase"]) for event in run.sink.of("provider.completed")]
    assert hooks == [("who", "beforeRun"), ("where", "beforeRun"), ("where", "afterRun"), ("who", "afterRun")]

    run.client.answers += [says("ok"), gives({"name": "x", "pet": "Rex"})]
    await run.say("my dog is Rex")

    assert len(run.client.requests) == 5
    assert run.session.state == {"person": {"name": "Ann", "pet": "Rex"}, "where": {"city": "Lisbon"}}


async def test_a_memory_that_fails_does_not_keep_the_one_beside_it_from_learning() -> None:
    run = side_by_side([ModelUnavailable("down")], gives({"name": "Ann"}))

    await run.say("I am Ann, from Lisbon")

    assert run.session.state == {"person": {"name": "Ann"}, "where": {}}
    assert [source for _, _, source in run.sink.warnings] == ["where"]


async def test_two_memories_of_the_same_facts_keep_what_each_was_told() -> None:
    entries = memory("one", HOME), memory("two", HOME, initial={"city": "Rome"})
    run = AgentRun(FakeClient(says("ok"), gives({"city": "Lisbon"})), plan=plan_of(*entries))

    await run.say("I live in Lisbon")

    assert run.session.state == {"one": {"city": "Lisbon"}, "two": {"city": "Rome"}}


def test_two_memories_may_not_share_a_state() -> None:
    with pytest.raises(ConfigInvalid, match="share the state key 'person'"):
        plan_of(memory("one", state_key="person"), memory("two", HOME, state_key="person"))
