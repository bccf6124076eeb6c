"""The editor commands, with a sidecar and an editor in the place of the real ones: what is asked, shown, answered."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from sidecar.errors import InvalidParams, ServerCancelled, SessionBusy, SidecarError
from sidecar.lsp import progress
from sidecar.lsp.client_capabilities import ClientCapabilities
from sidecar.lsp.commands import Commands
from sidecar.lsp.editor_tasks import EditorTasks

Json = dict[str, Any]
TASKS = EditorTasks(lambda uri: None, "utf-16", can_edit=False)


class FakeSidecar:
    """Answers at once, except a run: it waits until it is told to go on, or is cancelled."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, Json]] = []
        self.running = asyncio.Event()
        self.go_on = asyncio.Event()
        self.fails: SidecarError | None = None
        self.emit: Callable[[Json], None]

    async def create_session(self, params: Json) -> Json:
        self.calls.append(("createSession", params))
        await asyncio.sleep(0)
        if self.fails is not None:
            raise self.fails
        return {"session": {"sessionId": f"ses_{sum(name == 'createSession' for name, _ in self.calls)}"}}

    async def run(self, params: Json, on_event: Callable[[Json], None]) -> Json:
        self.calls.append(("run", params))
        self.emit = lambda event: on_event({"data": {}, **event})
        self.running.set()
        await self.go_on.wait()
        if self.fails is not None:
            raise self.fails
        cancelled = any(name == "cancelRun" for name, _ in self.calls)
        return {
            "runId": params["runId"],
            "sessionId": params["sessionId"],
            "status": "cancelled" if cancelled else "completed",
            "stopReason": "cancelled" if cancelled else "endTurn",
            "text": f"so far: {params['input']}",
        }

    async def cancel_run(self, params: Json) -> Json:
        self.calls.append(("cancelRun", params))
        self.go_on.set()
        return {"status": "cancelling"}

    async def get_state(self, params: Json) -> Json:
        self.calls.append(("getState", params))
        return {"server": {}, "documents": [{"uri": "file:///a"}]}


class FakeEditor:
    """Records what it is sent; it accepts a progress token when it is told to."""

    def __init__(self) -> None:
        self.sent: list[tuple[str, Json]] = []
        self.created: list[str] = []
        self.accepts = asyncio.Event()
        self.accepts.set()
        self.answer = True
        self._changed = asyncio.Event()

    def notify(self, method: str, params: Json) -> None:
        self.sent.append((method, params))
        self._changed.set()

    async def until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(10):
            while not condition():
                self._changed.clear()
                await self._changed.wait()

    async def create_progress(self, token: str) -> bool:
        self.created.append(token)
        await self.accepts.wait()
        return self.answer

    def progress(self, token: object = None) -> list[Json]:
        return [
            params["value"]
            for method, params in self.sent
            if method == "$/progress" and (token is None or params["token"] == token)
        ]

    def shown(self) -> list[tuple[int, str]]:
        return [(params["type"], params["message"]) for method, params in self.sent if method == "window/showMessage"]


@pytest.fixture
def sidecar() -> FakeSidecar:
    return FakeSidecar()


@pytest.fixture
def editor() -> FakeEditor:
    return FakeEditor()


@pytest.fixture
def commands(sidecar: FakeSidecar, editor: FakeEditor) -> Commands:
    return Commands(sidecar, editor, ClientCapabilities(), TASKS)


async def execute(commands: Commands, command: str, *arguments: Any, **params: Any) -> Json:
    return await commands.execute({"command": command, "arguments": list(arguments), **params}, asyncio.Event())


async def started(
    commands: Commands, sidecar: FakeSidecar, **params: Any
) -> tuple["asyncio.Task[Json]", asyncio.Event]:
    """A run under way, and what cancels its request."""
    stop = asyncio.Event()
    request = {"command": "sidecar.run", "arguments": ["hello"], **params}
    task = asyncio.create_task(commands.execute(request, stop))
    await sidecar.running.wait()
    return task, stop


async def settled() -> None:
    """Let every task go on until it waits for something."""
    for _ in range(10):
        await asyncio.sleep(0)


