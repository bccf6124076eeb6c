"""The history in files around runs: a file for each session, what damage to one does, and where files may be."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from protocol.messages import Message, text_message
from providers.api.history import HistoryError
from providers.api.provider import Surroundings
from providers.file_history import FileHistoryConfig, FileHistoryProvider
from tests.bench.agent_run import AgentRun
from tests.bench.fake_client import FakeClient, says


def texts(messages: Sequence[Message]) -> list[str]:
    return [message.text for message in messages]


def inside(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir()]


def filed(folder: Path, path: str = "history", **config: Any) -> FileHistoryProvider:
    whole = FileHistoryConfig.model_validate({"path": path, **config})
    return FileHistoryProvider("file_history", whole, Surroundings(cwd=str(folder)))


async def test_a_file_history_feeds_the_next_run_and_the_next_process(tmp_path: Path) -> None:
    """Cases 12 and 19."""
    client = FakeClient(*[says("ok")] * 3)
    await AgentRun(client, [filed(tmp_path)]).say("yes")
    run = AgentRun(client, [filed(tmp_path, str(tmp_path / "history"))])
    await run.say("yes")
    await run.say("yes")

    assert texts(client.requests[2].messages) == ["yes", "ok", "yes", "ok", "yes"]
    assert (tmp_path / "history" / "s.jsonl").read_bytes().count(b"\n") == 6
    assert run.session.state == {"file_history": {}}


async def test_sessions_have_a_file_each_and_a_damaged_one_harms_no_other(tmp_path: Path) -> None:
    """Cases 23 and 24."""
    ids = ["../x", "a/b", "CON", "É", "x" * 256, "s"]
    for session_id in ids:
        await filed(tmp_path).save_messages(session_id, [text_message("user", session_id)], state={})
    assert len({name.lower() for name in inside(tmp_path / "history")}) == len(ids)
    assert inside(tmp_path) == ["history"]

    (tmp_path / "history" / "s.jsonl").write_bytes(b"{\n")

    for session_id in ids[:-1]:
        assert texts(await filed(tmp_path).get_messages(session_id, state={})) == [session_id]
    with pytest.raises(HistoryError, match=r"s\.jsonl, line 1"):
        await filed(tmp_path).get_messages("s", state={})


async def test_a_torn_end_is_warned_of_and_costs_nothing(tmp_path: Path) -> None:
    """Case 24."""
    history = filed(tmp_path)
    assert history.warning is None
    await history.save_messages("s", [text_message("user", "one")], state={})
    with (tmp_path / "history" / "s.jsonl").open("ab") as raw:
        raw.write(b'{"ro')

    assert texts(await history.get_messages("s", state={})) == ["one"]
    assert history.warning is not None
    assert "line 2" in history.warning
    run = AgentRun(FakeClient(says("ok")), [history])
    await run.say("two")
    assert [(kind, source) for kind, _, source in run.sink.warnings] == [("providerWarning", "file_history")]


async def test_a_run_without_a_session_makes_no_file(tmp_path: Path) -> None:
    history = filed(tmp_path)
    await history.save_messages(None, [text_message("user", "one")], state={})

    assert await history.get_messages(None, state={}) == ()
    assert inside(tmp_path) == []


@pytest.mark.parametrize("path", ["", ".", "..", "../x", "a/../../x", "/", "/tmp/../x", "a\0b"])
def test_a_path_that_leads_out_of_its_folder_is_refused(path: str) -> None:
    with pytest.raises(ValidationError):
        FileHistoryConfig(path=path)


async def test_a_relative_path_needs_a_working_directory() -> None:
    with pytest.raises(HistoryError, match="working directory"):
        await FileHistoryProvider("h", FileHistoryConfig(path="x")).get_messages("s", state={})
