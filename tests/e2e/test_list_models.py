"""`listModels` for a host's picker: what the configuration knows, and what the endpoints list."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.bench.fake_model import EOF, FakeModel, Raw, Reply, Stall

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
