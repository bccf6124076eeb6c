"""`listModels` for a host's picker: what the configuration knows, and what the endpoints list."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from sidecar.models.openai_error_bodies import MAX_ERROR_BYTES
from sidecar.models.openai_models import MAX_ID_LENGTH, MAX_LIST_BYTES
from tests.bench.fake_model import EOF, FakeModel, Raw, Reply, Stall
from tests.bench.handles import RpcError
from tests.bench.processes import gone
from tests.bench.waiting import eventually

LISTED = [
    {"id": "vllm", "max_model_len": 32768},
    {"id": "router", "context_length": 131072, "architecture": {"input_modalities": ["text", "image"]},
     "supported_parameters": ["tools", "seed"]},
    {"id": "mistral", "max_context_length": 4096, "capabilities": {"function_calling": False, "vision": False}},
    {"id": "silent"},
    {"id": "odd", "context_length": "8k", "max_model_len": True, "architecture": 7, "capabilities": {"vision": "yes"}},
    {"id": ""},
    "no object",
]  # fmt: skip


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home of the test's own, without a model of the environment's."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    (tmp_path / "config" / "agent-sidecar").mkdir(parents=True)
    return tmp_path


def configure(work: Path, text: str) -> None:
    (work / "config" / "agent-sidecar" / "sidecar.toml").write_text(text)


def listing(*rows: Any) -> Reply:
    return Reply([Raw(json.dumps({"data": list(rows)}).encode()), EOF])


async def listed(host: Any) -> dict[str, dict[str, Any]]:
    return {item["model"]: item for item in (await host.request("listModels"))["items"]}


async def test_a_picker_sees_what_each_endpoint_says_of_its_models(
    start_host: Any, model: FakeModel, work: Path
) -> None:
    model.lists(listing(*LISTED))
    configure(work, f'[endpoints.here]\nbase_url = "{model.url}"')

    models = await listed(await start_host())

    assert {name: item for name, item in models.items() if name.startswith("here:")} == {
        "here:vllm": {"model": "here:vllm", "endpoint": "here", "contextSize": 32768},
        "here:router": {
            "model": "here:router", "endpoint": "here", "contextSize": 131072, "tools": True, "images": True,
        },
        "here:mistral": {
            "model": "here:mistral", "endpoint": "here", "contextSize": 4096, "tools": False, "images": False,
        },
        "here:silent": {"model": "here:silent", "endpoint": "here"},
        "here:odd": {"model": "here:odd", "endpoint": "here"},
    }  # fmt: skip
    assert model.requests == []


async def test_the_configuration_counts_before_what_the_endpoint_says(
    start_host: Any, model: FakeModel, work: Path
) -> None:
    model.lists(listing({"id": "m", "context_length": 100}))
    configure(
        work,
        f'default_model = "here:m"\n[endpoints.here]\nbase_url = "{model.url}"\ncontext_size = 50\n'
        '[agents.a]\nmodel = "scripted:echo"',
    )

    models = await listed(await start_host())

    assert models["here:m"] == {"model": "here:m", "endpoint": "here", "contextSize": 50, "default": True}
    assert models["scripted:echo"]["tools"] is True


async def test_one_endpoint_that_fails_or_hangs_hides_no_other(start_host: Any, model: FakeModel, work: Path) -> None:
    async with FakeModel(models=["slow"]) as slow:
        slow.lists(Reply(before_head=[Stall(None)]))
        model.models = ["one", "two"]
        configure(
            work,
            f'[endpoints.slow]\nbase_url = "{slow.url}"\n[endpoints.here]\nbase_url = "{model.url}"\n'
            '[endpoints.refused]\nbase_url = "http://127.0.0.1:9/v1"\n',
        )
        host = await start_host()

        first = await listed(host)
        again = await listed(host)

        assert {"here:one", "here:two"} <= first.keys()
        assert not [name for name in first if name.startswith(("slow:", "refused:"))]
        assert again == first
        assert (len(slow.other_requests), len(model.other_requests)) == (1, 1)


def hanging_key(work: Path, url: str) -> str:
    """An endpoint whose key never comes, and that says which process its command waits for."""
    command = work / "key.sh"
    command.write_text(f"sleep 600 & echo $! > {work}/pid.new; mv {work}/pid.new {work}/pid; wait")
    return f'[endpoints.locked]\nbase_url = "{url}"\napi_key_command = ["sh", "{command}"]\n'


async def waited_for(work: Path) -> int:
    await eventually((work / "pid").exists)
    return int((work / "pid").read_text())


async def test_a_key_that_does_not_come_holds_up_no_picker_and_leaves_no_process(
    start_host: Any, model: FakeModel, work: Path
) -> None:
    configure(work, hanging_key(work, model.url) + f'[endpoints.here]\nbase_url = "{model.url}"')
    host = await start_host()

    async with asyncio.timeout(20):
        first, second = host.ask("listModels"), host.ask("listModels")
        child = await waited_for(work)
        for answer in (await first.result(), await second.result(), await host.request("listModels")):
            names = [item["model"] for item in answer["items"]]
            assert ("here:fake" in names, any(name.startswith("locked:") for name in names)) == (True, False)
        await host.request("shutdown")
        host.notify("exit")
        await gone(child)


async def test_a_run_that_is_cancelled_leaves_nothing_of_its_key_command(
    start_host: Any, model: FakeModel, work: Path
) -> None:
    configure(work, hanging_key(work, model.url))
    host = await start_host()
    session = await host.create_session(model="locked:fake")
    run = session.start("hello", runId="r")
    child = await waited_for(work)

    await host.request("cancelRun", {"sessionId": session.id, "runId": "r"})

    assert (await run.result())["status"] == "cancelled"
    async with asyncio.timeout(10):
        await gone(child)


def padded(size: int) -> Reply:
    body = b'{"data": [{"id": "only"}]}'
    return Reply([Raw(body), Raw(b" " * (size - len(body))), EOF])


async def test_a_list_that_is_too_long_is_not_read(start_host: Any, model: FakeModel, work: Path) -> None:
    async with FakeModel() as longest:
        model.lists(padded(MAX_LIST_BYTES + 1))
        longest.lists(padded(MAX_LIST_BYTES))
        configure(work, f'[endpoints.over]\nbase_url = "{model.url}"\n[endpoints.just]\nbase_url = "{longest.url}"')
        host = await start_host(args=("--log-level", "info"))

        names = await listed(host)

        assert ("just:only" in names, "over:only" in names) == (True, False)
        assert f"over {MAX_LIST_BYTES} bytes" in host.stderr.decode()
        assert await default_of(start_host, longest) == "openai:only"
        refused = await default_of(start_host, model)
        assert refused.kind == "modelUnavailable"
        assert f"over {MAX_LIST_BYTES} bytes" in refused.message


async def default_of(start_host: Any, endpoint: FakeModel) -> Any:
    """The model of a run at this endpoint, or why there is none."""
    endpoint.otherwise(lambda request: ["hello"])
    session = await (await start_host(env={"OPENAI_BASE_URL": endpoint.url})).create_session()
    try:
        await session.run("hi")
    except RpcError as error:
        return error
    return f"openai:{endpoint.last_request.body['model']}"


async def test_an_error_whose_body_does_not_end_is_told_at_once(start_host: Any, model: FakeModel, work: Path) -> None:
    model.lists(Reply([Raw(b"x" * MAX_ERROR_BYTES), Stall(None)], status=500))

    async with asyncio.timeout(10):
        refused = await default_of(start_host, model)

    assert (refused.kind, refused.data["httpStatus"]) == ("modelUnavailable", 500)


async def test_an_id_that_a_person_cannot_read_is_left_out(start_host: Any, model: FakeModel, work: Path) -> None:
    longest = "m" * MAX_ID_LENGTH
    ids = [longest, longest + "m", "a\x1b[31mred", "a\nb", "a\u202eb", "a\u200bb", "\ud800", "modèle:8b/q4", "モデル 1"]
    model.lists(listing(*({"id": each} for each in ids)))
    configure(work, f'[endpoints.here]\nbase_url = "{model.url}"')

    names = [name for name in await listed(await start_host()) if name.startswith("here:")]

    assert names == [f"here:{longest}", "here:modèle:8b/q4", "here:モデル 1"]


async def test_a_key_that_is_refused_is_asked_for_again(start_host: Any, model: FakeModel, work: Path) -> None:
    model.lists(Reply([Raw(b"{}"), EOF], status=401))
    model.says("hello")
    command = work / "key.sh"
    command.write_text(f"echo x >> {work}/asked; echo key$(wc -l < {work}/asked | tr -d ' ')")
    configure(work, f'[endpoints.here]\nbase_url = "{model.url}"\napi_key_command = ["sh", "{command}"]')
    host = await start_host()

    await listed(host)
    await (await host.create_session(model="here:fake")).run("hi")

    assert model.other_requests[0].headers["authorization"] == "Bearer key1"
    assert model.last_request.headers["authorization"] == "Bearer key2"


async def test_without_an_endpoint_of_its_own_nothing_is_asked(start_host: Any, model: FakeModel, work: Path) -> None:
    assert not [name for name in await listed(await start_host()) if name.startswith("openai")]
    there = await listed(await start_host(env={"OPENAI_BASE_URL": model.url}))
    assert [name for name in there if name.startswith("openai")] == ["openai:fake"]


async def test_a_run_tells_how_full_the_models_context_is(start_host: Any, work: Path) -> None:
    configure(work, '[endpoints.small]\ntype = "scripted"\ncontext_size = 900')
    host = await start_host()
    session = await host.create_session(model="small:echo")
    unknown = await host.create_session(model="scripted:echo")

    await session.run("12345678")
    await session.run("12345678")
    await unknown.run("12345678")

    told = [(event["data"].get("contextUsed"), event["data"].get("contextSize")) for event in
            session.events("usage.updated")]  # fmt: skip
    assert told == [(4, 900), (8, 900)]
    (event,) = unknown.events("usage.updated")
    assert (event["data"]["contextUsed"], "contextSize" in event["data"]) == (4, False)


async def test_the_host_is_told_when_other_models_are_configured(start_host: Any, work: Path) -> None:
    configure(work, '[agents.a]\nmodel = "scripted:echo"')
    host = await start_host()
    before = set(await listed(host))
    configure(work, '[agents.a]\nmodel = "scripted:other.toml"')

    await host.request("reloadConfig")

    (updated,) = [message["params"] for message in host.messages if message.get("method") == "config/updated"]
    assert ("scripted:echo" in before, "scripted:echo" in updated["models"]) == (True, False)
    assert "scripted:other.toml" in updated["models"]
