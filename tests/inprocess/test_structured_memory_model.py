"""`structured_memory` in Python: its facts are a pydantic model, read back as one."""

from collections.abc import Callable
from datetime import date
from enum import Enum
from typing import Any

import pytest
from pydantic import BaseModel, Field, field_validator

from providers.api.errors import ProviderError
from providers.api.provider import Surroundings
from providers.api.session import Session
from providers.api.state import StateMismatch
from providers.registry import REGISTRY
from providers.structured_memory import StructuredMemoryProvider
from providers.structured_memory_config import MemoryOptions, StructuredMemoryConfig
from tests.bench.agent_run import AgentRun, bound
from tests.bench.fake_client import FakeClient, gives, says


class UserInfo(BaseModel):
    name: str | None = None
    age: int | None = Field(default=None, ge=0, description="In whole years.")


class UserInfoMemory(StructuredMemoryProvider[UserInfo]):
    """Name and age, as a plug-in has them."""

    model = UserInfo


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


class Life(BaseModel):
    born: date | None = None
    colour: Colour | None = None
    city: str | None = None

    @field_validator("city")
    @classmethod
    def _is_a_city(cls, city: str | None) -> str | None:
        if city is not None and city.lower() == "nowhere":
            raise ValueError("no city")
        return None if city is None else city.title()


def memory(**options: Any) -> StructuredMemoryProvider[UserInfo]:
    return StructuredMemoryProvider("user_info", model=UserInfo, **options)


@pytest.mark.parametrize("make", [memory, lambda: UserInfoMemory("user_info")])
async def test_a_model_s_fields_are_learnt_and_read_back_as_the_model(
    make: Callable[[], StructuredMemoryProvider[UserInfo]],
) -> None:
    """Case 53: asked, name known, both known, kept over save and restore."""
    provider = make()
    client = FakeClient(
        says("Who?"), gives({"name": "Ann", "age": 30}), says("How old?"), gives({"age": 20}), says("Hello, Ann.")
    )
    run = AgentRun(client, [provider])
    assert provider.get(run.session) == UserInfo()

    await run.say("My name is Ann")
    assert provider.get(run.session) == UserInfo(name="Ann")

    await run.say("I am 20")
    restored = AgentRun(client, [make()], session=Session.from_dict(run.session.to_dict()))
    await restored.say("Hi")

    assert provider.get(restored.session) == UserInfo(name="Ann", age=20)
    assert restored.session.state == {"user_info": {"name": "Ann", "age": 20}}
    first, last = client.requests[0].instructions, client.requests[4].instructions
    assert "user's name yet" in first
    assert "user's age (In whole years) yet" in first
    assert "Ann" in last
    assert "20" in last
    assert "yet" not in last


async def test_the_model_is_asked_for_values_and_not_for_nothings_twice() -> None:
    run = AgentRun(FakeClient(says("ok"), gives({})), [memory()])

    await run.say("hi")

    schema = run.client.requests[1].response_schema
    assert schema is not None
    assert schema["properties"] == {
        "name": {"anyOf": [{"type": "string"}, {"type": "null"}]},
        "age": {
            "anyOf": [
                {"type": "integer", "minimum": 0, "description": "In whole years."},
                {"type": "null"},
            ]
        },
    }


async def test_what_is_known_is_told_apart_from_a_default() -> None:
    class Settings(BaseModel):
        language: str = "en"

    provider = StructuredMemoryProvider("settings", model=Settings)
    run = AgentRun(FakeClient(says("ok"), gives({"language": None})), [provider])

    await run.say("hi")

    assert provider.get(run.session).language == "en"
    assert provider.get(run.session).model_fields_set == set()
    assert provider.known(run.session) == {}
    assert "language yet" in run.client.requests[0].instructions


async def test_what_the_model_s_own_checks_refuse_is_dropped_and_the_rest_is_kept_as_they_leave_it() -> None:
    provider = StructuredMemoryProvider("life", model=Life)
    found = {"born": "17/05/1990", "colour": "red", "city": "nowhere"}
    run = AgentRun(FakeClient(says("ok"), gives(found), says("ok"), gives({"city": "lisbon"})), [provider])

    await run.say("Born 17/05/1990, red is mine, I live nowhere")
    assert provider.get(run.session) == Life(born=date(1990, 5, 17), colour=Colour.RED)

    await run.say("now in lisbon")
    assert run.session.state == {"life": {"born": "1990-05-17", "colour": "red", "city": "Lisbon"}}
    assert run.sink.warnings == []


async def test_a_date_of_two_meanings_is_not_guessed() -> None:
    provider = StructuredMemoryProvider("life", model=Life)
    run = AgentRun(FakeClient(says("ok"), gives({"born": "05/06/1990"})), [provider])

    await run.say("born 05/06/1990")

    assert provider.known(run.session) == {}


async def test_what_somebody_else_wrote_and_does_not_fit_is_told_and_left_alone() -> None:
    run = AgentRun(FakeClient(says("ok"), gives({"age": 20})), [memory()])
    run.session.state["user_info"] = {"name": 7}

    await run.say("I am 20")

    assert run.session.state == {"user_info": {"name": 7}}
    [(kind, message, source)] = run.sink.warnings
    assert (kind, source) == ("providerFailed", "user_info")
    assert "'user_info.name' does not fit UserInfo" in message
    with pytest.raises(StateMismatch, match=r"user_info\.name"):
        memory().get(run.session)


async def test_keys_that_are_no_fields_are_nobody_s_fault() -> None:
    session = Session("s", state={"user_info": {"name": "Ann", "note": "the host's own", "age": None}})

    assert memory().get(session) == UserInfo(name="Ann")
    assert memory().known(session) == {"name": "Ann"}


