"""The providers around a run: their order, their failures, their time limits, and what is undone."""

import asyncio
from typing import Any, Literal

import pytest

from protocol.messages import Message, text_message
from sidecar.agents.runner import Execution
from sidecar.errors import ConfigInvalid, ModelUnavailable, ProviderFailed
from tests.bench.agent_run import AgentRun, bound, plan_of
from tests.bench.fake_client import FakeClient, Hang, TextDelta, says
from tests.bench.providers import Action, Hook, Log, Recorder, adds, fails, hangs, writes


def three(log: Log, **of_b: Action) -> list[Recorder]:
    return [Recorder("a", log), Recorder("b", log, **of_b), Recorder("c", log)]


def told(text: str) -> Message:
    return text_message("user", text)


def seen(run: AgentRun, call: int = 0) -> list[str]:
    return [message.text for message in run.client.requests[call].messages]


async def stop(run: AgentRun, execution: Execution, work: "asyncio.Task[None]") -> None:
    """End a run as its turn does."""
    work.cancel()
    with pytest.raises(asyncio.CancelledError):
        await work
    await execution.failed(RuntimeError("the run was stopped"))
    await run.sink.commit()


async def test_before_goes_forward_and_after_in_reverse() -> None:
    """Case 2."""
    log = Log()

    await AgentRun(FakeClient(says("ok")), three(log)).say("hi")

    assert log.lines == ["before:a", "before:b", "before:c", "after:c", "after:b", "after:a"]


async def test_after_goes_forward_where_the_agent_says_so() -> None:
    log = Log()

    await AgentRun(FakeClient(says("ok")), three(log), plan=plan_of(afterRunOrder="forward")).say("hi")

    assert log.lines == ["before:a", "before:b", "before:c", "after:a", "after:b", "after:c"]


async def test_each_hook_is_told_of_by_exactly_one_event() -> None:
    run = AgentRun(FakeClient(says("ok")), three(Log(), before=adds("b", "Be kind.", told("x"))))

    await run.say("hi")

    ended = [(e["sourceId"], e["phase"]) for e in run.sink.of("provider.completed", "provider.failed")]
    assert ended == [(e["sourceId"], e["phase"]) for e in run.sink.of("provider.started")]
    assert len(ended) == 6
    added = {e["sourceId"]: e["added"] for e in run.sink.of("provider.completed") if e["phase"] == "beforeRun"}
    assert added["b"] == {"instructions": 1, "messages": 1, "tools": 0, "middleware": 0, "tokens": 3}
    assert added["c"]["instructions"] == 0


async def test_a_failing_before_ends_the_run_before_any_model_call() -> None:
    """Case 3."""
    log = Log()
    run = AgentRun(FakeClient(), three(log, before=fails()))

    with pytest.raises(ProviderFailed) as failure:
        await run.say("hi")

    assert run.client.requests == []
    assert log.lines == ["before:a", "before:b", "failed:b", "failed:a"]
    assert [error for _, error, _ in log.errors] == [failure.value, failure.value]
    assert (failure.value.fields["source_id"], failure.value.fields["phase"]) == ("b", "beforeRun")
    assert "KeyError" in failure.value.message
    assert "secret text" not in failure.value.message
    assert [e["sourceId"] for e in run.sink.of("provider.failed")] == ["b"]
    assert run.stats["b"].last_error == failure.value.message


async def test_our_own_errors_are_told_in_full() -> None:
    run = AgentRun(FakeClient(), three(Log(), before=fails(ConfigInvalid("turn it on first"))))

    with pytest.raises(ProviderFailed, match="turn it on first"):
        await run.say("hi")


