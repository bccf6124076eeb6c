"""`mem0` over the wire: whose memory it is comes from the session, and its process dies with the sidecar."""

import json
import os
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from tests.bench.fake_embeddings import FakeEmbeddings
from tests.bench.fake_model import FakeModel, Reply
from tests.bench.host import FakeHost
from tests.bench.model_script import EOF, Raw
from tests.bench.processes import descendants, gone
from tests.bench.recorded import Recorded

pytestmark = [
    pytest.mark.skipif(os.name == "nt", reason="POSIX files"),
    pytest.mark.skipif(find_spec("mem0") is None, reason="no mem0 here; .ci/run installs it"),
]

SCOPE = {"userId": {"fromState": "user"}}


def replies(request: Recorded) -> Reply | list[str]:
    """A memory for those who ask for JSON at once; to a run what it was shown."""
    if request.body.get("stream"):
        return [request.text]
    content = json.dumps({"memory": [{"id": "0", "text": "The user likes sushi"}]})
    choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": content}}
    body = {"id": "1", "object": "chat.completion", "created": 1, "model": "fake", "choices": [choice]}
    return Reply([Raw(json.dumps(body).encode()), EOF], 200, {"content-type": "application/json"})


async def test_memories_are_the_user_s_and_a_sidecar_that_is_killed_leaves_no_process(
    start_host: Any, model: FakeModel, tmp_path: Path
) -> None:
    """Case 49."""
    model.otherwise(replies)
    async with FakeEmbeddings() as embeddings:
        config = {
            "path": str(tmp_path / "memories"),
            "llm": {"model": "fake", "baseUrl": model.url, "apiKeyEnv": "OPENAI_API_KEY"},
            "embedder": {"model": "fake", "baseUrl": embeddings.url, "dimensions": 64},
            "storageScope": SCOPE,
            "searchScope": SCOPE,
        }
        agent = {"contextProviders": [{"type": "mem0", "config": config}]}
        host: FakeHost = await start_host(env=model.environment)
        answers: dict[str, str] = {}
        for user in ("ann", "ann", "bob"):
            session = await host.create_session(agent=agent, state={"user": user})
            result = await session.run("Which sushi do I like?")
            assert (result["status"], result.get("warnings", [])) == ("completed", [])
            answers[user] = result["text"]
        (child,) = descendants(host.process.pid)
        host.kill()
        await host.wait()
        await gone(child)

    assert "The user likes sushi" in answers["ann"]
    assert "likes sushi" not in answers["bob"]
