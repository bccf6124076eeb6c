"""The history in Redis around runs, against real servers: what is kept, what comes back, and what goes wrong."""

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from protocol.messages import FunctionCallBlock, FunctionResultBlock, Message, TextBlock, text_message
from providers import redis_history_list
from providers.api.history import HistoryError
from sidecar.errors import ProviderFailed
from tests.bench.agent_run import AgentRun
from tests.bench.fake_client import FakeClient, says
from tests.bench.redis_server import PROGRAMS, RedisServer, program

pytest.importorskip("redis", reason="no redis here: pip install 'agent-sidecar[redis]'")

from providers.redis_history import RedisHistoryConfig, RedisHistoryProvider

LIST = "agent_sidecar:history:s"
IDS = "agent_sidecar:history.ids:s"
SECRET = "hunter2-of-the-server"


@pytest.fixture(params=PROGRAMS)
def server_program(request: pytest.FixtureRequest) -> str:
    found = program(request.param)
    if found is None:
        pytest.skip(f"no {request.param} here; .ci/run installs it")
    return found


@pytest.fixture
async def server(server_program: str, tmp_path: Path) -> AsyncIterator[RedisServer]:
    async with RedisServer(server_program, tmp_path) as running:
        yield running


@pytest.fixture
async def locked(server_program: str, tmp_path: Path) -> AsyncIterator[RedisServer]:
    """A server that asks for a password."""
    async with RedisServer(server_program, tmp_path, password=SECRET) as running:
        yield running


def kept_at(server: RedisServer, **config: Any) -> RedisHistoryProvider:
    whole = {"url": server.url, **config}
    return RedisHistoryProvider("redis_history", RedisHistoryConfig.model_validate(whole))


def texts(messages: Sequence[Message]) -> list[str]:
    return [message.text for message in messages]


def said(text: str, message_id: str | None = None) -> Message:
    return text_message("user", text, message_id=message_id)


async def test_it_feeds_the_next_run_and_the_next_process(server: RedisServer) -> None:
    """Cases 12 and 19."""
    client = FakeClient(*[says("ok")] * 3)
    async with kept_at(server) as history:
        await AgentRun(client, [history]).say("yes")
    async with kept_at(server) as history:
        run = AgentRun(client, [history])
        await run.say("yes")
        await run.say("yes")

    assert texts(client.requests[2].messages) == ["yes", "ok", "yes", "ok", "yes"]
    assert run.session.state == {"redis_history": {"length": 6}}
    assert run.sink.warnings == []


async def test_other_programs_read_and_write_the_list(server: RedisServer) -> None:
    async with kept_at(server) as history:
        await history.save_messages("s", [said("one", "m1")], state={})
        (row,) = await server.command("LRANGE", LIST, 0, -1)
        assert json.loads(row)["messageId"] == "m1"
        await server.command("RPUSH", LIST, '{"role": "assistant", "content": "two"}')

        assert texts(await history.get_messages("s", state={})) == ["one", "two"]


async def test_messages_with_ids_are_kept_once_and_equal_words_as_often_as_they_are_said(server: RedisServer) -> None:
    """Cases 19 and 20."""
    async with kept_at(server) as history:
        await history.save_messages("s", [said("yes", "m1"), said("no", "m2"), said("yes", "m1")], state={})
        await history.save_messages("s", [said("yes", "m1"), said("no", "m2"), said("yes", "m3")], state={})
        await history.save_messages("s", [said("yes"), said("yes")], state={})
        await history.save_messages("s", [said("yes"), said("yes")], state={})

        assert texts(await history.get_messages("s", state={})) == ["yes", "no", *["yes"] * 5]


async def test_sessions_have_a_list_each_and_what_is_damaged_harms_no_other(server: RedisServer) -> None:
    """Case 24."""
    ids = ["s", "../s", "s:s", "É\n", "x" * 256]
    async with kept_at(server) as history:
        for session_id in ids:
            await history.save_messages(session_id, [said(session_id)], state={})
        await server.command("RPUSH", LIST, "{hunter2")

        for session_id in ids[1:]:
            assert texts(await history.get_messages(session_id, state={})) == [session_id]
        with pytest.raises(HistoryError, match=f"element 2 of the list '{LIST}' is no message") as damaged:
            await history.get_messages("s", state={})
    assert "hunter2" not in str(damaged.value)