async def test_a_failing_before_that_only_warns_leaves_nothing_behind() -> None:
    log = Log()

    def half(hook: Hook) -> None:
        adds("b", "Be rude.", told("poison"))(hook)
        adds("elsewhere", told("more poison"))(hook)
        hook.state["half"] = True
        hook.state["known"].append("half")
        hook.session.state["shared"] = "half"
        del hook.session.state["kept"]

    a, b, c = three(log, before=fails(first=half))
    run = AgentRun(FakeClient(says("ok")), [a, bound(b, on_error="warn"), c])
    run.session.state.update(b={"known": ["old"]}, kept=1)

    execution = await run.say("hi")

    assert execution.progress.text == "ok"
    assert log.lines == ["before:a", "before:b", "before:c", "after:c", "after:b", "after:a"]
    assert seen(run) == ["hi"]
    assert run.client.requests[0].instructions == ""
    assert run.session.state == {"a": {}, "b": {"known": ["old"]}, "c": {}, "kept": 1}
    assert [(kind, source) for kind, _, source in run.sink.warnings] == [("providerFailed", "b")]


@pytest.mark.parametrize("policy", ["fail", "warn"])
async def test_a_failing_after_costs_its_own_writes_and_nothing_else(policy: Literal["fail", "warn"]) -> None:
    log = Log()
    first, last = Recorder("a", log, after=writes(n=1)), Recorder("c", log, after=writes(n=3))
    broken = Recorder("b", log, before=writes(early=1), after=fails(first=writes(n=2)))
    run = AgentRun(FakeClient(says("the reply")), [first, bound(broken, on_error=policy), last])

    execution = await run.say("hi")

    assert execution.progress.text == "the reply"
    assert log.lines[3:] == ["after:c", "after:b", "after:a"]
    assert log.errors == []
    assert run.session.state == {"a": {"n": 1}, "b": {"early": 1}, "c": {"n": 3}}
    assert [(kind, source) for kind, _, source in run.sink.warnings] == [("providerFailed", "b")]


@pytest.mark.parametrize("phase", ["before", "after"])
async def test_a_hook_that_takes_too_long_is_cut(phase: str) -> None:
    slow = Recorder("slow", Log(), **{phase: hangs(first=writes(n=1))})
    run = AgentRun(FakeClient(says("ok")), [bound(slow, timeout_ms=20, on_error="warn")])

    execution = await run.say("hi")

    assert execution.progress.text == "ok"
    assert run.session.state == {"slow": {}}
    assert "20 ms" in run.sink.warnings[0][1]


async def test_a_time_out_of_the_hook_s_own_making_is_told_as_such() -> None:
    run = AgentRun(FakeClient(), [Recorder("p", Log(), before=fails(TimeoutError("the search server is slow")))])

    with pytest.raises(ProviderFailed) as failure:
        await run.say("hi")

    assert "TimeoutError" in failure.value.message
    assert "10000 ms" not in failure.value.message


@pytest.mark.parametrize("value", [{1, 2}, [b"x"], {"a": [float("nan")]}], ids=["set", "bytes", "nan"])
async def test_state_that_is_no_json_fails_its_writer_by_name_and_spares_the_others(value: Any) -> None:
    log = Log()
    run = AgentRun(
        FakeClient(says("ok")),
        [Recorder("good", log, after=writes(n=1)), Recorder("bad", log, after=writes(deep={"value": value}))],
    )

    await run.say("hi")

    assert run.session.state == {"good": {"n": 1}, "bad": {}}
    [(_, message, source)] = run.sink.warnings
    assert source == "bad"
    assert "bad.deep.value" in message


async def test_a_state_key_that_somebody_overwrote_fails_its_provider_only() -> None:
    log = Log()

    def overwrite(hook: Hook) -> None:
        hook.session.state["b"] = "text"

    providers = [Recorder("a", log), Recorder("b", log), Recorder("c", log, after=overwrite)]
    run = AgentRun(FakeClient(says("ok")), providers)

    execution = await run.say("hi")

    assert execution.progress.text == "ok"
    assert log.lines[3:] == ["after:c", "after:a"]
    assert [source for _, _, source in run.sink.warnings] == ["b"]


async def test_a_failing_model_is_told_to_every_provider_with_the_partial_text() -> None:
    log = Log()
    error = ModelUnavailable("down")
    run = AgentRun(FakeClient([TextDelta("Once "), TextDelta("upon"), error]), three(log))

    with pytest.raises(ModelUnavailable):
        await run.say("hi")

    assert log.errors == [("c", error, "Once upon"), ("b", error, "Once upon"), ("a", error, "Once upon")]
    assert not any(line.startswith("after") for line in log.lines)