async def test_a_run_is_answered_with_its_result_and_shown(
    commands: Commands, sidecar: FakeSidecar, editor: FakeEditor
) -> None:
    sidecar.go_on.set()
    result = await execute(commands, "sidecar.run", "hello")
    assert (result["status"], result["text"], result["sessionId"]) == ("completed", "so far: hello", "ses_1")
    assert editor.shown() == [(3, "so far: hello")]
    assert editor.progress() == []


async def test_the_first_run_makes_the_session_and_later_ones_use_it(commands: Commands, sidecar: FakeSidecar) -> None:
    sidecar.go_on.set()
    await asyncio.gather(*(execute(commands, "sidecar.run", text) for text in ("one", "two")))
    assert [name for name, _ in sidecar.calls].count("createSession") == 1
    assert {params["sessionId"] for name, params in sidecar.calls if name == "run"} == {"ses_1"}


async def test_a_new_session_is_what_runs_mean_from_then_on(
    commands: Commands, sidecar: FakeSidecar, editor: FakeEditor
) -> None:
    sidecar.go_on.set()
    await execute(commands, "sidecar.run", "one")
    created = await execute(commands, "sidecar.newSession", {"title": "another"})
    assert created["session"]["sessionId"] == "ses_2"
    assert sidecar.calls[-1] == ("createSession", {"title": "another"})
    assert (await execute(commands, "sidecar.run", "two"))["sessionId"] == "ses_2"
    assert (3, "new session ses_2") in editor.shown()


async def test_params_of_run_may_be_given_in_place_of_a_prompt(commands: Commands, sidecar: FakeSidecar) -> None:
    sidecar.go_on.set()
    await execute(commands, "sidecar.run", {"input": "hi", "runId": "r1", "sessionId": "mine", "wait": "accepted"})
    expected = {"input": "hi", "runId": "r1", "sessionId": "mine", "wait": "completed"}
    assert sidecar.calls == [("run", expected)]


async def test_progress_goes_from_begin_through_stages_and_text_to_end(
    commands: Commands, sidecar: FakeSidecar, editor: FakeEditor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "REPORT_EVERY_S", 0)
    run, _ = await started(commands, sidecar, workDoneToken=7)
    for shown, event in (
        ("memory: beforeRun", {"type": "provider.started", "data": {"sourceId": "memory", "phase": "beforeRun"}}),
        ("memory: beforeRun", {"type": "message.started"}),
        ("Once ", {"type": "message.delta", "data": {"text": "Once "}}),
        ("Once upon", {"type": "message.delta", "data": {"text": "upon"}}),
        ("Once upon", {"type": "message.delta", "data": {"text": "a delegate's own"}, "parentRunId": "r0"}),
        ("tool search", {"type": "tool.started", "data": {"name": "search"}}),
        ("tool search", {"type": "an event of later days"}),
    ):
        sidecar.emit(event)
        await editor.until(lambda shown=shown: editor.progress()[-1].get("message") == shown)
    sidecar.go_on.set()
    await run

    begin, *reports, end = editor.progress(7)
    assert begin == {"kind": "begin", "title": "agent-sidecar", "cancellable": True}
    assert [report["message"] for report in reports] == [
        "memory: beforeRun",
        "Once ",
        "Once upon",
        "tool search",
    ]
    assert {report["kind"] for report in reports} == {"report"}
    assert end == {"kind": "end", "message": "endTurn"}


async def test_reports_that_come_too_fast_replace_one_another(
    commands: Commands, sidecar: FakeSidecar, editor: FakeEditor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "REPORT_EVERY_S", 0.02)
    run, _ = await started(commands, sidecar, workDoneToken="t")
    for word in "abcdefgh":
        sidecar.emit({"type": "message.delta", "data": {"text": word}})
    assert [value.get("message") for value in editor.progress()] == [None, "a"]
    await editor.until(lambda: editor.progress()[-1].get("message") == "abcdefgh")
    sidecar.go_on.set()
    await run
    assert len(editor.progress()) == 4  # begin, the first letter, all of them, end


async def test_of_a_long_text_the_end_is_shown(commands: Commands, sidecar: FakeSidecar, editor: FakeEditor) -> None:
    run, _ = await started(commands, sidecar, workDoneToken="t")
    sidecar.emit({"type": "message.delta", "data": {"text": "x" * 100_000 + "the end"}})
    sidecar.go_on.set()
    await run
    assert editor.progress()[1]["message"].endswith("the end")
    assert len(editor.progress()[1]["message"]) < 5000


