"""An agent's plan: how a session's entries and settings join the agent's, and what is refused, by name."""

from collections.abc import Sequence
from typing import Any

import pytest

from protocol.agents import AgentSpec, ProviderEntry
from providers.api.provider import Surroundings
from providers.registry import NOT_YET, REGISTRY
from sidecar.agents.catalog import AgentCatalog, ResolvedAgent
from sidecar.agents.plan import DEFAULT_LIMITS, AgentPlan, SessionSettings, check_state, make_plan
from sidecar.config.limits import Limits
from sidecar.errors import AgentNotFound, CapabilityRequired, ConfigInvalid

Entry = dict[str, Any]


def note(source_id: str, text: str = "note", **fields: Any) -> Entry:
    return {"type": "static_messages", "sourceId": source_id, "config": config(text), **fields}


def config(text: str) -> Entry:
    return {"messages": [{"role": "user", "content": text}]}


def plan(
    *entries: Entry,
    session: Sequence[Entry] = (),
    with_history: bool = True,
    limits: Limits = DEFAULT_LIMITS,
    **spec: Any,
) -> AgentPlan:
    agent = AgentSpec.model_validate({"contextProviders": list(entries), **spec})
    added = tuple(ProviderEntry.model_validate(entry) for entry in session)
    settings = SessionSettings(instructions="session", context_providers=added)
    return make_plan(ResolvedAgent("a", agent), settings, Surroundings(), limits=limits, with_history=with_history)


def ids(made: AgentPlan) -> list[str]:
    return [provider.source_id for provider in made.providers]


def text_of(made: AgentPlan, source_id: str) -> str:
    [provider] = [p.provider for p in made.providers if p.source_id == source_id]
    return provider.config.messages[0].text


# ---- joining ---------------------------------------------------------------------------------------------------------


def test_the_session_s_entries_come_after_the_agent_s() -> None:
    assert ids(plan(note("a"), note("b"), session=[note("c")])) == ["in_memory", "a", "b", "c"]


def test_a_session_s_entry_with_the_agent_s_id_takes_its_place() -> None:
    made = plan(note("a", "old"), note("b"), session=[note("c"), note("a", "new")])

    assert ids(made) == ["in_memory", "a", "b", "c"]
    assert text_of(made, "a") == "new"


def test_an_entry_without_an_id_is_called_by_its_type() -> None:
    made = plan({"type": "static_messages", "config": config("x")}, {"type": "history"}, {"type": "instructions"})

    assert ids(made) == ["static_messages", "in_memory", "instructions"]
    assert [provider.state_key for provider in made.providers] == ids(made)


def test_a_history_is_added_first_where_none_loads_and_only_there() -> None:
    assert ids(plan(note("a"))) == ["in_memory", "a"]
    assert ids(plan(note("a"), {"type": "history", "sourceId": "mine"})) == ["a", "mine"]
    assert ids(plan(note("a"), with_history=False)) == ["a"]


def test_the_agent_of_one_plan_is_not_touched_by_another() -> None:
    spec = AgentSpec.model_validate({"contextProviders": [note("a")]})
    agent = ResolvedAgent("a", spec)

    make_plan(agent, SessionSettings(context_providers=(ProviderEntry.model_validate(note("b")),)), Surroundings())

    assert ids(make_plan(agent, SessionSettings(), Surroundings())) == ["in_memory", "a"]


def test_instructions_are_the_agent_s_then_the_session_s() -> None:
    assert plan(instructions="agent").instructions == ("agent", "session")
    assert plan(instructions="").instructions == ("session",)


def test_entries_override_the_type_s_policy_place_and_limit() -> None:
    made = plan(
        note("a"),
        note("b", onError="warn", position="after_input", timeoutMs=7, stateKey="other"),
        limits=Limits(provider_timeout_ms=99),
    )

    _, a, b = made.providers
    assert (a.on_error, a.position, a.timeout_ms, a.state_key) == ("fail", "before_input", 99, "a")
    assert (b.on_error, b.position, b.timeout_ms, b.state_key) == ("warn", "after_input", 7, "other")


def test_the_limits_of_tool_calls_come_from_the_configuration() -> None:
    made = plan(limits=Limits(max_tool_calls=3, truncated_call_rounds=5))

    assert (made.limits.max_tool_calls, made.limits.truncated_call_rounds) == (3, 5)


def test_the_number_of_model_calls_comes_from_options_then_agent_then_the_limits() -> None:
    limits = Limits(max_turns=9)
    assert plan(limits=limits).max_turns == 9
    assert plan(limits=limits, maxTurns=5).max_turns == 5
    assert plan(limits=limits, maxTurns=5, options={"maxTurns": 3}).max_turns == 3


def test_the_session_s_model_goes_before_the_agent_s() -> None:
    agent = ResolvedAgent("a", AgentSpec(model="x:agent"))

    assert make_plan(agent, SessionSettings(), Surroundings()).model == "x:agent"