async def test_what_is_no_list_is_refused_and_left_alone(server: RedisServer) -> None:
    await server.command("SET", LIST, "mine")
    async with kept_at(server) as history:
        with pytest.raises(HistoryError, match="WRONGTYPE"):
            await history.get_messages("s", state={})
        with pytest.raises(HistoryError, match="WRONGTYPE"):
            await history.save_messages("s", [said("one", "m1")], state={})

    assert await server.command("KEYS", "*") == [LIST.encode()]
    assert await server.command("GET", LIST) == b"mine"


async def test_the_oldest_go_where_there_is_a_limit(server: RedisServer) -> None:
    state: dict[str, Any] = {}
    async with kept_at(server, maxMessages=3) as history:
        await history.save_messages("s", [said(f"{n}", f"m{n}") for n in range(5)], state=state)
        assert texts(await history.get_messages("s", state=state)) == ["2", "3", "4"]
        await history.save_messages("s", [said("2", "m2"), said("5", "m5")], state=state)
        assert texts(await history.get_messages("s", state=state)) == ["3", "4", "5"]

    assert state == {"length": 3}
    assert await server.command("ZRANGE", IDS, 0, -1) == [b"m3", b"m4", b"m5"]


async def test_a_result_whose_call_went_is_not_sent_to_the_model(server: RedisServer) -> None:
    call = Message(role="assistant", content=(FunctionCallBlock(call_id="c1", name="look", arguments={}),))
    result = Message(role="tool", content=(FunctionResultBlock(call_id="c1", content=(TextBlock(text="found"),)),))
    client = FakeClient(says("ok"))
    async with kept_at(server, maxMessages=2) as history:
        await history.save_messages("s", [call, result, said("thanks")], state={})
        await AgentRun(client, [history]).say("more")

    assert [message.role for message in client.requests[0].messages] == ["user", "user"]


async def test_what_the_server_has_lost_is_told(server: RedisServer) -> None:
    async with kept_at(server) as history:
        run = AgentRun(FakeClient(*[says("ok")] * 3), [history])
        await run.say("one")
        await server.command("FLUSHALL")
        await run.say("two")
        ((kind, message, source),) = run.sink.warnings
        await run.say("three")

    assert (kind, source) == ("providerWarning", "redis_history")
    assert "2 were kept, 0 are there" in message
    assert run.sink.warnings == []
    assert texts(run.client.requests[2].messages) == ["two", "ok", "three"]


async def test_a_list_that_was_deleted_begins_anew_with_the_same_ids(server: RedisServer) -> None:
    async with kept_at(server) as history:
        await history.save_messages("s", [said("one", "m1")], state={})
        await server.command("DEL", LIST)
        await history.save_messages("s", [said("one", "m1")], state={})

        assert texts(await history.get_messages("s", state={})) == ["one"]


async def test_a_server_that_is_down_fails_the_run_before_the_model_and_is_used_when_it_is_back(
    server: RedisServer,
) -> None:
    async with kept_at(server) as history:
        run = AgentRun(FakeClient(says("ok")), [history])
        await server.stop()
        with pytest.raises(ProviderFailed, match=f"the Redis server {server.url} cannot be reached"):
            await run.say("one")
        assert run.client.requests == []

        await server.start()
        await run.say("two")
        assert texts(await history.get_messages("s", state={})) == ["two", "ok"]


async def test_a_server_that_goes_down_during_a_run_costs_no_reply(server: RedisServer) -> None:
    async with kept_at(server) as history:
        run = AgentRun(FakeClient(lambda _: [*says("the answer")] if server.kill() else []), [history])
        await run.say("one")

    assert run.sink.streamed == "the answer"
    assert [(kind, source) for kind, _, source in run.sink.warnings] == [("providerFailed", "redis_history")]


async def test_a_connection_that_the_server_has_closed_is_made_anew(server: RedisServer) -> None:
    async with kept_at(server) as history:
        await history.save_messages("s", [said("one")], state={})
        await server.command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")

        assert texts(await history.get_messages("s", state={})) == ["one"]


