"""`explainRun` over the wire: runs that ended in every way, or are at work; after a restart; what is too long."""

import json
from pathlib import Path

import pytest

from tests.bench.delegating import agents, asks, cast, said
from tests.bench.fake_model import TC, F, FakeModel, Stall, T
from tests.bench.host import FakeHost, RpcError
from tests.e2e.cli_process import Cli

FACT = {"type": "static_messages", "sourceId": "facts", "config": {"messages": [{"role": "user", "content": "Tea."}]}}


def at(model: FakeModel) -> dict[str, str]:
    """The environment of a sidecar that uses the fake model."""
    return {"OPENAI_BASE_URL": model.url, "OPENAI_API_KEY": "sk-test", "OPENAI_MODEL": "fake"}


def seen(call: dict) -> list[tuple[str, str | None, str | None]]:
    """The messages of a call: type and id of the source, text."""
    return [(one["source"]["type"], one["source"].get("sourceId"), one.get("text")) for one in call["messages"]]


async def explain(host: FakeHost, run_id: str, **params: object) -> dict:
    return await host.request("explainRun", {"runId": run_id, **params})


async def test_a_run_tells_what_its_model_saw_and_from_whom(start_host, store: str) -> None:
    host = await start_host(store=store)
    agent = {"name": "helper", "model": "scripted:echo", "instructions": "Be brief.", "contextProviders": [FACT]}
    session = await host.create_session(sessionId="s", agent=agent, instructions="For Ada.")
    await session.run("one", runId="r1")
    await session.run("two", runId="r2", options={"instructions": "In French."})

    explained = await explain(host, "r2", sessionId="s")

    assert (explained["runId"], explained["agent"]) == ("r2", "helper")
    [call] = explained["calls"]
    assert (call["index"], call["model"]) == (0, "scripted:echo")
    assert [(one["text"], one["source"]["type"], one["source"].get("sourceType")) for one in call["instructions"]] == [
        ("Be brief.", "agent", None),
        ("For Ada.", "agent", "session"),
        ("In French.", "run", None),
    ]
    assert seen(call) == [
        ("history", "in_memory", None),
        ("history", "in_memory", None),
        ("provider", "facts", "Tea."),
        ("external", None, None),
    ]
    history = (await host.request("getHistory", {"sessionId": "s"}))["messages"]
    listed = [one["messageId"] for one in call["messages"]]
    assert listed[:2] + listed[3:] == [message["messageId"] for message in history[:3]]
    assert call["usage"]["estimated"] is True
    assert (explained["providers"][0]["sourceId"], explained["providers"][0]["phase"]) == ("in_memory", "beforeRun")
    assert "removed" not in call

    host.kill()
    await host.wait()
    again = await start_host(store=store)
    assert await explain(again, "r2", sessionId="s") == explained
    await again.resume_session("s")
    assert await explain(again, "r2", sessionId="s") == explained


async def test_a_failed_and_a_cancelled_run_are_explained_too(start_host, model: FakeModel, store: str) -> None:
    host = await start_host(env=at(model), store=store)
    session = await host.create_session(sessionId="s")
    model.fails(400)
    with pytest.raises(RpcError):
        await session.run("wrong", runId="failed")
    model.says(T("Once upon"), Stall())
    run = session.start("a story", runId="cut")
    await run.text_contains("Once")

    [so_far] = (await explain(host, "cut", sessionId="s"))["calls"]
    await session.cancel()
    await run.result()

    [cut] = (await explain(host, "cut", sessionId="s"))["calls"]
    [failed] = (await explain(host, "failed", sessionId="s"))["calls"]
    assert "usage" not in so_far
    assert so_far["messages"] == cut["messages"]
    assert cut["usage"]["estimated"] is True
    assert seen(failed) == [("external", None, None)]
    assert "usage" not in failed


async def test_a_run_that_waits_has_no_calls_yet_and_a_steering_one_is_explained_by_the_other(
    start_host, model
) -> None:
    host = await start_host(env={"OPENAI_BASE_URL": model.url, "OPENAI_API_KEY": "sk-test", "OPENAI_MODEL": "fake"})
    session = await host.create_session(sessionId="s")
    model.says(T("Once upon"), Stall())
    run = session.start("a story", runId="r1")
    await run.text_contains("Once")
    queued = session.start("and then", runId="r2", whenBusy="queue")
    await queued.event("run.queued")
    steered = session.start("shorter", runId="r3", whenBusy="steer", wait="accepted")
    assert (await steered.result())["runId"] == "r1"

    waiting = await explain(host, "r2", sessionId="s")
    joined = await explain(host, "r3", sessionId="s")

    assert (waiting["runId"], waiting["calls"], waiting["providers"]) == ("r2", [], [])
    assert (joined["runId"], len(joined["calls"])) == ("r1", 1)
    model.says("the end")
    await session.cancel(runId="r1")
    await run.result()
    await queued.result()


async def test_one_off_runs_are_found_by_their_id_alone(host: FakeHost) -> None:
    result = await host.request("run", {"input": "hello", "runId": "once", "agent": {"model": "scripted:echo"}})

    [call] = (await explain(host, "once"))["calls"]

    assert seen(call) == [("external", None, None)]
    assert result["runId"] == "once"


