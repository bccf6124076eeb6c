"""A session with host providers, and what its host was asked of them: for tests of those."""

from typing import Any, Final

from tests.bench.fake_model import FakeModel
from tests.bench.host import FakeHost, HostSession
from tests.bench.wire import Json

BEFORE: Final = "host/beforeRun"
AFTER: Final = "host/afterRun"
NOTES: Final = {"type": "host", "sourceId": "notes"}
"""The provider, unless a test has others."""
BY_NOTES: Final = {"type": "provider", "sourceId": "notes", "sourceType": "HostProvider"}
"""The source of what it adds."""
TIDE: Final = {"name": "tide", "description": "Tell the tide.", "inputSchema": {"type": "object", "properties": {}}}
"""A tool that it may offer."""


def user(text: str, **fields: Any) -> Json:
    """A message that it may add."""
    return {"role": "user", "content": text, **fields}


def params_of(host: FakeHost, method: str) -> list[Json]:
    """What the host was asked."""
    return [request["params"] for request in host.asked(method)]


async def explained(session: HostSession, run_id: str) -> Json:
    """The first model call of a run."""
    return (await session.host.request("explainRun", {"sessionId": session.id, "runId": run_id}))["calls"][0]


class Opener:
    """Opens a session with one host provider, and says what the host answers by phase: a result, or what makes it."""

    def __init__(self, start_host: Any, model: FakeModel) -> None:
        self._start = start_host
        self._model = model

    async def __call__(
        self, before: Any = None, after: Any = None, *, entry: Json | None = None, store: str = "memory", **params: Any
    ) -> HostSession:
        """Open it, in a sidecar of its own.

        Args:
            before: For `host/beforeRun`.
            after: For `host/afterRun`.
            entry: More of the provider's entry.
            store: Where the sidecar keeps it.
            params: Of `createSession`.
        """
        host: FakeHost = await self._start(env=self._model.environment, store=store)
        for method, answer in ((BEFORE, before), (AFTER, after)):
            host.serves[method] = answer if callable(answer) else lambda params, answer=answer: answer
        return await host.create_session(**({"sessionId": "s", "contextProviders": [NOTES | (entry or {})]} | params))
