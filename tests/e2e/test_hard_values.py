"""Values that models, tools and providers should not make, but do: none costs a run its end, or a session its use."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.bench.fake_model import TC, F, FakeModel
from tests.bench.handles import HostSession
from tests.bench.host import FakeHost, RpcError
from tests.bench.tool_plugins import tool_plugins
from tests.bench.waiting import eventually

MODULE = """
from protocol.messages import text_message
from providers.api.errors import ProviderError
from providers.api.middleware import agent_middleware
from providers.api.provider import ContextProvider, ProviderConfig


def nested(levels):
    value = []
    for _ in range(levels):
        value = [value]
    return value


WRITTEN = {"deep": nested(200), "endless": nested(5000), "key": 1, "half": 1, "nul": ["a\\0b"], "large": {"n": 1 << 63}}
KEYS = {"key": 7, "half": "\\ud83d"}


@tool
def write(what: str, ctx: FunctionInvocationContext) -> str:
    \"\"\"Leave something in the session's state.\"\"\"
    ctx.session.state["fine"] = what
    ctx.session.state[KEYS.get(what, "odd")] = WRITTEN[what]
    return "written"


@tool
async def stray() -> str:
    \"\"\"Leave a task behind, which fails.\"\"\"

    async def fails():
        raise RuntimeError("password=hunter2")

    asyncio.create_task(fails())
    await asyncio.sleep(0.01)
    return "left"


class OddConfig(ProviderConfig):
    what: str


class Odd(ContextProvider):
    config_type = OddConfig

    async def before_run(self, *, agent, session, context, state):
        match self.config.what:
            case "instruction":
                context.extend_instructions(self, "cut \\ud83d")
            case "message":
                context.extend_messages(self, [text_message("user", "cut \\ud83d")])
            case "error":
                raise ProviderError("cut \\ud83d")
            case "function":
                context.extend_tools(self, lambda: "no tool")
            case "garbage":
                context.context_messages["nobody"] = ["no message"]


@agent_middleware
async def hasty(context, call_next):
    asyncio.create_task(call_next())
    await asyncio.sleep(0.05)
"""


async def start(start_host: Any, model: FakeModel, folder: Path, **options: Any) -> FakeHost:
    """A sidecar with these tools, a provider for each kind of oddity, and an agent in a hurry."""
    agents = "".join(
        f'[agents.{what}]\n[[agents.{what}.context_providers]]\ntype = "bench_tools:Odd"\n'
        f'source_id = "odd"\nconfig = {{ what = "{what}" }}\n'
        for what in ("instruction", "message", "error", "function", "garbage")
    )
    plugins = tool_plugins(
        folder,
        module=MODULE,
        tools=("write", "stray"),
        config='middleware = ["bench_tools:hasty"]',
        agent=f'{agents}[agents.hasty]\nmiddleware = [{{ name = "hasty" }}]\n'
        'tools = [{ type = "registered", name = "place_order" }]',
    )
    return await start_host(args=plugins.args, env=model.environment, **options)


async def readable(host: FakeHost, session: HostSession) -> None:
    """Every view of the session can be had, its document can be imported, and its last run has ended."""
    await host.request("getHistory", {"sessionId": session.id})
    events = (await host.request("getEvents", {"sessionId": session.id, "afterSeq": 0}))["events"]
    assert events[-1]["type"] == "run.completed"
    await session.state()
    document = (await host.request("exportSession", {"sessionId": session.id}))["document"]
    await host.request("importSession", {"document": document, "newSessionId": f"{session.id}-again"})


@pytest.mark.parametrize("levels", [179, 180, 190, 199, 300])
async def test_arguments_are_taken_only_as_deep_as_they_can_be_read_again(
    start_host: Any, model: FakeModel, store: str, tmp_path: Path, levels: int
) -> None:
    host = await start(start_host, model, tmp_path, store=store)
    session = await host.create_session()
    model.says(TC(0, "c1", "unheard_of", '{"x":' + "[" * levels + "]" * levels + "}"), F("tool_calls"))
    model.says("done")

    result = await session.run("go")

    (call,) = result["messages"][0]["content"]
    assert ("rawArguments" in call) == (levels > 179)
    await readable(host, session)


@pytest.mark.parametrize("what", ["deep", "endless", "key", "half", "nul", "large"])
async def test_state_that_cannot_be_stored_is_dropped_with_a_warning(
    start_host: Any, model: FakeModel, store: str, tmp_path: Path, what: str
) -> None:
    host = await start(start_host, model, tmp_path, store=store)
    session = await host.create_session()
    model.says(TC(0, "c1", "write", json.dumps({"what": what})), F("tool_calls"))
    model.says("done")

    result = await session.run("go")

    assert result["text"] == "done"
    assert [warning["kind"] for warning in result["warnings"]] == ["stateDropped"]
    assert (await session.state())["state"] == {"fine": what}
    await readable(host, session)
    model.says("again")
    assert (await session.run("more"))["text"] == "again"


@pytest.mark.parametrize("agent", ["instruction", "message"])
async def test_half_a_character_of_a_provider_reaches_the_model_as_a_replacement(
    start_host: Any, model: FakeModel, store: str, tmp_path: Path, agent: str
) -> None:
    host = await start(start_host, model, tmp_path, store=store)
    session = await host.create_session(agent=agent)
    model.says("done")

    await session.run("go")

    assert "cut \ufffd" in model.last_request.text
    await readable(host, session)


@pytest.mark.parametrize(
    ("agent", "kind", "text"),
    [
        ("error", "providerFailed", "cut \ufffd"),
        ("function", "providerFailed", "@tool"),
        ("garbage", "internalError", "internal error"),
    ],
)
async def test_a_run_that_a_provider_spoils_ends_and_leaves_nothing(
    start_host: Any, model: FakeModel, store: str, tmp_path: Path, agent: str, kind: str, text: str
) -> None:
    host = await start(start_host, model, tmp_path, store=store)
    session = await host.create_session(agent=agent)

    with pytest.raises(RpcError) as failure:
        await session.run("go")

    assert failure.value.kind == kind
    assert text in failure.value.message
    assert await session.history() == []
    await readable(host, session)


async def test_work_that_run_middleware_leaves_behind_is_stopped_with_it(
    start_host: Any, model: FakeModel, store: str, tmp_path: Path
) -> None:
    host = await start(start_host, model, tmp_path, store=store)
    session = await host.create_session(agent="hasty")
    model.hangs()

    result = await session.run("go")

    assert [warning["message"] for warning in result["warnings"]] == ["middleware left the run out, and gave no answer"]
    await model.quiet()
    await readable(host, session)


async def test_what_fails_in_a_task_that_a_tool_left_behind_is_named_without_its_text(
    start_host: Any, model: FakeModel, tmp_path: Path
) -> None:
    host = await start(start_host, model, tmp_path)
    session = await host.create_session()
    model.says(TC(0, "c1", "stray", "{}"), F("tool_calls"))
    model.says("done")

    await session.run("go")

    await eventually(lambda: b"a task that nobody waits for: RuntimeError" in host.stderr)
    assert b"hunter2" not in host.stderr