async def test_a_delegated_run_has_an_explanation_of_its_own_also_while_it_works(
    start_host, model: FakeModel, tmp_path: Path
) -> None:
    host = await start_host(args=agents(tmp_path).args, env=model.environment)
    boss = await host.create_session(sessionId="s", agent="boss")
    cast(model, boss=[asks(("Research_Agent", {"task": "Tea?"})), said("A drink.")], researcher=[[T("Let"), Stall()]])
    run = boss.start("Tell me of tea", runId="r")
    started = await host.until(lambda: [e for e in boss.events("message.delta") if "parentRunId" in e])
    child = started[0]["runId"]

    working = await explain(host, child, sessionId="s")
    await boss.cancel(runId=child)
    await run.result()

    ended = await explain(host, child, sessionId="s")
    assert (working["agent"], ended["agent"]) == ("Research Agent", "Research Agent")
    [call] = ended["calls"]
    assert [one["text"] for one in call["instructions"]] == ["I am researcher."]
    assert seen(call) == [("external", None, None)]
    assert working["calls"][0]["messages"] == call["messages"]
    assert ["usage" in one["calls"][0] for one in (working, ended)] == [False, True]
    assert len((await explain(host, "r", sessionId="s"))["calls"]) == 2


@pytest.mark.parametrize(
    ("params", "kind"),
    [
        ({"runId": "nobody"}, "runNotFound"),
        ({"runId": "nobody", "sessionId": "s"}, "runNotFound"),
        ({"runId": "r1", "sessionId": "none"}, "sessionNotFound"),
        ({"runId": "r1", "sessionId": "s", "call": 1}, "invalidParams"),
        ({"runId": "r1", "sessionId": "s", "call": -1}, "invalidParams"),
    ],
)
async def test_what_is_not_there_is_refused_by_name(host: FakeHost, params: dict, kind: str) -> None:
    session = await host.create_session(sessionId="s", model="scripted:echo")
    await session.run("hello", runId="r1")

    assert (await host.refusal("explainRun", params)).kind == kind


async def test_one_call_can_be_asked_for(start_host, model: FakeModel) -> None:
    host = await start_host(env=at(model))
    session = await host.create_session(sessionId="s")
    model.says(TC(0, "c1", "no_such_tool", "{}"), F("tool_calls"))
    model.says("sorry")
    await session.run("hello", runId="r1")

    [second] = (await explain(host, "r1", sessionId="s", call=1))["calls"]

    assert second["index"] == 1
    assert [one["role"] for one in second["messages"]] == ["user", "assistant", "tool"]


async def test_a_long_history_is_expanded_from_the_transcript_and_too_long_an_answer_names_call(
    start_host, store: str
) -> None:
    host = await start_host(store=store)
    session = await host.create_session(sessionId="s", model="scripted:echo")
    await session.run("hello")
    document = (await host.request("exportSession", {"sessionId": "s"}))["document"]
    ids = [f"m{n}" for n in range(2_000)]
    document["messages"] = [{**document["messages"][n % 2], "messageId": name} for n, name in enumerate(ids)]
    await host.request("importSession", {"document": document, "newSessionId": "long"})
    await host.request("run", {"sessionId": "long", "input": "more", "runId": "r1"})
    explained = await explain(host, "r1", sessionId="long")
    host.kill()
    await host.wait()
    limit = {"initializationOptions": {"sidecar": {"maxMessageBytes": 65_536}}}
    small = await start_host(store=store, initialize=limit)

    refusal = await small.refusal("explainRun", {"sessionId": "long", "runId": "r1"})

    assert (refusal.kind, "`call`" in refusal.message) == ("messageTooLarge", True)
    [call] = explained["calls"]
    assert [one["messageId"] for one in call["messages"][:-1]] == ids
    assert {one["role"] for one in call["messages"]} == {"user", "assistant"}


async def test_initialize_tells_that_runs_are_explained(start_host) -> None:
    host = await start_host(greet=False)
    answer = await host.request("initialize", {})
    assert answer["capabilities"]["experimental"]["sidecar"]["features"]["explain"] == {}


# ---- the command line ------------------------------------------------------------------------------------------------


async def test_run_explain_writes_plain_rows_to_stderr_and_the_answer_alone_to_stdout(tmp_path: Path) -> None:
    cli = Cli(tmp_path)
    arguments = ("--model", "scripted:echo", "--store", cli.store, "--session", "mine")
    await cli("run", "one", *arguments)

    outcome = await cli("run", "two", *arguments, "--explain")

    assert (outcome.code, outcome.out) == (0, "two\n")
    heading, *rows = [line for line in outcome.err.splitlines() if line]
    assert heading.startswith("call 0: scripted:echo · ")
    assert rows[0].split("\t")[:2] == ["2 messages", "history in_memory"]
    assert rows[1].split("\t")[:2] == ["user message", "external"]
    assert rows[2] == "providers"
    assert rows[3].split("\t")[:2] == ["in_memory", "beforeRun"]
    assert "\x1b" not in outcome.err


async def test_run_explain_of_a_failed_run_shows_what_the_model_saw_and_then_the_error(tmp_path: Path) -> None:
    cli = Cli(tmp_path)
    model = cli.script('[[reply]]\nerror = "modelQuota"\n')

    outcome = await cli("run", "hello", "--model", model, "--store", "memory", "--explain")

    assert outcome.code == 1
    assert "user message\texternal" in outcome.err
    assert outcome.err.splitlines()[-1] == "agent-sidecar: the script says so"


async def test_run_explain_as_json_is_a_line_of_its_own(tmp_path: Path) -> None:
    outcome = await Cli(tmp_path)("run", "hi", "--json", "--explain", "--model", "scripted:echo", "--store", "memory")

    [call] = json.loads(outcome.out.splitlines()[-1])["explanation"]["calls"]
    assert seen(call) == [("external", None, None)]
