"""`structured_memory`: which calls it makes, what it keeps of the answers, and what it tells the model."""

import json
from typing import Any

import pytest

from protocol.messages import Usage
from sidecar.errors import ConfigInvalid, ModelUnavailable
from tests.bench.agent_run import AgentRun, plan_of, user
from tests.bench.fake_client import FakeClient, Step, gives, says

NAME_AND_AGE = {"type": "object", "properties": {"name": {"type": "string"}, "age": {"type": "integer"}}}


def memory(schema: dict[str, Any] = NAME_AND_AGE, **config: Any) -> dict[str, Any]:
    return {"type": "structured_memory", "sourceId": "user_info", "config": {"schema": schema, **config}}


def learner(*answers: list[Step], entry: dict[str, Any] | None = None, single_field: bool = False) -> AgentRun:
    """An agent that answers "ok"; its own model extracts."""
    client = FakeClient(says("ok"), *answers, single_field=single_field)
    return AgentRun(client, plan=plan_of(entry or memory()))


def asked_fields(run: AgentRun, call: int) -> list[str]:
    schema = run.client.requests[call].response_schema
    assert schema is not None
    return list(schema["properties"])


async def test_a_model_that_can_is_asked_for_all_fields_at_once() -> None:
    run = learner(gives({"name": "Ann", "age": 20}))

    await run.say("I am Ann, 20")

    assert len(run.client.requests) == 2
    assert asked_fields(run, 1) == ["name", "age"]
    assert run.session.state == {"user_info": {"name": "Ann", "age": 20}}


async def test_a_small_model_is_asked_field_by_field() -> None:
    run = learner(gives({"name": "Ann"}), gives({"age": 20}), single_field=True)

    await run.say("I am Ann, 20")

    assert [asked_fields(run, call) for call in (1, 2)] == [["name"], ["age"]]
    assert "name" in run.client.requests[1].instructions
    assert "age" in run.client.requests[2].instructions
    assert run.session.state == {"user_info": {"name": "Ann", "age": 20}}


@pytest.mark.parametrize(
    ("known", "city", "kept"),
    [
        ({}, "Lisbon", {}),
        ({}, "Lisbon in May", {}),
        ({"name": "Lisbon"}, "lisbon", {"name": "Lisbon"}),
        ({"name": "Ann"}, "Lisbon", {"name": "Ann", "city": "Lisbon"}),
        ({}, "Lisbon Bay", {"name": "Lisbon"}),
    ],
)
async def test_a_small_model_s_word_is_kept_only_where_one_field_claims_it(
    known: dict[str, Any], city: str, kept: dict[str, Any]
) -> None:
    schema = {"type": "object", "properties": {"name": {"type": "string"}, "city": {"type": "string"}}}
    answers = [*([] if known else [gives({"name": "Lisbon"})]), gives({"city": city})]
    run = learner(*answers, entry=memory(schema), single_field=True)
    run.session.state["user_info"] = dict(known)

    await run.say("I live in Lisbon in May")

    assert run.session.state == {"user_info": kept}


@pytest.mark.parametrize(
    ("field", "said", "config", "longest"),
    [
        ({"type": "string"}, "I am Ann", {}, 8),
        ({"type": "string"}, "I am Ann" * 50, {}, 100),
        ({"type": "string", "maxLength": 3}, "I am Ann", {}, 3),
        ({"type": "string"}, "I am Ann", {"grounded": False}, 100),
        ({"type": "integer"}, "I am Ann", {}, None),
        ({"enum": ["Ann"], "type": "string"}, "I am Ann", {}, None),
    ],
)
async def test_a_small_model_cannot_ramble_beyond_what_could_be_kept(
    field: dict[str, Any], said: str, config: dict[str, Any], longest: int | None
) -> None:
    entry = memory({"type": "object", "properties": {"a": field}}, **config)
    run = learner(gives({"a": None}), entry=entry, single_field=True)

    await run.say(said)

    sent = run.client.requests[1].response_schema
    assert sent is not None
    assert sent["properties"]["a"].get("maxLength") == longest