@pytest.mark.parametrize("how", ["request", "progress", "command"])
async def test_a_cancelled_run_is_answered_with_its_result(
    commands: Commands, sidecar: FakeSidecar, editor: FakeEditor, how: str
) -> None:
    run, stop = await started(commands, sidecar, workDoneToken="t")
    if how == "request":
        stop.set()
    elif how == "progress":
        commands.cancel_progress({"token": "t"})
    else:
        assert (await execute(commands, "sidecar.cancel"))["status"] == "cancelling"

    result = await run

    assert result["status"] == "cancelled"
    asked = next(params for name, params in sidecar.calls if name == "cancelRun")
    assert asked == {"sessionId": "ses_1"} | ({} if how == "command" else {"runId": result["runId"]})
    assert editor.progress()[-1] == {"kind": "end", "message": "cancelled"}
    assert editor.shown() == [(2, "so far: hello\n(cancelled)")]


async def test_a_request_that_was_cancelled_before_it_began_is_answered_too(
    commands: Commands, sidecar: FakeSidecar
) -> None:
    stop = asyncio.Event()
    stop.set()
    result = await commands.execute({"command": "sidecar.run", "arguments": ["hello"]}, stop)
    assert result["status"] == "cancelled"
    assert [name for name, _ in sidecar.calls] == ["createSession", "run", "cancelRun"]


@pytest.mark.parametrize(
    "params", [None, [], {}, {"token": "other"}, {"token": None}, {"token": True}, {"token": ["t"]}, {"token": "1"}]
)
async def test_cancelling_progress_that_is_not_there_is_harmless(
    commands: Commands, sidecar: FakeSidecar, params: Any
) -> None:
    run, _ = await started(commands, sidecar, workDoneToken=1)
    commands.cancel_progress(params)
    await settled()
    assert not run.done()
    sidecar.go_on.set()
    assert (await run)["status"] == "completed"
    commands.cancel_progress({"token": 1})


async def test_a_client_that_declares_it_is_asked_for_progress(sidecar: FakeSidecar, editor: FakeEditor) -> None:
    commands = Commands(sidecar, editor, ClientCapabilities(progress=True), TASKS)
    run, _ = await started(commands, sidecar)
    await settled()
    (token,) = editor.created
    assert editor.progress(token)[0]["kind"] == "begin"
    commands.cancel_progress({"token": token})
    assert (await run)["status"] == "cancelled"
    assert editor.progress(token)[-1]["kind"] == "end"


async def test_the_clients_own_token_is_used_before_one_of_ours(sidecar: FakeSidecar, editor: FakeEditor) -> None:
    sidecar.go_on.set()
    await execute(
        Commands(sidecar, editor, ClientCapabilities(progress=True), TASKS),
        "sidecar.run",
        "hello",
        workDoneToken="theirs",
    )
    assert editor.created == []
    assert [value["kind"] for value in editor.progress("theirs")] == ["begin", "end"]


async def test_no_run_waits_for_an_editor_that_does_not_answer(sidecar: FakeSidecar, editor: FakeEditor) -> None:
    editor.accepts.clear()
    sidecar.go_on.set()
    async with asyncio.timeout(10):
        result = await execute(
            Commands(sidecar, editor, ClientCapabilities(progress=True), TASKS), "sidecar.run", "hello"
        )
    assert result["status"] == "completed"
    assert editor.progress() == []


async def test_an_editor_that_refuses_the_token_is_shown_no_progress(sidecar: FakeSidecar, editor: FakeEditor) -> None:
    editor.answer = False
    run, _ = await started(Commands(sidecar, editor, ClientCapabilities(progress=True), TASKS), sidecar)
    await settled()
    sidecar.emit({"type": "message.delta", "data": {"text": "word"}})
    sidecar.go_on.set()
    await run
    assert editor.progress() == []
    assert editor.shown() == [(3, "so far: hello")]


