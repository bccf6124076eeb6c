"""The registry: which client a name gives, and which model the `default` agent gets."""

import subprocess
import sys
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from protocol.messages import text_message
from providers.api.ports import ChatRequest, ask
from sidecar.config.endpoints import BUILT_IN, EndpointConfig
from sidecar.errors import ModelAuth, ModelNotFound, ModelUnavailable
from sidecar.models import embedded_files
from sidecar.models.registry import EMBEDDED, Models
from tests.bench.fake_model import EOF, FakeModel, Raw, Reply


@pytest_asyncio.fixture
async def model() -> AsyncIterator[FakeModel]:
    async with FakeModel() as fake:
        yield fake


@pytest.fixture
def embedded(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Says whether the embedded model is installed."""
    return lambda is_there: monkeypatch.setattr(embedded_files, "is_installed", lambda: is_there)


async def test_one_name_is_one_client() -> None:
    models = Models(BUILT_IN, environ={})
    assert models.get("scripted:echo") is models.get("scripted:echo")
    assert models.get("scripted:echo").name == "scripted:echo"


async def test_a_configured_endpoint_is_reached_under_its_name(model: FakeModel) -> None:
    endpoints = BUILT_IN | {"local": EndpointConfig(base_url=model.url, context_size=99)}
    models = Models(endpoints, environ={})
    model.says("hello")
    client = models.get("local:qwen3:8b")
    assert (await ask(client, ChatRequest([text_message("user", "hi")]))).text == "hello"
    assert (model.last_request.body["model"], client.traits.context_size) == ("qwen3:8b", 99)
    await models.aclose()
    await model.quiet()


@pytest.mark.parametrize("name", ["nowhere:m", "gpt-4.1", "openai:", ""])
def test_a_name_that_means_nothing_lists_the_endpoints(name: str) -> None:
    with pytest.raises(ModelNotFound, match="embedded, openai, openai-responses, scripted"):
        Models(BUILT_IN, environ={}).get(name)


async def test_embedded_models_without_their_runtime_say_what_to_type(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sidecar.models.embedded.runtime_version", lambda: None)
    client = Models(BUILT_IN, environ={}).get(EMBEDDED)
    with pytest.raises(ModelNotFound, match="agent-sidecar setup embedded"):
        await ask(client, ChatRequest([text_message("user", "hi")]))


async def test_the_configured_default_comes_first(embedded: Any) -> None:
    embedded(True)
    environ = {"OPENAI_API_KEY": "k", "OPENAI_MODEL": "m"}
    assert await Models(BUILT_IN, default_model="a:b", environ=environ).default() == "a:b"


async def test_the_environments_model_comes_next(embedded: Any) -> None:
    embedded(True)
    assert await Models(BUILT_IN, environ={"OPENAI_API_KEY": "k", "OPENAI_MODEL": "m"}).default() == "openai:m"


async def test_a_model_name_without_an_endpoint_in_the_environment_means_nothing(embedded: Any) -> None:
    embedded(True)
    assert await Models(BUILT_IN, environ={"OPENAI_MODEL": "m"}).default() == EMBEDDED


async def test_the_only_model_of_the_environments_endpoint_is_taken_and_asked_for_once(
    model: FakeModel, embedded: Any
) -> None:
    embedded(True)
    models = Models(BUILT_IN, environ={"OPENAI_BASE_URL": model.url})
    assert [await models.default(), await models.default()] == ["openai:fake"] * 2
    assert len(model.other_requests) == 1
    assert [info.model for info in await models.infos() if info.default] == ["openai:fake"]
    await models.aclose()


async def test_several_models_are_listed_instead_of_one_chosen(model: FakeModel, embedded: Any) -> None:
    embedded(True)
    model.models = ["one", "two"]
    models = Models(BUILT_IN, environ={"OPENAI_BASE_URL": model.url})
    with pytest.raises(ModelNotFound, match="one, two"):
        await models.default()
    await models.aclose()


async def test_the_embedded_model_never_steps_in_for_an_endpoint_that_fails(embedded: Any) -> None:
    embedded(True)
    models = Models(BUILT_IN, environ={"OPENAI_BASE_URL": "http://127.0.0.1:9/v1"})
    with pytest.raises(ModelUnavailable):
        await models.default()
    await models.aclose()


@pytest.mark.parametrize("answer", ["page", "fails", "nothing", "odd"])
async def test_an_endpoint_that_lists_nothing_usable_is_unavailable(
    model: FakeModel, embedded: Any, answer: str
) -> None:
    embedded(True)
    documents = {
        "page": Reply([Raw(b"<html>"), EOF], headers={"content-type": "text/html"}),
        "fails": Reply([Raw(b"{}"), EOF], status=500),
        "nothing": Reply([Raw(b'{"data":[]}'), EOF]),
        "odd": Reply([Raw(b'{"data":7}'), EOF]),
    }
    model.lists(documents[answer])
    models = Models(BUILT_IN, environ={"OPENAI_BASE_URL": model.url})
    with pytest.raises(ModelUnavailable):
        await models.default()
    await models.aclose()


async def test_an_endpoint_that_refuses_the_key_says_so(model: FakeModel, embedded: Any) -> None:
    embedded(True)
    model.lists(Reply([Raw(b"{}"), EOF], status=401))
    models = Models(BUILT_IN, environ={"OPENAI_BASE_URL": model.url})
    with pytest.raises(ModelAuth):
        await models.default()
    await models.aclose()


async def test_openai_itself_is_not_asked_without_a_key(embedded: Any) -> None:
    embedded(False)
    models = Models(BUILT_IN, environ={"OPENAI_BASE_URL": "https://api.openai.com/v1"})
    with pytest.raises(ModelAuth, match="OPENAI_API_KEY"):
        await models.default()
    await models.aclose()


async def test_without_anything_both_ways_are_named(embedded: Any) -> None:
    embedded(False)
    with pytest.raises(ModelNotFound, match=r"(?s)sidecar\.toml.*OPENAI_BASE_URL.*setup embedded"):
        await Models(BUILT_IN, environ={}).default()


async def test_listing_asks_no_endpoint_and_keeps_names_that_do_not_work(model: FakeModel, embedded: Any) -> None:
    embedded(False)
    models = Models(BUILT_IN, default_model="scripted:echo", environ={"OPENAI_BASE_URL": model.url})
    infos = await models.infos(also=["gone:m", "openai:gpt"])
    assert [(info.model, info.endpoint, info.default) for info in infos] == [
        ("scripted:echo", "scripted", True),
        ("gone:m", "gone", None),
        ("openai:gpt", "openai", None),
    ]
    assert model.other_requests == []


def test_importing_the_registry_imports_no_client_library() -> None:
    code = (
        "import sys, sidecar.models.registry; print([m for m in ('openai', 'httpx2', 'xllamacpp') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
