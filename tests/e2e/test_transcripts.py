"""The golden conversations of `tests/transcripts`: played on both framings, and every session replayed as it was live.

One framing goes over the loop's own pipes, the other through threads, as on Windows.

`AGENT_SIDECAR_REWRITE_TRANSCRIPTS=1` writes them anew, from what the sidecar says now.
"""

import os
import shutil
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from sidecar.cli.conformance.conversations import Line, read
from tests.bench.host import FakeHost
from tests.bench.transcript import Differs, Player, durable, write
from tests.bench.wire import Framing

StartHost = Callable[..., Awaitable[FakeHost]]

TRANSCRIPTS = Path(__file__).parents[1] / "transcripts"
REWRITE = os.environ.get("AGENT_SIDECAR_REWRITE_TRANSCRIPTS") == "1"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where the sidecar works: it holds the scripts, and no configuration."""
    return shutil.copytree(TRANSCRIPTS / "scripts", tmp_path / "work" / "scripts").parent


@pytest.fixture
def start(start_host: StartHost, store: str, folder: Path, framing: Framing) -> Callable[[], Awaitable[FakeHost]]:
    """Starts sidecars that have been told nothing, all on one store."""
    way = "threads" if framing == "header" else "pipes"
    env = {
        "AGENT_SIDECAR_TRANSPORT": way,
        "HOME": str(folder),
        "XDG_CONFIG_HOME": str(folder),
        "XDG_DATA_HOME": str(folder),
    }
    options: dict[str, Any] = {"store": store, "framing": framing, "cwd": folder, "env": env, "greet": False}
    return lambda: start_host(args=("--on-eof", "finish"), **options)


@pytest.mark.parametrize("framing", ["ndjson", "header"])
@pytest.mark.parametrize("name", sorted(path.stem for path in TRANSCRIPTS.glob("*.jsonl")))
async def test_the_conversation_goes_as_it_is_written_and_its_sessions_replay_as_they_were(
    name: str, framing: Framing, start: Callable[[], Awaitable[FakeHost]], folder: Path
) -> None:
    path = TRANSCRIPTS / f"{name}.jsonl"
    rewriting = REWRITE and framing == "ndjson"
    player = Player(read(path), start, folder, record=rewriting)

    played = await player.play()

    if rewriting:
        write(path, played)
    assert any(line.kind == "←" for line in played)
    host = player.host
    if host is None:
        host = await start()
        await host.request("initialize")
    for info in (await host.request("listSessions", {"limit": 1000}))["sessions"]:
        session_id = info["sessionId"]
        live = [event for _, event in sorted(player.seen[session_id].items())]
        assert await replayed(host, session_id, len(live)) == live


async def replayed(host: FakeHost, session_id: str, count: int) -> list[dict[str, Any]]:
    """A session's whole replay: so many events are waited for, and what comes beyond them is returned too."""
    before = len(host.messages)

    def events() -> list[dict[str, Any]]:
        return [event for event in durable(host.messages[before:]) if event["sessionId"] == session_id]

    await host.resume_session(session_id, replayFrom={"type": "start"})
    await host.until(lambda: len(events()) >= count)
    await host.request("getState", {"sessionId": session_id})
    return events()


@pytest.mark.parametrize("framing", ["ndjson"])
@pytest.mark.parametrize("name", ["late_answer", "manage_sessions", "script"])
async def test_what_is_written_anew_is_what_was_written(
    name: str, start: Callable[[], Awaitable[FakeHost]], folder: Path
) -> None:
    lines = read(TRANSCRIPTS / f"{name}.jsonl")

    written = await Player(lines, start, folder, record=True).play()

    assert [line.text() for line in written] == [line.text() for line in lines]


HELLO = [
    Line("→", {"id": 1, "method": "initialize"}, 1),
    Line("←", {"id": 1, "result": "<any>"}, 2),
    Line("→", {"id": 2, "method": "cancelRun", "params": {"sessionId": "s"}}, 3),
]


@pytest.mark.parametrize("framing", ["ndjson"])
@pytest.mark.parametrize(
    ("rest", "complaint"),
    [
        (
            [Line("←", {"id": 2, "result": {"status": "cancelling"}}, 4)],
            "line 4: .result.status: expected 'cancelling'",
        ),
        ([Line("←", {"id": "2", "result": {"status": "notRunning"}}, 4)], "line 4: .id: expected '2', but came 2"),
        ([Line("←", {"id": 2, "result": {}}, 4)], "line 4: .result.status is not expected"),
        ([Line("eof", True, 4), Line("exit", 0, 5)], "1 messages are not expected"),
        (
            [Line("←", {"id": 2, "result": "<any>"}, 4), Line("eof", True, 5), Line("←", {"id": 3}, 6)],
            "line 6: it ended",
        ),
        ([Line("←", {"id": 2, "result": "<any>"}, 4), Line("eof", True, 5), Line("exit", 1, 6)], "ended with 0, not 1"),
    ],
)
async def test_a_player_finds_what_is_not_as_it_is_written(
    start: Callable[[], Awaitable[FakeHost]], folder: Path, rest: list[Line], complaint: str
) -> None:
    with pytest.raises(Differs) as found:
        await Player([*HELLO, *rest], start, folder).play()
    assert complaint in str(found.value)
