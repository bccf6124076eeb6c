"""How events become what an ACP client is shown, where no run of today's sidecar brings them about."""

from typing import Any

from sidecar.cli.acp.settings import config_options, modes
from sidecar.cli.acp.view import SessionView
from tests.bench.acp_client import Json, Schema


def event(kind: str, data: Json, **envelope: Any) -> Any:
    return {"sessionId": "s", "runId": "r", "seq": 1, "epoch": "e", "time": "t", "type": kind, "data": data, **envelope}


def shown(view: SessionView, kind: str, data: Json, **envelope: Any) -> list[Json]:
    """The updates, held against the schema where it is there."""
    updates = view.updates(event(kind, data, **envelope))
    if (schema := Schema.installed()) is not None:
        for update in updates:
            schema.check_as("SessionUpdate", update)
    return updates


def started(call: str, **more: Any) -> Json:
    return {"callId": call, "name": "look", "arguments": {}, "status": "running", **more}


def completed(call: str, **more: Any) -> Json:
    return {"callId": call, "name": "look", "status": "completed", "content": [], "durationMs": 1.0, **more}


def test_a_plan_and_a_mode_are_shown_in_acp_s_words() -> None:
    view = SessionView()
    entries = [
        {"id": 1, "title": "Read", "status": "completed"},
        {"id": 2, "title": "Write", "status": "inProgress"},
    ]

    (plan,) = shown(view, "plan.updated", {"entries": entries})
    (mode,) = shown(view, "mode.changed", {"mode": "plan", "by": "host"})

    assert [(e["content"], e["status"]) for e in plan["entries"]] == [("Read", "completed"), ("Write", "in_progress")]
    assert mode == {"sessionUpdate": "current_mode_update", "currentModeId": "plan"}


def test_a_mode_is_a_config_option_and_a_mode() -> None:
    choices: Any = [{"value": "plan", "name": "Plan"}, {"value": "act", "name": "Act", "description": "Do it."}]
    options: Any = [{"id": "mode", "name": "Mode", "value": "act", "choices": choices}]

    (option,) = config_options(options)
    assert (option["category"], option["currentValue"]) == ("mode", "act")
    assert [choice["value"] for choice in option["options"]] == ["plan", "act"]
    assert modes(options) == {
        "currentModeId": "act",
        "availableModes": [{"id": "plan", "name": "Plan"}, {"id": "act", "name": "Act", "description": "Do it."}],
    }
    assert modes([]) is None


def test_usage_is_shown_where_the_context_and_its_size_are_known() -> None:
    view, tokens = SessionView(), {"inputTokens": 1, "outputTokens": 1}

    assert shown(view, "usage.updated", {"run": tokens, "session": tokens}) == []
    (usage,) = shown(view, "usage.updated", {"run": tokens, "session": tokens, "contextUsed": 7, "contextSize": 100})

    assert usage == {"sessionUpdate": "usage_update", "used": 7, "size": 100}


def test_calls_of_one_id_in_two_runs_are_two_calls() -> None:
    view = SessionView()

    (parent,) = shown(view, "tool.started", started("c"))
    (child,) = shown(view, "tool.started", started("c"), runId="r2", parentRunId="r", parentCallId="c")
    assert parent["toolCallId"] != child["toolCallId"]

    (child_end,) = shown(view, "tool.completed", completed("c"), runId="r2", parentRunId="r")
    (parent_end,) = shown(view, "tool.completed", completed("c"))
    assert [child_end["toolCallId"], parent_end["toolCallId"]] == [child["toolCallId"], parent["toolCallId"]]


def test_what_a_delegated_agent_says_is_not_shown_as_said_by_its_caller() -> None:
    view = SessionView()

    delta = {"messageId": "m", "contentIndex": 0, "text": "psst"}

    assert shown(view, "message.delta", delta, runId="r2", parentRunId="r", ephemeral=True) == []


def test_a_call_that_waits_for_another_run_keeps_its_id() -> None:
    view = SessionView()
    (waits,) = shown(view, "tool.started", started("c", status="pending"))
    shown(view, "run.completed", {"status": "completed", "stopReason": "inputRequired"})

    (goes_on,) = shown(view, "tool.started", started("c"), runId="r2")
    (ends,) = shown(view, "tool.completed", completed("c"), runId="r2")

    assert goes_on["sessionUpdate"] == "tool_call_update"
    assert {goes_on["toolCallId"], ends["toolCallId"]} == {waits["toolCallId"]}


def test_a_call_of_an_ended_run_is_not_taken_for_a_later_one() -> None:
    view = SessionView()
    (first,) = shown(view, "tool.started", started("c"))
    shown(view, "run.completed", {"status": "interrupted", "stopReason": "interrupted"})

    (second,) = shown(view, "tool.started", started("c"), runId="r2")

    assert second["sessionUpdate"] == "tool_call"
    assert second["toolCallId"] != first["toolCallId"]


def test_a_call_that_never_began_is_shown_whole() -> None:
    (call,) = shown(SessionView(), "tool.completed", completed("c", status="denied"))

    assert (call["sessionUpdate"], call["title"], call["status"]) == ("tool_call", "look", "failed")


def test_progress_is_told_from_its_beginning_and_does_not_grow_without_end() -> None:
    view = SessionView()
    shown(view, "tool.started", started("c"))

    for _ in range(3):
        (update,) = shown(view, "tool.delta", {"callId": "c", "text": "x" * 5_000}, ephemeral=True)

    assert len(update["content"][0]["content"]["text"]) == 10_000


def test_null_stays_in_arguments_and_results_and_is_left_out_of_blocks() -> None:
    view = SessionView()
    block = {"type": "resource_link", "uri": "file:///a", "name": "a", "title": None}

    (begun,) = shown(view, "tool.started", started("c", arguments={"line": None}, kind="of ours", title="Look"))
    (ended,) = shown(view, "tool.completed", completed("c", content=[block], structuredContent={"n": None}))

    assert (begun["rawInput"], begun["kind"], begun["title"]) == ({"line": None}, "other", "Look")
    assert ended["rawOutput"] == {"n": None}
    assert ended["content"][0]["content"] == {"type": "resource_link", "uri": "file:///a", "name": "a"}


def test_warnings_are_notices_for_clients_that_show_them() -> None:
    warning = {"kind": "modelRateLimited", "message": "trying again"}

    assert shown(SessionView(), "warning", warning) == []
    (notice,) = shown(SessionView(notices=True), "warning", warning)
    assert notice["title"] == "trying again"


def test_events_of_a_later_version_are_not_shown() -> None:
    assert shown(SessionView(), "something.new", {}) == []