async def test_a_larger_model_may_give_two_fields_the_same_value() -> None:
    schema = {"type": "object", "properties": {"age": {"type": "integer"}, "shoe": {"type": "integer"}}}
    run = learner(gives({"age": 40, "shoe": 40}), entry=memory(schema))

    await run.say("My age is my shoe size: 40")

    assert run.session.state == {"user_info": {"age": 40, "shoe": 40}}


async def test_a_field_is_asked_for_in_the_words_of_its_description() -> None:
    schema = {"type": "object", "properties": {"pet": {"type": "string", "description": "The name of the user's dog."}}}
    run = learner(gives({"pet": "Rex"}), entry=memory(schema), single_field=True)

    await run.say("My dog is called Rex")

    assert "The name of the user's dog" in run.client.requests[1].instructions
    assert run.session.state == {"user_info": {"pet": "Rex"}}


@pytest.mark.parametrize("single_field", [False, True])
async def test_only_missing_fields_are_asked_for_and_filled(single_field: bool) -> None:
    run = learner(gives({"name": "Bob", "age": 20}), single_field=single_field)
    run.session.state["user_info"] = {"name": "Ann"}

    await run.say("Bob is 20")

    assert asked_fields(run, 1) == ["age"]
    assert run.session.state == {"user_info": {"name": "Ann", "age": 20}}


async def test_nothing_is_asked_once_everything_is_known() -> None:
    run = learner()
    run.session.state["user_info"] = {"name": "Ann", "age": 0}

    await run.say("I am Bob, 30")

    assert len(run.client.requests) == 1
    assert run.session.state == {"user_info": {"name": "Ann", "age": 0}}


@pytest.mark.parametrize(
    "answer",
    [
        [ModelUnavailable("down")],
        says("no JSON"),
        says('["Ann", 20]'),
        says('{"name": "Ann", "age": NaN}'),
        says('{"name": "Ann", "age": 1e999}'),
        says('{"name": "Ann", "age": 20}', reason="length"),
        says('{"name": "Ann", "age": 20}', reason="refusal"),
        says('{"name": "Ann", "age": 20}')[:-1],
    ],
    ids=["error", "text", "array", "NaN", "infinite", "cut", "refused", "no ending"],
)
async def test_a_failed_extraction_changes_nothing_and_costs_no_reply(answer: list[Step]) -> None:
    run = learner(answer)
    run.session.state["user_info"] = {}

    execution = await run.say("I am Ann, 20")

    assert execution.progress.text == "ok"
    assert run.session.state == {"user_info": {}}
    assert [(kind, source) for kind, _, source in run.sink.warnings] == [("providerFailed", "user_info")]
    assert run.sink.of("provider.failed")[0]["phase"] == "afterRun"


async def test_nothing_is_kept_where_the_second_of_two_calls_fails() -> None:
    run = learner(gives({"name": "Ann"}), [ModelUnavailable("down")], single_field=True)

    await run.say("I am Ann, 20")

    assert run.session.state == {"user_info": {}}


@pytest.mark.parametrize(
    ("found", "kept"),
    [
        ({"name": "John Smith", "age": 25}, {}),
        ({"name": "ann", "age": 25}, {"name": "ann"}),
        ({"name": "Ann", "age": None}, {"name": "Ann"}),
        ({"name": "  Ann ", "age": 20}, {"name": "Ann", "age": 20}),
        ({"name": "", "age": 20}, {"age": 20}),
        ({"name": "`Ann`, ", "age": 20}, {"name": "Ann", "age": 20}),
        ({"name": 20, "age": "20"}, {}),
        ({"age": 20, "extra": "Ann"}, {"age": 20}),
        ({}, {}),
    ],
)
async def test_what_is_invented_or_breaks_the_schema_is_dropped(found: dict[str, Any], kept: dict[str, Any]) -> None:
    run = learner(gives(found))

    await run.say("I am Ann, 20")

    assert run.session.state == {"user_info": kept}
    assert run.sink.warnings == []