# ---- refusing --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("entries", "session", "named"),
    [
        ([note("x"), {"type": "instructions", "sourceId": "x"}], [], ["'x'", "static_messages", "instructions"]),
        ([note("x"), note("x")], [], ["'x'", "static_messages"]),
        ([], [note("x"), note("x")], ["'x'"]),
        ([note("x")], [note("x"), note("x")], ["'x'"]),
        ([note("in_memory")], [], ["'in_memory'", "history", "static_messages", "added by itself"]),
        ([{"type": "history"}, {"type": "history", "sourceId": "h2"}], [], ["'in_memory'", "'h2'", "two history"]),
        ([note("a"), note("b", stateKey="a")], [], ["'a'", "'b'", "state key"]),
        ([note("a", stateKey="in_memory")], [], ["'in_memory'", "'a'", "state key"]),
    ],
    ids=["id", "id twice", "session", "replaced twice", "auto history", "two loaders", "state key", "history's key"],
)
def test_clashes_are_refused_naming_both(entries: list[Entry], session: list[Entry], named: list[str]) -> None:
    """Cases 11 and 18."""
    with pytest.raises(ConfigInvalid) as refused:
        plan(*entries, session=session)

    assert [part for part in named if part not in refused.value.message] == []


def test_two_histories_of_one_id_are_not_called_added() -> None:
    with pytest.raises(ConfigInvalid) as refused:
        plan({"type": "history"}, {"type": "history"})

    assert "added by itself" not in refused.value.message


@pytest.mark.parametrize(
    ("entry", "named"),
    [
        ({"type": "static_mesages", "sourceId": "x"}, "did you mean 'static_messages'?"),
        ({"type": "zzz"}, "the types are chat_history_memory"),
        ({"type": "static_messages", "config": {"mesages": []}}, "did you mean 'messages'?"),
        ({"type": "static_messages", "config": {**config("x"), "zzz": 1}}, "valid keys: messages"),
        ({"type": "static_messages"}, "config.messages"),
        ({"type": "static_messages", "config": {"messages": []}}, "config.messages"),
        ({"type": "static_messages", "config": {"messages": [{"role": "boss", "content": ""}]}}, "messages.0.role"),
        ({"type": "instructions", "config": {"files": ["../secret"]}}, "'../secret' is no plain file name"),
        ({"type": "history", "config": {"loadMessages": "no"}}, "config.loadMessages"),
    ],
)
def test_a_faulty_entry_is_refused_by_name(entry: Entry, named: str) -> None:
    with pytest.raises(ConfigInvalid) as refused:
        plan(entry)

    assert named in refused.value.message
    assert "Value error" not in refused.value.message


@pytest.mark.parametrize("kind", sorted(NOT_YET))
def test_a_type_of_a_later_version_is_refused_as_a_missing_feature(kind: str) -> None:
    with pytest.raises(CapabilityRequired) as refused:
        plan({"type": kind})

    assert kind in refused.value.message
    assert kind not in REGISTRY


def test_a_provider_s_state_must_be_an_object() -> None:
    made = plan(note("a"))

    check_state({"a": {"n": 1}, "free": 3}, made)
    with pytest.raises(ConfigInvalid, match="'a'"):
        check_state({"a": [1]}, made)


# ---- names -----------------------------------------------------------------------------------------------------------


def test_an_agent_named_default_is_always_there() -> None:
    resolved = AgentCatalog({}).resolve(None)

    assert ids(make_plan(resolved, SessionSettings(), Surroundings())) == ["in_memory", "instructions"]


def test_the_default_agent_s_own_providers_are_left_alone() -> None:
    catalog = AgentCatalog({"default": AgentSpec(context_providers=())})

    assert catalog.resolve("default").spec.context_providers == ()


def test_an_unknown_agent_is_refused_and_an_inline_one_needs_no_name() -> None:
    catalog = AgentCatalog({"writer": AgentSpec()}, default_agent="writer")

    assert catalog.resolve(None).name == "writer"
    assert catalog.resolve(AgentSpec()).name == "inline"
    assert catalog.resolve(AgentSpec(name="x")).name == "x"
    with pytest.raises(AgentNotFound, match="reader"):
        catalog.resolve("reader")


@pytest.mark.parametrize(
    "field",
    [
        {"compaction": {"strategy": "s"}},
        {"harness": True},
    ],
    ids=lambda field: next(iter(field)),
)
def test_a_field_of_a_later_version_is_refused_and_never_ignored(field: Entry) -> None:
    spec = AgentSpec.model_validate(field)

    with pytest.raises(CapabilityRequired):
        AgentCatalog({}).resolve(spec)


def test_the_catalog_lists_its_agents() -> None:
    infos = AgentCatalog({"w": AgentSpec(description="writes", model="x:m")}).infos()

    assert [(info.name, info.description, info.model) for info in infos] == [
        ("default", None, None),
        ("w", "writes", "x:m"),
    ]