async def test_a_failure_hook_that_fails_or_hangs_keeps_no_other_from_hearing() -> None:
    log, reached = Log(), asyncio.Event()
    providers = [
        Recorder("a", log),
        Recorder("b", log, failed=hangs(reached)),
        Recorder("c", log, failed=fails()),
    ]
    run = AgentRun(FakeClient([ModelUnavailable("down")]), providers)
    execution = run.execution("hi")
    with pytest.raises(ModelUnavailable) as failure:
        await execution.run()

    hooks = asyncio.create_task(execution.failed(failure.value))
    await reached.wait()
    await asyncio.sleep(0)
    hooks.cancel()

    assert log.lines[3:] == ["failed:c", "failed:b", "failed:a"]
    with pytest.raises(asyncio.CancelledError):
        await hooks


async def test_a_cancel_in_the_middle_of_the_answer_gives_the_partial_text_to_the_failure_hooks() -> None:
    log, hang = Log(), Hang()
    run = AgentRun(FakeClient([TextDelta("Once upon"), hang]), three(log))
    execution = run.execution("hi")
    work = asyncio.create_task(execution.run())
    await hang.reached.wait()

    await stop(run, execution, work)

    assert [(source, partial) for source, _, partial in log.errors] == [(p, "Once upon") for p in "cba"]
    assert execution.progress.partial_text == "Once upon"
    assert run.client.closed == 1
    assert run.sink.of("message.completed") == []


@pytest.mark.parametrize("phase", ["before", "after"])
async def test_a_hook_that_is_stopped_has_its_one_event_and_leaves_nothing_behind(phase: str) -> None:
    reached = asyncio.Event()
    provider = Recorder("p", Log(), **{phase: hangs(reached, first=writes(n=1))})
    run = AgentRun(FakeClient(says("ok")), [provider])
    execution = run.execution("hi")
    work = asyncio.create_task(execution.run())
    await reached.wait()

    await stop(run, execution, work)

    assert run.session.state == {"p": {}}
    assert execution.progress.answered == (phase == "after")
    assert [(e["phase"], e["error"]["kind"]) for e in run.sink.of("provider.failed")] == [
        (f"{phase}Run", "providerFailed")
    ]


async def test_context_stands_around_the_input_in_list_order() -> None:
    log = Log()
    providers = [
        bound(Recorder("late", log, before=adds("late", told("late"))), position="after_input"),
        Recorder("one", log, before=adds("one", told("one"))),
        Recorder("two", log, before=adds("two", told("two"))),
        bound(Recorder("later", log, before=adds("later", told("later"))), position="after_input"),
        Recorder("last", log, before=adds("a name of its own", told("stray"))),
    ]
    run = AgentRun(FakeClient(says("ok")), providers)

    await run.say("hi", "there")

    assert seen(run) == ["one", "two", "stray", "hi", "there", "late", "later"]


async def test_instructions_stand_in_the_order_agent_session_providers_options_run() -> None:
    log = Log()
    run = AgentRun(
        FakeClient(says("ok")),
        [
            Recorder("a", log, before=adds("a", "first provider", " ")),
            Recorder("b", log, before=adds("b", "second provider")),
        ],
        plan=plan_of(instructions="agent", options={"instructions": "options"}),
    )

    await run.say("hi", run_instructions="run")

    assert run.client.requests[0].instructions == "agent\nfirst provider\nsecond provider\noptions\nrun"


async def test_what_a_provider_adds_is_there_for_one_run_only() -> None:
    """Case 8."""
    log = Log()
    run = AgentRun(FakeClient(says("ok"), says("ok")), [Recorder("a", log, before=adds("a", "once", told("once")))])
    await run.say("hi")
    run.plan = plan_of()

    await run.say("again")

    assert seen(run, 1) == ["again"]
    assert run.client.requests[1].instructions == ""