@pytest.mark.parametrize("inputs", [[], [""], ["  \n"], [user("I am Ann", role="assistant")]])
async def test_without_words_of_the_user_nobody_is_asked(inputs: list[Any]) -> None:
    run = learner()

    await run.say(*inputs)

    assert len(run.client.requests) == 1


@pytest.mark.parametrize("source", ["history", "provider", "agent", "middleware"])
async def test_messages_that_the_user_did_not_send_are_not_searched(source: str) -> None:
    run = learner(gives({"name": "Ann", "age": 20}))

    await run.say(user("I am Ann", source=source), "somebody is 20")

    assert run.client.requests[1].messages[0].text == "somebody is 20"
    assert run.session.state == {"user_info": {"age": 20}}


async def test_what_another_provider_adds_is_not_searched() -> None:
    static = {"type": "static_messages", "config": {"messages": [{"role": "user", "content": "I am Ann"}]}}
    client = FakeClient(says("ok"), gives({"name": "Ann"}))
    run = AgentRun(client, plan=plan_of(static, memory()))

    await run.say("hello")

    assert [message.text for message in client.requests[0].messages] == ["I am Ann", "hello"]
    assert [message.text for message in client.requests[1].messages] == ["hello"]
    assert run.session.state["user_info"] == {}


@pytest.mark.parametrize(("grounded", "kept"), [(True, {}), (False, {"vegan": True, "likes": ["tea"]})])
async def test_what_cannot_be_looked_for_is_kept_only_without_grounding(grounded: bool, kept: dict[str, Any]) -> None:
    fields = {"vegan": {"type": "boolean"}, "likes": {"type": "array", "items": {"type": "string"}}}
    entry = memory({"type": "object", "properties": fields}, grounded=grounded)
    run = learner(gives({"vegan": True, "likes": ["tea"]}), entry=entry)

    await run.say("I eat no meat and like tea")

    assert run.session.state == {"user_info": kept}


async def test_definitions_of_the_schema_reach_the_model_and_the_check() -> None:
    schema = {
        "type": "object",
        "properties": {"colour": {"$ref": "#/$defs/colour"}},
        "$defs": {"colour": {"enum": ["red", "blue"]}},
    }
    run = learner(gives({"colour": "green"}), entry=memory(schema), single_field=True)

    await run.say("green")

    sent = run.client.requests[1].response_schema
    assert sent is not None
    assert sent["$defs"] == schema["$defs"]
    assert run.session.state == {"user_info": {}}


async def test_missing_fields_are_asked_for_and_known_ones_used() -> None:
    run = learner(gives({"name": "Ann"}))
    await run.say("I am Ann")
    first = run.client.requests[0].instructions.splitlines()
    assert len(first) == 2
    assert "name" in first[0]
    assert "age" in first[1]

    run.client.answers += [says("ok"), gives({"age": 20})]
    await run.say("I am 20")
    second = run.client.requests[2].instructions.splitlines()
    assert "Ann" in second[0]
    assert second[1] == first[1]

    run.client.answers.append(says("ok"))
    await run.say("bye")
    third = run.client.requests[-1].instructions.splitlines()
    assert third[0] == second[0]
    assert "20" in third[1]


async def test_instructions_may_be_worded_for_all_fields_or_one_by_one() -> None:
    run = learner(entry=memory(ask="What is {field}?", known={"age": "{field} is {value}!"}))
    run.session.state["user_info"] = {"age": 20}
    run.client.answers.append(gives({"name": None}))

    await run.say("hi")

    assert run.client.requests[0].instructions == "What is name?\nage is 20!"


async def test_an_empty_wording_says_nothing() -> None:
    run = learner(gives({"name": None, "age": None}), entry=memory(ask={"name": "", "age": "Ask for the age."}))

    await run.say("hi")

    assert run.client.requests[0].instructions == "Ask for the age."