async def test_what_is_read_is_the_reader_s_own() -> None:
    class Tastes(BaseModel):
        likes: list[str] | None = None

    provider = StructuredMemoryProvider("tastes", model=Tastes, initial=Tastes(likes=["tea"]))
    session = Session("s")

    provider.known(session)["likes"].append("rum")

    assert provider.get(session).likes == ["tea"]


async def test_it_reads_where_its_entry_says_that_its_state_is() -> None:
    provider = UserInfoMemory("user_info", None, Surroundings(state_key="person"))
    run = AgentRun(FakeClient(says("ok"), gives({"name": "Ann"})), [bound(provider, state_key="person")])

    await run.say("I am Ann")

    assert run.session.state == {"person": {"name": "Ann"}}
    assert provider.get(run.session) == UserInfo(name="Ann")


@pytest.mark.parametrize(
    "initial",
    [
        UserInfo(name="Ann"),
        {"name": "Ann", "age": None},
        lambda session: UserInfo(name=session.session_id),
        lambda session: {"name": session.session_id},
    ],
)
async def test_initial_facts_are_known_from_the_first_run_and_stay(initial: Any) -> None:
    client = FakeClient(says("ok"), gives({"name": "Bob", "age": 20}))
    run = AgentRun(client, [memory(initial=initial)], session=Session("Ann"))

    await run.say("Bob is 20")

    assert "The user's name: Ann." in client.requests[0].instructions
    assert "name yet" not in client.requests[0].instructions
    asked = client.requests[1].response_schema
    assert asked is not None
    assert list(asked["properties"]) == ["age"]
    assert run.session.state == {"user_info": {"name": "Ann", "age": 20}}


async def test_initial_facts_are_made_once_a_session_and_there_before_the_first_run() -> None:
    asked: list[str] = []

    def initial(session: Session) -> UserInfo | None:
        asked.append(session.session_id)
        return UserInfo(name=f"{session.session_id}-{len(asked)}")

    provider = memory(initial=initial)
    one, two = Session("one"), Session("two")

    assert [provider.get(one).name, provider.get(one).name] == ["one-1", "one-1"]
    assert provider.get(two).name == "two-2"
    assert asked == ["one", "two"]


async def test_the_entry_s_initial_facts_come_before_those_of_the_class() -> None:
    options = UserInfoMemory.config_type.model_validate({"initial": {"age": 3}})
    provider = UserInfoMemory("user_info", options, initial=UserInfo(name="Ann"))

    assert provider.get(Session("s")) == UserInfo(age=3)


async def test_initial_facts_that_do_not_fit_are_told_and_cost_no_reply() -> None:
    run = AgentRun(FakeClient(says("ok"), gives({})), [memory(initial=lambda _: {"age": "secret"})])

    execution = await run.say("hi")

    assert execution.progress.text == "ok"
    assert "initial fact 'age'" in run.sink.warnings[0][1]
    assert "secret" not in run.sink.warnings[0][1]
    assert run.session.state == {"user_info": {}}
    with pytest.raises(ProviderError):
        memory(initial={"nmae": "Ann"})


def test_a_class_with_a_model_takes_every_option_but_the_schema() -> None:
    keys = set(UserInfoMemory.config_type.model_json_schema()["properties"])

    assert keys == set(StructuredMemoryConfig.model_json_schema()["properties"]) - {"schema"}
    for faulty, named in (
        ({"schema": {"properties": {"a": {}}}}, "schema"),
        ({"ask": {"nmae": "?"}}, "did you mean 'name'?"),
        ({"initial": {"age": -1}}, "initial.age"),
    ):
        with pytest.raises(ValueError, match=named.replace("?", r"\?")):
            UserInfoMemory.config_type.model_validate(faulty)


async def test_a_class_may_have_further_options_and_heirs() -> None:
    class Options(MemoryOptions):
        greeting: str = "Hello"

    class Polite(StructuredMemoryProvider[UserInfo]):
        model = UserInfo
        config_type = Options

    class Heir(Polite):
        pass

    heir = Heir("heir", Heir.config_type.model_validate({"greeting": "Hi", "initial": {"name": "Ann"}}))

    assert isinstance(heir.config, Options)
    assert heir.config.greeting == "Hi"
    assert heir.get(Session("s")) == UserInfo(name="Ann")
    assert REGISTRY["structured_memory"].factory.config_type is StructuredMemoryConfig


def test_models_that_cannot_be_unknown_at_first_are_refused_by_name() -> None:
    class Needed(BaseModel):
        name: str

    class Empty(BaseModel):
        pass

    with pytest.raises(TypeError, match=r"Needed\.name needs a default"):
        StructuredMemoryProvider("a", model=Needed)
    with pytest.raises(TypeError, match="Empty has no field"):
        StructuredMemoryProvider("a", model=Empty)
    with pytest.raises(TypeError, match="must be a subclass of MemoryOptions"):
        type("Odd", (UserInfoMemory,), {"config_type": type("Own", (StructuredMemoryConfig,), {})})


def test_a_memory_has_one_sort_of_facts() -> None:
    config = StructuredMemoryConfig(schema={"properties": {"name": {"type": "string"}}})

    with pytest.raises(ValueError, match="not both"):
        StructuredMemoryProvider("a", config, model=UserInfo)
    with pytest.raises(ValueError, match="a schema or a model"):
        StructuredMemoryProvider("a", MemoryOptions())
    with pytest.raises(ValueError, match="did you mean 'name'"):
        memory(config=MemoryOptions(known={"nmae": "?"}))
    with pytest.raises(TypeError, match=r"read its facts with known\(\)"):
        StructuredMemoryProvider("a", config).get(Session("s"))
