"""`text_search` over the wire: a folder of documents, before runs and on demand; what fails costs no run."""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from tests.bench.fake_model import FakeModel
from tests.bench.host import FakeHost
from tests.bench.pdf_file import pdf
from tests.bench.plugin_files import write_plugin
from tests.bench.recorded import Recorded

StartHost = Callable[..., Awaitable[FakeHost]]


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    folder = tmp_path / "work/docs"
    folder.mkdir(parents=True)
    texts = {
        "returns.md": "# Returns\n\n## Refunds\n\nMoney comes back within 30 days.\n",
        "shipping.html": "<title>Shipping</title><p>Parcels are free above 50 euros.",
        "chinese.txt": "营业时间是上午九点到下午五点。",
    }
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")
    (folder / "warranty.pdf").write_bytes(pdf("Nothing here", "Two years of warranty"))
    return folder


@pytest.fixture
def environment(model: FakeModel, tmp_path: Path) -> dict[str, str]:
    return {**model.environment, "XDG_CACHE_HOME": str(tmp_path / "cache")}


def search(**config: Any) -> dict[str, Any]:
    return {"type": "text_search", "sourceId": "docs", "config": {"folder": "docs", **config}}


def shown(request: Recorded) -> list[str]:
    """The user messages after the input."""
    return [message["content"] for message in request.messages if message["role"] == "user"][1:]


async def test_what_a_folder_says_reaches_the_model_with_its_sources_and_can_be_explained(
    start_host: StartHost, environment: dict[str, str], model: FakeModel, docs: Path
) -> None:
    host = await start_host(env=environment)
    session = await host.create_session(
        sessionId="s", cwd=str(docs.parent), contextProviders=[search(linkBase="https://docs.example/", maxResults=1)]
    )
    model.says("Within 30 days.")

    await session.run("When do I get my refund?", runId="r1")

    [text] = shown(model.last_request)
    assert (
        "SourceDocName: Returns \u203a Refunds\n"
        "SourceDocLink: https://docs.example/returns.md#L1\n"
        "Contents:\n# Returns\n\n## Refunds\n\nMoney comes back within 30 days.\n----\n"
    ) in text
    explained = await host.request("explainRun", {"sessionId": "s", "runId": "r1"})
    [recalled] = [one for one in explained["calls"][0]["messages"] if one["source"]["type"] == "provider"]
    assert (recalled["source"]["sourceId"], len(recalled["memoryIds"])) == ("docs", 1)
    told = [event["data"] for event in session.events("provider.progress")]
    assert told[0]["data"] == {"done": 0, "total": 4}
    assert told[-1]["message"] == "4 documents are indexed"
    assert {one["sourceId"] for one in told} == {"docs"}
    assert await session.history() == [("user", "When do I get my refund?"), ("assistant", "Within 30 days.")]


@pytest.mark.parametrize(
    ("question", "link"),
    [
        ("Are parcels free?", "shipping.html"),
        ("How long is the warranty?", "warranty.pdf#page=2"),
        ("你们的营业时间?", "chinese.txt#L1"),
    ],
)
async def test_every_sort_of_document_is_found(
    start_host: StartHost, environment: dict[str, str], model: FakeModel, docs: Path, question: str, link: str
) -> None:
    host = await start_host(env=environment)
    session = await host.create_session(cwd=str(docs.parent), contextProviders=[search(index="memory")])
    model.says("ok")

    await session.run(question)

    [text] = shown(model.last_request)
    assert f"SourceDocLink: {link}\n" in text


async def test_on_demand_the_model_searches_by_itself(
    start_host: StartHost, environment: dict[str, str], model: FakeModel, docs: Path
) -> None:
    host = await start_host(env=environment)
    session = await host.create_session(cwd=str(docs.parent), contextProviders=[search(searchTime="onDemand")])
    model.calls("Search", {"userQuestion": "refund"})
    model.says("Within 30 days.")

    result = await session.run("When do I get my money?")

    assert model.requests[0].tool_names == ["Search"]
    assert shown(model.requests[0]) == []
    [text] = model.last_request.tool_results.values()
    assert "SourceDocLink: returns.md#L1\nContents:\n" in text
    assert result["text"] == "Within 30 days."


async def test_documents_that_change_between_runs_and_processes_are_searched_as_they_are(
    start_host: StartHost, environment: dict[str, str], model: FakeModel, docs: Path, store: str
) -> None:
    host = await start_host(env=environment, store=store)
    session = await host.create_session(sessionId="s", cwd=str(docs.parent), contextProviders=[search()])
    model.otherwise(lambda request: ["ok"])
    await session.run("refund?")
    host.kill()
    await host.wait()
    (docs / "returns.md").write_text("Refunds take 14 days.", encoding="utf-8")
    (docs / "shipping.html").unlink()

    session = await (await start_host(env=environment, store=store)).resume_session("s")
    await session.run("refund?")
    assert "Refunds take 14 days." in model.last_request.text
    assert "within 30 days" not in model.last_request.messages[-1]["content"]

    await session.run("free parcels?")
    assert "euros" not in model.last_request.text
    assert (
        session.events("provider.progress")[-1]["data"]["data"]["read"] < 4
    )  # of four; one that is very young is read again


