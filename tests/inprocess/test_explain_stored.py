"""What is stored of a run's explanation: a long history once, as a stretch of the transcript; texts up to a limit."""

from protocol.messages import text_message
from providers.api.tool import tool
from sidecar.sessions.explaining import TEXT_BUDGET
from sidecar.sessions.explanations import Expansion
from tests.bench.agent_run import AgentRun, plan_of, user
from tests.bench.explained import LATER, Past, said, shown, stored, turns
from tests.bench.fake_client import FakeClient, calls, says
from tests.bench.providers import Hook, Log, Recorder, adds


@tool
def weather(city: str = "Oslo") -> str:
    """Tell the weather."""
    return f"rain in {city}"


async def test_a_long_history_is_stored_as_one_stretch_however_many_calls_saw_it() -> None:
    past = turns(2_000)
    client = FakeClient(calls("weather"), calls("weather"), says("done"))

    execution = await AgentRun(client, [Past(past)], plan=plan_of(tools=[weather])).say("?")

    explanation = stored(execution, past)
    assert (explanation.messages[0].message_id, explanation.messages[0].last) == ("m0", "m1999")
    assert explanation.messages[0].count == 2_000
    assert len(explanation.messages) == 6
    assert [call.messages for call in explanation.calls] == [((0, 2),), ((0, 4),), ((0, 6),)]
    shown_calls = Expansion(explanation, past, LATER).calls()
    assert [len(call.messages) for call in shown_calls] == [2_001, 2_003, 2_005]
    assert [one.message_id for one in shown_calls[2].messages[:2_000]] == [one.message_id for one in past]


async def test_a_history_of_its_own_objects_is_a_stretch_too() -> None:
    past = turns(50)
    copies = [message.model_copy() for message in past if message.message_id != "m20"]

    execution = await AgentRun(FakeClient(says("ok")), [Past(copies)]).say("?")

    rows = stored(execution, past).messages
    assert [(one.message_id, one.last, one.count) for one in rows[:2]] == [("m0", "m19", 20), ("m21", "m49", 29)]
    assert len(shown(execution, past)[0].messages) == 50


async def test_a_history_that_no_transcript_has_is_listed_without_its_text() -> None:
    [call] = shown(await AgentRun(FakeClient(says("ok")), [Past(turns(2))]).say("?"))

    assert said(call)[:2] == [("user", "history", "past", None), ("assistant", "history", "past", None)]


async def test_what_the_transcript_got_later_is_not_shown_as_seen() -> None:
    past = turns(4)
    execution = await AgentRun(FakeClient(says("ok")), [Past(past)]).say("?")
    explanation = stored(execution, past)
    late = text_message("tool", "late", message_id="late", created_at="2027")

    by_now = (*past[:2], late, *past[2:])
    [call] = Expansion(explanation, by_now, "2026-06").calls()

    assert [one.message_id for one in call.messages[:4]] == ["m0", "m1", "m2", "m3"]


async def test_texts_beyond_the_budget_are_left_out_and_still_counted() -> None:
    long = "x" * (TEXT_BUDGET + 10)
    providers = [Recorder("p", Log(), before=adds("p", user(long), user("y" * 400), "z" * 400))]

    [call] = shown(await AgentRun(FakeClient(says("ok")), providers).say("?"))

    assert [one.text for one in call.messages[:2]] == [None, "y" * 400]
    assert call.messages[0].tokens == (TEXT_BUDGET + 10 + 3) // 4
    assert call.instructions[0].text == "z" * 400


async def test_a_history_that_a_provider_puts_aside_run_after_run_is_one_row_of_what_was_removed() -> None:
    def sum_up(hook: Hook) -> None:
        hook.context.replace_messages("sum", [user("In short: turns.")])

    past = turns(500)
    providers = [Past(past), Recorder("sum", Log(), before=sum_up)]

    execution = await AgentRun(FakeClient(says("ok")), providers).say("?")

    [row] = stored(execution, past).removed
    assert (row.ref, row.last, row.count) == ("m0", "m499", 500)
    [call] = shown(execution, past)
    assert [one.ref for one in call.removed or ()] == [one.message_id for one in past]


async def test_a_stretch_whose_ends_are_gone_is_left_out() -> None:
    past = turns(4)
    explanation = stored(await AgentRun(FakeClient(says("ok")), [Past(past)]).say("?"), past)

    [call] = Expansion(explanation, past[:3], LATER).calls()

    assert [one.source.type for one in call.messages] == ["external"]
