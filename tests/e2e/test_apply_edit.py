"""The tool `edit_document`: a model edits documents that are open in the editor, each time with a person's consent."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from tests.bench.fake_editor import APPLY_EDIT, MESSAGE_REQUEST, PLAIN, SHOW_DOCUMENT, FakeEditor, without
from tests.bench.fake_model import F, FakeModel, T
from tests.bench.host import LATER, FakeHost, HostSession, Refuses
from tests.bench.wanted_calls import told, wants
from tests.bench.wire import Json

URI = "file:///w/a.py"
EDITS: Json = {"type": "editor_context", "config": {"include": [], "edits": True}}
REJECTED = "Error: Tool call invocation was rejected by user."
STALE = "the document is not what it was when the user was asked"

Start = Callable[..., Awaitable[FakeEditor]]


@pytest.fixture
def start(start_host: Any, model: FakeModel) -> Start:
    """Starts a sidecar with an editor."""

    async def start(initialize: Json = PLAIN, **options: Any) -> FakeEditor:
        return FakeEditor(await start_host(env=model.environment, initialize=initialize, **options))

    return start


def edit(old: str, new: str, uri: str = URI, **more: Any) -> tuple[str, Json]:
    """A call that replaces one text."""
    return "edit_document", {"uri": uri, "edits": [{"old_string": old, "new_string": new}], **more}


async def ask_for(model: FakeModel, session: HostSession, *calls: tuple[str, Json]) -> list[str]:
    """A run in which the model wants these calls: what it is told of each."""
    wants(model, *calls)
    model.says(T("done"), F())
    await session.run("go")
    return [text for _, text in told(model)[-len(calls) :]]


def offered(model: FakeModel) -> list[str]:
    """The tools of the last request."""
    return [tool["function"]["name"] for tool in model.last_request.body.get("tools", [])]


def asked(editor: FakeEditor) -> list[Json]:
    """The edits that the editor was asked for."""
    return [request["params"] for request in editor.host.asked(APPLY_EDIT)]


async def test_an_edit_is_shown_and_made_with_its_version_after_consent(start: Start, model: FakeModel) -> None:
    editor = await start()
    editor.opens(URI, "a = 1\nb = 2\nc = 3\n", version=7)
    session = await editor.host.create_session(contextProviders=[EDITS])

    (said,) = await ask_for(model, session, edit("b = 2", "b = 20\nbb = 21", version=7))

    assert editor.texts[URI] == "a = 1\nb = 20\nbb = 21\nc = 3\n"
    assert said == f"Edited {URI}: 1 place(s). It has version 8 now."
    (question,) = editor.host.asked(MESSAGE_REQUEST)
    assert question["params"]["message"] == (
        f"Edit document\n{URI}\n@@ line 2 @@\n  a = 1\n- b = 2\n+ b = 20\n+ bb = 21\n  c = 3"
    )
    span = {"start": {"line": 1, "character": 0}, "end": {"line": 1, "character": 5}}
    change = {"range": span, "newText": "b = 20\nbb = 21"}
    assert asked(editor) == [
        {
            "label": "agent-sidecar: edit document",
            "edit": {"documentChanges": [{"textDocument": {"uri": URI, "version": 7}, "edits": [change]}]},
        }
    ]
    (show,) = await editor.host.until(lambda: editor.host.asked(SHOW_DOCUMENT))
    selected = {"start": {"line": 1, "character": 0}, "end": {"line": 2, "character": 7}}
    assert show["params"] == {"uri": URI, "takeFocus": False, "selection": selected}


async def test_a_host_that_knows_approvals_is_told_what_the_edit_would_change(start: Start, model: FakeModel) -> None:
    block = {"sidecar": {"protocolVersions": [1], "features": {"approvals": {}}}}
    editor = await start({**PLAIN, "initializationOptions": block})
    editor.opens(URI, "a = 1\n")
    editor.host.serves["host/requestApproval"] = lambda params: {"outcome": "selected", "optionId": "allowOnce"}
    session = await editor.host.create_session(contextProviders=[EDITS])

    await ask_for(model, session, edit("1", "2"))

    (question,) = editor.host.asked("host/requestApproval")
    assert question["params"]["description"] == f"{URI}\n@@ line 1 @@\n- a = 1\n+ a = 2"
    assert question["params"]["toolCall"]["kind"] == "edit"
    assert editor.texts[URI] == "a = 2\n"


async def test_a_rejection_leaves_the_document_and_the_model_hears_of_it(start: Start, model: FakeModel) -> None:
    editor = await start()
    editor.opens(URI, "a = 1\n")
    editor.presses = "Reject"
    session = await editor.host.create_session(contextProviders=[EDITS])

    assert await ask_for(model, session, edit("1", "2")) == [REJECTED]

    assert editor.texts[URI] == "a = 1\n"
    assert asked(editor) == []


async def test_a_document_that_was_changed_while_its_user_was_asked_is_not_edited(
    start: Start, model: FakeModel
) -> None:
    editor = await start()
    editor.opens(URI, "a = 1\n")
    editor.before_press = lambda: editor.types(URI, "a = 1  # mine\n")
    session = await editor.host.create_session(contextProviders=[EDITS])

    (said,) = await ask_for(model, session, edit("1", "2"))

    assert STALE in said
    assert asked(editor) == []
    assert session.events("tool.completed")[-1]["data"]["status"] == "failed"


async def test_a_document_that_was_opened_anew_under_the_same_version_is_not_edited(
    start: Start, model: FakeModel
) -> None:
    editor = await start()
    editor.opens(URI, "safe\nx = 1\n")

    def reopen() -> None:
        editor.closes(URI)
        editor.opens(URI, "danger\nx = 1\n")

    editor.before_press = reopen
    session = await editor.host.create_session(contextProviders=[EDITS])

    (said,) = await ask_for(model, session, edit("x = 1", "x = 2"))

    assert STALE in said
    assert asked(editor) == []


async def test_the_second_edit_is_made_only_where_it_was_shown(start: Start, model: FakeModel) -> None:
    editor = await start()
    editor.opens(URI, "if admin:\n  grant()\nelse:\n  deny()\n")
    session = await editor.host.create_session(contextProviders=[EDITS])
    swap = [{"old_string": "grant", "new_string": "check"}, {"old_string": "deny", "new_string": "grant"}]

    first, second = await ask_for(model, session, edit("", "", edits=swap), edit("grant()", "grant_root()"))

    assert "Edited" in first
    assert STALE in second
    assert editor.texts[URI] == "if admin:\n  check()\nelse:\n  grant()\n"


async def test_the_document_that_was_shown_is_the_one_that_is_edited(start: Start, model: FakeModel) -> None:
    editor = await start()
    editor.opens("file:///w/a%20b.py", "x = 1\n")
    editor.before_press = lambda: editor.opens("file:///w/a b.py", "x = 1\n")
    session = await editor.host.create_session(contextProviders=[EDITS])

    (said,) = await ask_for(model, session, edit("1", "2", uri="file:///w/a b.py"))

    assert STALE in said
    assert asked(editor) == []


@pytest.mark.parametrize(("text", "made"), [("a = 1\n", True), ("b\na = 1\n", False)])
async def test_consent_that_is_given_after_a_kill_is_for_the_text_that_was_shown(
    start: Start, model: FakeModel, store: str, text: str, made: bool
) -> None:
    editor = await start(without("window", "showMessage"), store=store)
    editor.opens(URI, "a = 1\n", version=3)
    session = await editor.host.create_session(sessionId="s", contextProviders=[EDITS])
    wants(model, edit("1", "2"))
    (pending,) = (await session.run("go"))["pendingRequests"]
    editor.host.kill()
    await editor.host.wait()
    editor = await start(without("window", "showMessage"), store=store)
    editor.opens(URI, text, version=9)
    session = await editor.host.resume_session("s")
    model.says(T("done"), F())

    answer = {"outcome": "selected", "optionId": "allowOnce"}
    await editor.host.request("resolveRequest", {"sessionId": "s", "requestId": pending["requestId"], "result": answer})

    await editor.host.until(lambda: session.events("run.completed"))
    assert editor.texts[URI] == ("a = 2\n" if made else text)
    assert len(asked(editor)) == made


async def test_a_document_that_was_closed_while_its_user_was_asked_is_not_edited(
    start: Start, model: FakeModel
) -> None:
    editor = await start()
    editor.opens(URI, "a = 1\n")
    editor.before_press = lambda: editor.closes(URI)
    session = await editor.host.create_session(contextProviders=[EDITS])

    assert await ask_for(model, session, edit("1", "2")) == [
        "Error: That document is not open in the editor. Open are: none"
    ]
    assert asked(editor) == []


async def test_two_edits_of_one_answer_are_made_one_after_the_other(start: Start, model: FakeModel) -> None:
    editor = await start()
    editor.opens(URI, "a = 1\nb = 2\n")
    session = await editor.host.create_session(contextProviders=[EDITS])

    said = await ask_for(model, session, edit("a = 1", "a = 10", version=1), edit("b = 2", "b = 20", version=1))

    assert editor.texts[URI] == "a = 10\nb = 20\n"
    assert {text.rpartition(". ")[2] for text in said} == {"It has version 2 now.", "It has version 3 now."}


UNFIT: list[tuple[tuple[str, Json], str]] = [
    (edit("1", "2", uri="file:///w/other.py"), f"Error: That document is not open in the editor. Open are:\n{URI}"),
    (edit("1", "2", uri="/etc/passwd"), f"Error: That document is not open in the editor. Open are:\n{URI}"),
    (edit("z", "2"), f"Error: Could not edit {URI}: old_string does not occur in it."),
    (edit("a", "2"), f"Error: Could not edit {URI}: old_string occurs more than once; "),
    (edit("", "2"), f"Error: Could not edit {URI}: old_string is empty, but the document is not."),
    (edit("a", "a", edits=[{"old_string": "1", "new_string": "1"}]), f"Error: Could not edit {URI}: that would change"),
    (edit("1", "2", version=3), "Error: Nothing was changed: the document has version 1 by now, not 3."),
    (edit("1", "x" * 1_000_001), "Error: The edits put in more than 1000000 characters; make them smaller."),
    (edit("", "", edits=[]), "Error: Argument parsing failed."),
    (edit("", "", edits="all of it"), "Error: Argument parsing failed."),
]


async def test_what_cannot_be_edited_fails_and_nobody_is_asked(start: Start, model: FakeModel) -> None:
    editor = await start()
    editor.opens(URI, "a = 1; a = 0\n")
    session = await editor.host.create_session(contextProviders=[EDITS])
    for call, expected in UNFIT:
        (said,) = await ask_for(model, session, call)
        assert said.startswith(expected)
    assert editor.host.asked(MESSAGE_REQUEST) == asked(editor) == []
    assert {event["data"]["status"] for event in session.events("tool.completed")} == {"failed"}


async def test_beside_a_call_that_cannot_be_made_the_other_is_asked_about_and_runs(
    start: Start, model: FakeModel
) -> None:
    editor = await start()
    editor.opens(URI, "a = 1\n")
    session = await editor.host.create_session(contextProviders=[EDITS])

    unfit, fit = await ask_for(model, session, edit("z", "2"), edit("1", "2"))

    assert "does not occur" in unfit
    assert "Edited" in fit
    assert len(editor.host.asked(MESSAGE_REQUEST)) == 1
    assert editor.texts[URI] == "a = 2\n"


async def test_an_edit_that_cannot_be_shown_whole_is_not_asked_about_and_changes_nothing(
    start: Start, model: FakeModel
) -> None:
    editor = await start()
    editor.opens(URI, "start\n" + "old\n" * 5_000 + "end\n")
    session = await editor.host.create_session(contextProviders=[EDITS])

    (told,) = await ask_for(model, session, edit("old\n" * 5_000, "new\n"))

    assert "in several smaller calls" in told
    assert editor.host.asked(MESSAGE_REQUEST) == []
    assert editor.texts[URI].count("old") == 5_000


async def test_characters_beyond_16_bits_and_other_line_ends_stay_what_they_are(start: Start, model: FakeModel) -> None:
    editor = await start()
    editor.opens(URI, "é😋 = 1\r\nx = '😋'\r\nlast\r\n")
    session = await editor.host.create_session(contextProviders=[EDITS])

    await ask_for(model, session, edit("1\nx = '😋'", "2\n\ny = '𝄞'"))

    assert editor.texts[URI] == "é😋 = 2\r\n\r\ny = '𝄞'\r\nlast\r\n"
    ((change,),) = [one["edit"]["documentChanges"][0]["edits"] for one in asked(editor)]
    assert change["range"] == {"start": {"line": 0, "character": 6}, "end": {"line": 1, "character": 8}}


async def test_positions_count_as_was_agreed(start: Start, model: FakeModel) -> None:
    initialize = {"capabilities": {**PLAIN["capabilities"], "general": {"positionEncodings": ["utf-8"]}}}
    editor = await start(initialize)
    editor.opens(URI, "é😋 = 1\n")
    editor.host.serves[APPLY_EDIT] = lambda params: editor.types(URI, "é😋 = 2\n") or {"applied": True}
    session = await editor.host.create_session(contextProviders=[EDITS])
    await ask_for(model, session, edit("1", "2"))
    ((change,),) = [one["edit"]["documentChanges"][0]["edits"] for one in asked(editor)]
    assert change["range"] == {"start": {"line": 0, "character": 9}, "end": {"line": 0, "character": 10}}


async def test_an_editor_without_versioned_edits_is_sent_plain_changes(start: Start, model: FakeModel) -> None:
    editor = await start(without("workspace", "workspaceEdit"))
    editor.opens(URI, "")
    session = await editor.host.create_session(contextProviders=[EDITS])
    (said,) = await ask_for(model, session, edit("", "a = 1\n"))
    assert said.startswith("Edited")
    nowhere = {"line": 0, "character": 0}
    change = {"range": {"start": nowhere, "end": nowhere}, "newText": "a = 1\n"}
    assert [one["edit"] for one in asked(editor)] == [{"changes": {URI: [change]}}]
    assert editor.texts[URI] == "a = 1\n"


NO_EDIT: list[tuple[Any, str]] = [
    ({"applied": False, "failureReason": "read-only\0buffer"}, "the editor refuses: read-only\ufffdbuffer"),
    ({"applied": False}, "the editor refuses"),
    ({"applied": "yes"}, "the editor refuses"),
    (None, "the editor refuses"),
    (Refuses(-32803, "busy"), "the editor refuses: busy"),
    ({"applied": True}, "the editor says that it made the edit, but its document is what it was"),
]


@pytest.mark.parametrize(("answer", "why"), NO_EDIT)
async def test_an_edit_that_the_editor_does_not_make_has_failed(
    start: Start, model: FakeModel, answer: Any, why: str
) -> None:
    editor = await start()
    editor.opens(URI, "a = 1\n")
    editor.host.serves[APPLY_EDIT] = lambda params: answer
    session = await editor.host.create_session(contextProviders=[EDITS])
    assert await ask_for(model, session, edit("1", "2")) == [f"Error: The edit has failed: {why}."]
    assert editor.host.asked(SHOW_DOCUMENT) == []


async def test_the_model_hears_where_more_has_changed_than_it_edited(start: Start, model: FakeModel) -> None:
    editor = await start()
    editor.opens(URI, "a = 1\n")
    editor.host.serves[APPLY_EDIT] = lambda params: editor.types(URI, "a = 2  # formatted\n") or {"applied": True}
    session = await editor.host.create_session(contextProviders=[EDITS])
    (said,) = await ask_for(model, session, edit("1", "2"))
    assert said == f"Edited {URI}: 1 place(s). It has version 2 now. More of it has changed than was edited here."


@pytest.mark.parametrize("config", [{}, {"edits": False}])
async def test_a_hosts_session_has_the_tool_only_where_it_is_configured(
    start: Start, model: FakeModel, config: Json
) -> None:
    editor = await start()
    session = await editor.host.create_session(contextProviders=[{"type": "editor_context", "config": config}])
    model.says(T("ok"), F())
    await session.run("hi")
    assert offered(model) == []


async def test_without_an_editor_that_takes_edits_there_is_no_tool(start: Start, model: FakeModel) -> None:
    editor = await start(without("workspace", "applyEdit"))
    session = await editor.host.create_session(contextProviders=[EDITS])
    model.says(T("ok"), F())
    await session.run("hi")
    assert offered(model) == []


async def test_the_tool_is_there_once_where_two_providers_offer_it(start: Start, model: FakeModel) -> None:
    editor = await start()
    session = await editor.host.create_session(contextProviders=[EDITS, EDITS | {"sourceId": "again"}])
    model.says(T("ok"), F())
    assert (await session.run("hi"))["warnings"] == []
    assert offered(model) == ["edit_document"]


async def test_a_run_that_is_cancelled_while_the_editor_works_takes_the_edit_back(
    start: Start, model: FakeModel
) -> None:
    editor = await start()
    editor.opens(URI, "a = 1\n")
    editor.host.serves[APPLY_EDIT] = lambda params: LATER
    session = await editor.host.create_session(contextProviders=[EDITS])
    wants(model, edit("1", "2"))
    run = session.start("go")
    (request,) = await editor.host.until(lambda: editor.host.asked(APPLY_EDIT))

    await session.cancel()

    assert (await run.result())["status"] == "cancelled"
    cancels = [one["params"]["id"] for one in editor.host.messages if one.get("method") == "$/cancelRequest"]
    assert cancels == [request["id"]]
    editor.host.reply(request, {"applied": True})
    assert (await ask_for_again(editor, model, session)).startswith("Edited")


async def ask_for_again(editor: FakeEditor, model: FakeModel, session: HostSession) -> str:
    """The session goes on."""
    editor.host.serves[APPLY_EDIT] = editor.apply
    return (await ask_for(model, session, edit("1", "2")))[-1]


async def test_the_end_of_the_editor_ends_what_waits_for_it(start: Start, model: FakeModel) -> None:
    editor = await start(framing="header")
    editor.opens(URI, "a = 1\n")
    editor.host.serves[APPLY_EDIT] = lambda params: LATER
    session = await editor.host.create_session(contextProviders=[EDITS])
    wants(model, edit("1", "2"))
    session.start("go")
    await editor.host.until(lambda: editor.host.asked(APPLY_EDIT))

    editor.host.hang_up()

    async with asyncio.timeout(10):
        assert await editor.host.wait() == 1
    assert session.events("run.completed")[-1]["data"]["status"] == "interrupted"


async def test_a_parked_question_is_answered_later_and_the_edit_is_made(start: Start, model: FakeModel) -> None:
    editor = await start(without("window", "showMessage"))
    editor.opens(URI, "a = 1\n")
    session = await editor.host.create_session(contextProviders=[EDITS])
    wants(model, edit("1", "2"))
    (pending,) = (await session.run("go"))["pendingRequests"]
    assert "- a = 1\n+ a = 2" in pending["payload"]["description"]
    model.says(T("done"), F())

    answer = {"outcome": "selected", "optionId": "allowOnce"}
    await editor.host.request(
        "resolveRequest", {"sessionId": session.id, "requestId": pending["requestId"], "result": answer}
    )

    await editor.host.until(lambda: len(session.events("run.completed")) == 2)
    assert editor.texts[URI] == "a = 2\n"


async def test_hosts_are_told_of_the_key(host: FakeHost) -> None:
    listed = (await host.request("listProviders"))["items"]
    (schema,) = [one["configSchema"] for one in listed if one["type"] == "editor_context"]
    assert schema["properties"]["edits"]["default"] is False