async def test_recent_messages_of_runs_that_succeeded_are_searched_with(
    start_host: StartHost, environment: dict[str, str], model: FakeModel, docs: Path
) -> None:
    """Case 54: over the wire; the failed run's text is in no later query."""
    host = await start_host(env=environment)
    provider = search(recentMessageMemoryLimit=1, maxResults=1)
    session = await host.create_session(cwd=str(docs.parent), contextProviders=[provider])
    model.says("ok")
    await session.run("refund")
    model.fails(400)
    with pytest.raises(Exception, match="model"):
        await session.run("warranty")
    model.says("ok")

    await session.run("and how long?")

    assert "30 days" in shown(model.last_request)[-1]
    assert (await session.state())["state"]["docs"] == {"recentMessages": ["and how long?"]}


@pytest.mark.parametrize("config", [{"folder": "missing"}, {"folder": "docs/returns.md"}])
async def test_a_folder_that_cannot_be_searched_costs_no_run(
    start_host: StartHost, environment: dict[str, str], model: FakeModel, docs: Path, config: dict[str, Any]
) -> None:
    """Case 52."""
    host = await start_host(env=environment)
    session = await host.create_session(cwd=str(docs.parent), contextProviders=[search(**config)])
    model.says("I do not know.")

    result = await session.run("refund?")

    assert (result["status"], result["text"]) == ("completed", "I do not know.")
    [warning] = result["warnings"]
    assert (warning["kind"], warning["sourceId"]) == ("providerFailed", "docs")
    assert config["folder"] in warning["message"]
    assert str(docs.parent) not in warning["message"]
    assert session.events("provider.failed")


async def test_a_blank_input_is_not_searched(
    start_host: StartHost, environment: dict[str, str], model: FakeModel, docs: Path
) -> None:
    """BR-21."""
    host = await start_host(env=environment)
    session = await host.create_session(cwd=str(docs.parent), contextProviders=[search()])
    model.otherwise(lambda request: ["?"])

    for text in ("", "   ", "\n\t", "\u200b"):
        result = await session.run(text)
        assert (result["status"], result["warnings"]) == ("completed", [])

    assert session.events("provider.progress", "provider.failed") == []
    assert "SourceDoc" not in model.last_request.text


@pytest.mark.parametrize(
    ("config", "key"),
    [
        ({"folder": "../docs"}, "folder"),
        ({"folder": ""}, "folder"),
        ({"include": ["!"]}, "include"),
        ({"include": []}, "include"),
        ({"searchTime": "never"}, "searchTime"),
        ({"functionToolName": "a b"}, "functionToolName"),
        ({"maxResults": 0}, "maxResults"),
        ({"minScore": -1}, "minScore"),
        ({"recentMessageRoles": ["tool"]}, "recentMessageRoles"),
        ({"fodler": "docs"}, "folder"),
    ],
)
async def test_a_wrong_config_is_refused_by_its_key(
    start_host: StartHost, environment: dict[str, str], config: dict[str, Any], key: str
) -> None:
    host = await start_host(env=environment)

    refused = await host.refusal("createSession", {"contextProviders": [search(**config)]})

    assert refused.kind == "configInvalid"
    assert key in str(refused)


ARTICLES = """
from providers.text_search import SearchHit, TextSearchProvider


def search(query, limit):
    return [SearchHit(f"{limit} articles on {query}", "The archive", "https://archive.example/7", "a7")]


class Articles(TextSearchProvider):
    def __init__(self, source_id, config=None, surroundings=None):
        super().__init__(source_id, config, surroundings, search=search)
"""


AGENT = """
plugins = ["plugins"]

[[agents.default.context_providers]]
type = "articles:Articles"
source_id = "articles"
config = { max_results = 7, context_prompt = "Read:" }
"""


async def test_a_search_function_of_ones_own_takes_the_same_options(
    start_host: StartHost, environment: dict[str, str], model: FakeModel, tmp_path: Path
) -> None:
    write_plugin(tmp_path / "plugins", "articles", ARTICLES)
    (tmp_path / "sidecar.toml").write_text(AGENT, encoding="utf-8")
    host = await start_host(env=environment, args=("--config", str(tmp_path / "sidecar.toml")))
    session = await host.create_session()
    model.says("ok")

    await session.run("tea")

    [text] = shown(model.last_request)
    assert text.startswith(
        "Read:\n"
        "SourceDocName: The archive\nSourceDocLink: https://archive.example/7\nContents:\n7 articles on tea\n----\n"
    )
