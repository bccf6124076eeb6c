"""`redis_history` over the wire: it outlives the sidecar; a server that is down costs no reply and tells no secret."""

from pathlib import Path
from typing import Any

import pytest

from tests.bench.fake_model import FakeModel
from tests.bench.host import FakeHost, RpcError
from tests.bench.redis_server import PROGRAMS, RedisServer, program

pytest.importorskip("redis", reason="no redis here: pip install 'agent-sidecar[redis]'")

SECRET = "hunter2-of-the-server"
AGENT = {"contextProviders": [{"type": "redis_history", "config": {"urlEnv": "HISTORY_URL"}}]}


@pytest.fixture
def server_program() -> str:
    found = next((path for name in PROGRAMS if (path := program(name))), None)
    if found is None:
        pytest.skip("no Redis or Valkey server here; .ci/run installs them")
    return found


async def test_a_history_outlives_the_sidecar_and_its_store(
    start_host: Any, model: FakeModel, server_program: str, tmp_path: Path
) -> None:
    async with RedisServer(server_program, tmp_path, password=SECRET) as server:
        for text in ("one", "two"):
            model.says("ok")
            host: FakeHost = await start_host(env={**model.environment, "HISTORY_URL": server.whole_url})
            session = await host.create_session(sessionId="ann", agent=AGENT)
            assert (await session.run(text))["status"] == "completed"

    assert model.last_request.roles == ["user", "assistant", "user"]


async def test_a_server_that_is_down_is_told_without_its_password(
    start_host: Any, model: FakeModel, server_program: str, tmp_path: Path
) -> None:
    async with RedisServer(server_program, tmp_path, password=SECRET) as server:
        host: FakeHost = await start_host(env={**model.environment, "HISTORY_URL": server.whole_url})
        session = await host.create_session(agent=AGENT)
        model.otherwise(lambda _: ["the answer"] if server.kill() else [])
        result = await session.run("one")
        await server.stop()
        with pytest.raises(RpcError) as failed:
            await session.run("two")

    assert (result["status"], result["text"]) == ("completed", "the answer")
    assert [warning["kind"] for warning in result["warnings"]] == ["providerFailed"]
    assert "the Redis server in HISTORY_URL cannot be reached" in str(failed.value)
    assert len(model.requests) == 1
    assert SECRET not in f"{host.messages} {host.stderr!r}"
