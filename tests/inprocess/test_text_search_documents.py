"""The provider `text_search`: a session's folder, waiting for its index, sessions side by side."""

import asyncio
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from protocol.messages import Message
from providers import text_search_walk
from providers.api.provider import Surroundings
from providers.text_search_config import TextSearchConfig
from providers.text_search_documents import FolderSearchProvider
from sidecar.errors import ConfigInvalid
from tests.bench.agent_run import AgentRun, bound, plan_of
from tests.bench.fake_client import FakeClient, says


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    folder = tmp_path / "docs"
    folder.mkdir()
    (folder / "a.md").write_text("refunds take a month", encoding="utf-8")
    return folder


class Gate:
    """Holds up whoever looks through a folder."""

    def __init__(self) -> None:
        self.reached = threading.Event()
        self.open = threading.Event()


@pytest.fixture
def gate(monkeypatch: pytest.MonkeyPatch) -> Iterator[Gate]:
    gate = Gate()
    walk = text_search_walk.Walker.walk

    def slow(walker: text_search_walk.Walker) -> text_search_walk.Walk:
        gate.reached.set()
        assert gate.open.wait(30)
        return walk(walker)

    monkeypatch.setattr(text_search_walk.Walker, "walk", slow)
    yield gate
    gate.open.set()


def provider(folder: str, cwd: Path | None = None, **config: Any) -> FolderSearchProvider:
    options = TextSearchConfig.model_validate({"folder": folder, "index": "memory", **config})
    return FolderSearchProvider("docs", options, Surroundings(cwd=str(cwd) if cwd is not None else None))


def agent(*providers: Any) -> AgentRun:
    return AgentRun(FakeClient(*[says("ok")] * 9), list(providers))


def shown(run: AgentRun) -> list[str]:
    messages: list[Message] = list(run.client.requests[-1].messages)
    return [message.text for message in messages if message.source is not None and message.source.source_id == "docs"]


@pytest.mark.parametrize(
    ("folder", "has_cwd"),
    [
        pytest.param("docs", True, id="relative"),
        pytest.param("./docs/", True, id="dotted"),
        pytest.param("{tmp}/docs", False, id="absolute"),
    ],
)
async def test_a_folder_is_absolute_or_inside_the_session_s(
    docs: Path, tmp_path: Path, folder: str, has_cwd: bool
) -> None:
    run = agent(provider(folder.format(tmp=tmp_path), tmp_path if has_cwd else None))

    await run.say("refunds?")

    assert "refunds take a month" in shown(run)[0]


async def test_a_folder_of_the_user_s_home_is_found(
    docs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    run = agent(provider("~/docs"))

    await run.say("refunds?")

    assert shown(run)


async def test_the_session_s_folder_itself_may_be_searched(docs: Path) -> None:
    run = agent(provider(".", docs))

    await run.say("refunds?")

    assert "SourceDocLink: a.md#L1\n" in shown(run)[0]


async def test_a_relative_folder_without_a_working_directory_is_a_warning() -> None:
    run = agent(provider("docs"))

    await run.say("refunds?")

    assert "working directory" in run.sink.warnings[0][1]


def test_a_folder_is_required() -> None:
    with pytest.raises(ConfigInvalid, match="folder"):
        plan_of({"type": "text_search"})


async def test_a_search_waits_for_the_index_only_so_long(docs: Path, gate: Gate) -> None:
    search = provider(str(docs), waitMs=1)
    run = agent(search)

    await run.say("refunds?")

    assert shown(run) == []
    assert "still being read" in run.sink.of("provider.progress")[0]["message"]
    gate.open.set()
    index = search._index
    assert index is not None
    await asyncio.wrap_future(index.refreshed(lambda *_: None))

    await run.say("refunds?")

    assert shown(run)


async def test_no_search_waits_where_none_may(docs: Path, gate: Gate) -> None:
    run = agent(provider(str(docs), waitMs=0))

    await run.say("refunds?")

    assert run.sink.of("provider.progress", "provider.failed") == []
    assert run.sink.streamed == "ok"


async def test_a_hook_that_is_given_up_leaves_the_index_to_others(docs: Path, gate: Gate) -> None:
    """Case 52."""
    search = provider(str(docs))
    run = agent(bound(search, timeout_ms=50))

    await run.say("refunds?")

    assert "longer than 50 ms" in run.sink.warnings[0][1]
    gate.open.set()
    run = agent(search)
    await run.say("refunds?")
    assert shown(run)


async def test_a_cancelled_run_leaves_the_index_to_others(docs: Path, gate: Gate) -> None:
    search = provider(str(docs))
    run = agent(search)
    saying = asyncio.create_task(run.say("refunds?"))
    assert await asyncio.to_thread(gate.reached.wait, 30)

    saying.cancel()
    with pytest.raises(asyncio.CancelledError):
        await saying

    gate.open.set()
    again = agent(search)
    await again.say("refunds?")
    assert shown(again)


async def test_many_sessions_share_one_look_at_a_folder(
    docs: Path, monkeypatch: pytest.MonkeyPatch, gate: Gate
) -> None:
    runs = [agent(provider(str(docs))) for _ in range(20)]
    saying = [asyncio.create_task(run.say("refunds?")) for run in runs]
    assert await asyncio.to_thread(gate.reached.wait, 30)
    threads = [thread for thread in threading.enumerate() if thread.name == "text-search"]
    gate.open.set()

    await asyncio.gather(*saying)

    assert len(threads) == 1
    assert all(shown(run) for run in runs)


async def test_the_event_loop_goes_on_while_documents_are_read(docs: Path, gate: Gate) -> None:
    run = agent(provider(str(docs)))
    saying = asyncio.create_task(run.say("refunds?"))

    assert await asyncio.to_thread(gate.reached.wait, 30)  # it would never be reached on this loop
    gate.open.set()

    await saying


async def test_the_config_decides_which_files_count(docs: Path) -> None:
    (docs / "b.md").write_text("refunds take a week", encoding="utf-8")
    (docs / "c.log").write_text("refunds take a day", encoding="utf-8")
    run = agent(provider(str(docs), include=["*.log", "b.*"], exclude=["b.md"], maxResults=9))

    await run.say("refunds?")

    assert [line for line in shown(run)[0].splitlines() if "Link" in line] == ["SourceDocLink: c.log#L1"]
