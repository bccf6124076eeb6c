"""What a run is given besides its input: documents, settings of the chat client, properties. None of it is stored."""

from pathlib import Path
from typing import Any

import pytest

from tests.bench.fake_model import FakeModel
from tests.bench.host import FakeHost

URI = "file:///nowhere/notes.md"


def opened(host: FakeHost, text: str, version: int = 1) -> None:
    """The host's editor opens a document."""
    document = {"uri": URI, "languageId": "markdown", "version": version, "text": text}
    host.notify("textDocument/didOpen", {"textDocument": document})


async def test_a_document_s_text_stands_before_the_input_and_is_not_kept(start_host: Any, model: FakeModel) -> None:
    host = await start_host(env=model.environment)
    session = await host.create_session()
    model.otherwise(lambda _: ["ok"])

    context = [{"uri": URI, "text": "about bees"}, {"uri": "x:y", "text": "wasps"}]
    await session.run("what is it about?", context=context)
    shown = [message for message in model.last_request.messages if message["role"] == "user"]
    await session.run("and now?")

    assert len(shown) == 2
    assert all(text in str(shown[0]) for text in (URI, "about bees", "x:y", "wasps"))
    assert shown[1]["content"] == "what is it about?"
    assert "bees" not in model.last_request.text
    assert [text for _, text in await session.history()] == ["what is it about?", "ok", "and now?", "ok"]
    page = await host.request("getEvents", {"sessionId": session.id, "afterSeq": 0})
    assert "bees" not in str(page)


async def test_without_text_it_is_what_the_editor_shows_unsaved_changes_included(
    start_host: Any, model: FakeModel
) -> None:
    host = await start_host(env=model.environment)
    session = await host.create_session()
    model.otherwise(lambda _: ["ok"])
    opened(host, "first draft")  # in one read with the run: the run must not overtake it
    await session.run("read", context=[{"uri": URI, "version": 1}])
    assert "first draft" in model.last_request.text

    change = {"textDocument": {"uri": URI, "version": 2}, "contentChanges": [{"text": "second draft"}]}
    host.notify("textDocument/didChange", change)
    await session.run("read", context=[{"uri": URI}])

    assert "second draft" in model.last_request.text
    stale = await host.refusal("run", {"sessionId": session.id, "input": "x", "context": [{"uri": URI, "version": 1}]})
    assert stale.kind == "revisionConflict"


async def test_a_document_that_is_not_open_is_refused_and_never_read(
    start_host: Any, model: FakeModel, tmp_path: Path
) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text("hunter2", encoding="utf-8")
    host = await start_host(env=model.environment)
    session = await host.create_session()
    model.otherwise(lambda _: ["ok"])

    context = [{"uri": "a:b", "text": "t"}, {"uri": secret.as_uri()}]
    refused = await host.refusal("run", {"sessionId": session.id, "input": "x", "context": context})
    await session.run([{"type": "resource_link", "uri": secret.as_uri(), "name": "secret"}])

    assert (refused.code, refused.data["errors"][0]["path"]) == (-32602, "context.1.text")
    assert "hunter2" not in model.last_request.text


@pytest.mark.parametrize(
    ("start", "end", "cut"),
    [
        ((0, 0), (0, 3), "one"),
        ((0, 2), (1, 1), "e\r\n"),  # the middle of a character: half of it is none
        ((1, 2), (2, 3), " two\nthr"),
        ((1, 0), (1, 2), "\U0001f41d"),
        ((2, 0), (9, 9), "thr\x0cee\u2028same line"),
        ((2, 4), (2, 6), "ee"),
        ((5, 0), (6, 0), ""),
        ((1, 3), (1, 3), ""),
    ],
)
async def test_a_range_is_counted_as_lsp_counts(
    start_host: Any, model: FakeModel, start: tuple[int, int], end: tuple[int, int], cut: str
) -> None:
    """Lines end at LF, CRLF and CR only, and columns are UTF-16 code units."""
    text = "one\r\n\U0001f41d two\nthr\x0cee\u2028same line"
    host = await start_host(env=model.environment)
    session = await host.create_session()
    model.says("ok")
    span = {edge: {"line": line, "character": column} for edge, (line, column) in (("start", start), ("end", end))}

    await session.run("x", context=[{"uri": URI, "text": text, "range": span}])

    assert f'<resource uri="{URI}">\n{cut}\n</resource>' in model.last_request.text


async def test_a_range_that_is_none_is_refused(host: FakeHost) -> None:
    session = await host.create_session(model="scripted:echo")
    context = [{"uri": URI, "text": "t", "range": {"start": {"line": 0}}}]

    refused = await host.refusal("run", {"sessionId": session.id, "input": "x", "context": context})

    assert refused.data["errors"][0]["path"] == "context.0.range"


async def test_client_kwargs_reach_the_endpoint_as_headers_and_body_and_nothing_else(
    start_host: Any, model: FakeModel, store: str
) -> None:
    host = await start_host(env=model.environment, store=store)
    session = await host.create_session(sessionId="s")
    model.says("ok")
    kwargs = {"extraHeaders": {"X-Team": "bees"}, "extraBody": {"user": "ada"}, "mine": "whatever"}

    first = await session.run("go", runId="r", clientKwargs=kwargs, properties={"ticket": "T-17"})

    assert model.last_request.headers["x-team"] == "bees"
    assert model.last_request.body["user"] == "ada"
    assert "whatever" not in model.last_request.raw.decode()
    assert "T-17" not in model.last_request.raw.decode()
    assert await session.run("go", runId="r", properties={"ticket": "other"}) == first
    host.kill()
    await host.wait()
    path = Path(store.removeprefix("sqlite:"))
    stored = b"".join(file.read_bytes() for file in path.parent.iterdir() if file.is_file())
    assert b"go" in stored
    for secret in (b"bees", b"ada", b"whatever", b"T-17"):
        assert secret not in stored