async def test_a_failure_is_shown_answered_and_ends_the_progress(
    commands: Commands, sidecar: FakeSidecar, editor: FakeEditor
) -> None:
    sidecar.fails = SidecarError("the store is full")
    sidecar.go_on.set()
    with pytest.raises(SidecarError):
        await execute(commands, "sidecar.run", {"input": "hello", "sessionId": "ses_1"}, workDoneToken="t")
    assert editor.progress()[-1] == {"kind": "end", "message": "failed"}
    assert editor.shown() == [(1, sidecar.fails.message)]


async def test_a_session_that_cannot_be_made_is_tried_again_by_the_next_command(
    commands: Commands, sidecar: FakeSidecar
) -> None:
    sidecar.fails = SidecarError("the store is full")
    with pytest.raises(SidecarError):
        await execute(commands, "sidecar.run", "hello")
    sidecar.fails = None
    sidecar.go_on.set()
    assert (await execute(commands, "sidecar.run", "hello"))["status"] == "completed"


@pytest.mark.parametrize(
    ("command", "arguments"),
    [
        ("sidecar.run", None),
        ("sidecar.run", []),
        ("sidecar.run", [None]),
        ("sidecar.run", [7]),
        ("sidecar.run", [{"prompt": "no input"}]),
        ("sidecar.run", ["one", "two"]),
        ("sidecar.run", "not a list"),
        ("sidecar.cancel", ["text"]),
        ("sidecar.newSession", [{}, {}]),
    ],
)
async def test_arguments_that_do_not_fit_are_refused_before_anything_is_made(
    commands: Commands, sidecar: FakeSidecar, editor: FakeEditor, command: str, arguments: Any
) -> None:
    with pytest.raises(InvalidParams):
        await commands.execute({"command": command, "arguments": arguments}, asyncio.Event())
    assert sidecar.calls == []
    assert [kind for kind, _ in editor.shown()] == [1]


@pytest.mark.parametrize("arguments", [None, [], [None], [{}]])
async def test_a_command_without_arguments_may_say_so_in_any_way(
    commands: Commands, sidecar: FakeSidecar, arguments: Any
) -> None:
    await commands.execute({"command": "sidecar.newSession", "arguments": arguments}, asyncio.Event())
    assert sidecar.calls == [("createSession", {})]


async def test_before_the_first_session_there_is_nothing_to_cancel_and_none_is_made(
    commands: Commands, sidecar: FakeSidecar, editor: FakeEditor
) -> None:
    assert await execute(commands, "sidecar.cancel") == {"status": "notRunning"}
    state = await execute(commands, "sidecar.showState")
    assert state["documents"] == [{"uri": "file:///a"}]
    ((name, params),) = sidecar.calls
    assert name == "getState"
    assert "sessionId" not in params
    assert "documents" in params["include"]
    assert editor.shown() == [(3, "no session yet; 1 open documents")]


async def test_the_state_shown_is_that_of_the_session(commands: Commands, sidecar: FakeSidecar) -> None:
    await execute(commands, "sidecar.newSession")
    await execute(commands, "sidecar.showState")
    assert sidecar.calls[-1][1]["sessionId"] == "ses_1"


@pytest.mark.parametrize(
    "params", [None, [], {}, {"command": None}, {"command": "sidecar"}, {"command": ["sidecar.run"]}]
)
def test_other_commands_are_left_to_the_language_server(params: Any) -> None:
    assert not Commands.takes(params)


async def test_whoever_ends_the_editor_is_shown_no_error_of_what_was_still_under_way(
    commands: Commands, sidecar: FakeSidecar, editor: FakeEditor
) -> None:
    sidecar.fails = ServerCancelled()

    with pytest.raises(ServerCancelled):
        await commands.execute({"command": "sidecar.newSession"}, asyncio.Event())

    assert editor.sent == []


async def test_a_command_that_comes_too_early_says_what_a_user_can_do(
    commands: Commands, sidecar: FakeSidecar, editor: FakeEditor
) -> None:
    sidecar.fails = SessionBusy("s", "r", allowed=("queue", "steer"))

    with pytest.raises(SessionBusy):
        await commands.execute({"command": "sidecar.newSession"}, asyncio.Event())

    ((method, shown),) = editor.sent
    assert (method, shown["type"]) == ("window/showMessage", 1)
    assert "sidecar.cancel" in shown["message"]
    assert "whenBusy" not in shown["message"]