async def test_a_learnt_value_adds_no_line_of_its_own_to_the_instructions() -> None:
    run = learner(entry=memory({"type": "object", "properties": {"name": {"type": "string"}}}))
    run.session.state["user_info"] = {"name": "Ann\n\nIgnore {field} and {value}"}

    await run.say("hi")

    assert run.client.requests[0].instructions == "The user's name: Ann Ignore {field} and {value}."


@pytest.mark.parametrize("single_field", [False, True])
async def test_the_extracting_model_can_be_told_what_to_do(single_field: bool) -> None:
    entry = memory({"type": "object", "properties": {"a": {"type": "string"}}}, instructions="Look closely.")
    run = learner(gives({"a": None}), entry=entry, single_field=single_field)

    await run.say("hi")

    assert run.client.requests[1].instructions == "Look closely."


async def test_another_model_can_extract() -> None:
    main = FakeClient(says("ok"))
    extractor = FakeClient(gives({"name": "Ann", "age": None}), name="fake:extractor")
    run = AgentRun(main, plan=plan_of(memory(model="fake:extractor")), others=[extractor])

    await run.say("I am Ann")

    assert (len(main.requests), len(extractor.requests)) == (1, 1)
    assert run.session.state == {"user_info": {"name": "Ann"}}


async def test_the_extraction_counts_in_the_run_s_usage_and_says_nothing_to_the_host() -> None:
    client = FakeClient(
        says("ok", usage=Usage(input_tokens=10, output_tokens=1)),
        gives({"name": "Ann"}, usage=Usage(input_tokens=5, output_tokens=2)),
    )
    run = AgentRun(client, plan=plan_of(memory()))

    execution = await run.say("I am Ann")

    assert execution.progress.meter.usage == Usage(input_tokens=15, output_tokens=3)
    assert run.sink.streamed == "ok"
    assert len(run.sink.of("message.completed")) == 1


async def test_the_extraction_sends_nothing_but_the_user_s_words() -> None:
    run = AgentRun(FakeClient(says("ok"), gives({})), plan=plan_of(memory(), instructions="You are a pirate."))

    await run.say("one", "two", client_kwargs={"extraBody": {"a": 1}})

    request = run.client.requests[1]
    assert [message.text for message in request.messages] == ["one\ntwo"]
    assert "pirate" not in request.instructions
    assert request.client_kwargs == {}
    assert request.options.temperature == 0


async def test_a_failed_run_teaches_nothing() -> None:
    run = AgentRun(FakeClient([ModelUnavailable("down")]), plan=plan_of(memory()))

    with pytest.raises(ModelUnavailable):
        await run.say("I am Ann")

    assert len(run.client.requests) == 1
    assert run.session.state == {"user_info": {}}


@pytest.mark.parametrize(
    ("config", "named"),
    [
        ({}, "config.schema"),
        ({"schema": {}}, "config.schema"),
        ({"schema": {"type": "array"}}, "object"),
        ({"schema": {"type": "object", "properties": {}}}, "property"),
        ({"schema": {"type": "object", "properties": {"a": "string"}}}, "properties.a"),
        ({"schema": {"type": "object", "properties": {"a": {"type": "strin"}}}}, "strin"),
        ({"schema": {"properties": {"a": {"$ref": "https://example.com/a.json"}}}}, "https://example.com/a.json"),
        ({"schema": {"properties": {"a": {"$ref": "#/$defs/b"}}}}, "#/$defs/b"),
        ({"schema": NAME_AND_AGE, "asks": "?"}, "did you mean 'ask'?"),
        ({"schema": NAME_AND_AGE, "ask": {"nmae": "?"}}, "did you mean 'name'?"),
        ({"schema": NAME_AND_AGE, "known": {"shoe": "?"}}, "the fields are name, age"),
        ({"schema": NAME_AND_AGE, "grounded": "perhaps"}, "config.grounded"),
    ],
)
def test_a_faulty_config_is_refused_by_name(config: dict[str, Any], named: str) -> None:
    with pytest.raises(ConfigInvalid) as refused:
        plan_of({"type": "structured_memory", "config": config})

    assert "structured_memory" in refused.value.message
    assert named in refused.value.message
    json.dumps(refused.value.wire())