async def test_a_server_that_hangs_is_given_up_and_what_it_took_is_not_doubled(
    server: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(redis_history_list, "ANSWER_S", 0.5)
    async with kept_at(server) as hasty:
        await hasty.get_messages("s", state={})
        with server.frozen():
            for _ in range(2):
                with pytest.raises(HistoryError, match="gave no answer within"):
                    await hasty.save_messages("s", [said("one", "m1")], state={})
    monkeypatch.undo()
    async with kept_at(server) as patient:
        await patient.save_messages("s", [said("one", "m1")], state={})

        assert texts(await patient.get_messages("s", state={})) == ["one"]


async def test_an_answer_that_was_lost_doubles_nothing(server: RedisServer) -> None:
    """The messages have no ids: only the call itself tells that they are the same."""
    async with cut_once(server, after=b"EVAL") as port, kept_at(server, url=f"redis://127.0.0.1:{port}") as history:
        await history.save_messages("s", [said("one"), said("one")], state={})

        assert texts(await history.get_messages("s", state={})) == ["one", "one"]


@pytest.mark.parametrize("how", ["passwordEnv", "urlEnv"])
async def test_a_password_comes_from_the_environment(
    locked: RedisServer, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    monkeypatch.setenv("HISTORY_SECRET", SECRET if how == "passwordEnv" else locked.whole_url)
    config = {how: "HISTORY_SECRET", "url": locked.url if how == "passwordEnv" else None}
    async with kept_at(locked, **config) as history:
        await history.save_messages("s", [said("one")], state={})

        assert texts(await history.get_messages("s", state={})) == ["one"]


@pytest.mark.parametrize("how", ["passwordEnv", "urlEnv", "none"])
async def test_a_wrong_password_is_told_and_not_repeated(
    locked: RedisServer, monkeypatch: pytest.MonkeyPatch, how: str, caplog: pytest.LogCaptureFixture
) -> None:
    wrong = "hunter3"
    monkeypatch.setenv("HISTORY_SECRET", wrong if how == "passwordEnv" else locked.whole_url.replace(SECRET, wrong))
    config = {how: "HISTORY_SECRET"} if how != "none" else {}
    config["url"] = locked.url if how != "urlEnv" else None
    async with kept_at(locked, **config) as history:
        run = AgentRun(FakeClient(), [history])
        with pytest.raises(ProviderFailed, match="refuses the user or password, or asks for one") as refused:
            await run.say("one")

    told = f"{refused.value.message} {vars(refused.value)} {run.sink.events} {run.sink.staged} {caplog.text}"
    assert wrong not in told
    assert SECRET not in told


async def test_no_connection_is_left_open(server: RedisServer) -> None:
    async with kept_at(server) as history:
        await history.get_messages("s", state={})
        assert await clients(server) == 2
    async with asyncio.timeout(5):
        while await clients(server) > 1:  # it sees the end of a connection a moment later
            pass


async def test_a_run_without_a_session_needs_no_server() -> None:
    history = RedisHistoryProvider("redis_history", RedisHistoryConfig(url="redis://127.0.0.1:1"))

    await history.save_messages(None, [said("one")], state={})
    assert await history.get_messages(None, state={}) == ()


async def clients(server: RedisServer) -> int:
    """How many there are, the one that asks included."""
    return len((await server.command("CLIENT", "LIST")).splitlines())


def cut_once(server: RedisServer, *, after: bytes) -> Any:
    """A way to the server that loses the first answer to a command, and the connection with it."""
    from contextlib import asynccontextmanager

    cut: list[bytes] = []

    async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, seen: list[bytes] | None) -> None:
        while data := await reader.read(1 << 16):
            if seen is not None:
                seen.append(data)
            writer.write(data)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, back = await asyncio.open_connection("127.0.0.1", server.port)
        sent: list[bytes] = []
        up = asyncio.ensure_future(pump(reader, back, sent))
        try:
            while data := await there.read(1 << 16):
                if not cut and after in b"".join(sent):
                    cut.append(data)
                    break
                writer.write(data)
        finally:
            up.cancel()
            back.close()
            writer.close()

    @asynccontextmanager
    async def way() -> AsyncIterator[int]:
        async with await asyncio.start_server(serve, "127.0.0.1", 0) as listening:
            yield listening.sockets[0].getsockname()[1]
        assert cut

    return way()
