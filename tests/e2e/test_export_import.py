"""`exportSession` and `importSession`: a session leaves as a document, and goes on elsewhere with the same history."""

import copy
from typing import Any

import pytest

from tests.bench.fake_model import FakeModel, Stall, T
from tests.bench.host import FakeHost, HostSession


async def exported(session: HostSession) -> dict[str, Any]:
    """The session's document."""
    return (await session.host.request("exportSession", {"sessionId": session.id}))["document"]


async def document(host: FakeHost) -> dict[str, Any]:
    """The document of a small session with the id `s`."""
    session = await host.create_session(sessionId="s", model="scripted:echo", state={"k": 1})
    await session.run("hello")
    return await exported(session)


async def test_an_imported_session_goes_on_with_the_same_history(start_host: Any, model: FakeModel) -> None:
    model.otherwise(lambda request: [f"re: {request.last_user_text}"])
    host = await start_host(env=model.environment)
    session = await host.create_session(
        agent={"name": "a", "instructions": "be brief"}, title="t", metadata={"m": 1}, state={"k": {"v": [1, None]}}
    )
    await session.run([{"type": "text", "text": "one"}, {"type": "text", "text": "more"}])
    sent = await exported(session)
    assert (sent["format"], sent["version"]) == ("agent-sidecar/session", 1)
    before = await host.request("getHistory", {"sessionId": session.id})
    await session.run("two")
    expected = model.last_request.messages
    other = await start_host(env=model.environment)

    result = await other.request("importSession", {"document": sent})

    imported = HostSession(other, session.id, result)
    info = result["session"]
    assert (info["title"], info["metadata"], info["lastSeq"], info["open"]) == ("t", {"m": 1}, 0, True)
    assert await other.request("getHistory", {"sessionId": session.id}) == before
    assert (await imported.state())["state"]["k"] == {"v": [1, None]}
    done = await imported.run("two")
    assert model.last_request.messages == expected
    assert [event["seq"] for event in imported.durable()] == list(range(1, done["lastSeq"] + 1))


async def test_a_document_can_be_imported_again_under_another_id(host: FakeHost) -> None:
    sent = await document(host)
    refused = await host.refusal("importSession", {"document": sent})
    also = await host.refusal("importSession", {"document": sent, "newSessionId": "s"})

    result = await host.request("importSession", {"document": sent, "newSessionId": "copy"})

    assert [refused.kind, also.kind] == ["sessionExists", "sessionExists"]
    assert result["session"]["sessionId"] == "copy"
    copied = await exported(HostSession(host, "copy", result))
    assert (copied["messages"], copied["state"]) == (sent["messages"], sent["state"])


async def test_an_import_and_what_names_it_may_be_sent_in_one_read(start_host: Any) -> None:
    sent = await document(await start_host())
    other = await start_host()
    other.ask("importSession", {"document": sent})

    run = other.ask("run", {"sessionId": "s", "input": "more"})

    assert (await run.result())["text"] == "more"


async def test_a_stored_session_is_exported_without_being_opened(start_host: Any, store: str) -> None:
    first, other = await start_host(store=store), await start_host(store=store)
    sent = await document(first)

    read = await other.request("exportSession", {"sessionId": "s"})

    assert read["document"] == sent
    assert (await other.refusal("exportSession", {"sessionId": "nobody"})).kind == "sessionNotFound"


async def test_a_running_session_is_exported_as_if_interrupted(start_host: Any, model: FakeModel) -> None:
    host = await start_host(env=model.environment)
    session = await host.create_session()
    model.says(T("a"), Stall())
    run = session.start("one")
    await run.text_contains("a")

    sent = await exported(session)

    assert [message["role"] for message in sent["messages"]] == ["user"]
    await session.cancel()
    await run.result()


@pytest.mark.parametrize(
    ("change", "path"),
    [
        ({"format": "somebody/else"}, "document.format"),
        ({"version": 2}, "document.version"),
        ({"version": "1"}, "document.version"),
        ({"messages": "none"}, "document.messages"),
        ({"messages": [{"role": "user", "content": "no id"}]}, "document.messages"),
        ({"messages": [{"messageId": "m", "role": "user", "content": "x"}] * 2}, "document.messages"),
        ({"messages": [{"messageId": "m", "role": "king", "content": "x"}]}, "document.messages.0.role"),
        ({"state": []}, "document.state"),
        ({"session": {}}, "document.session.sessionId"),
        ({"session": 5}, "document.session"),
    ],
)
async def test_what_is_no_document_of_ours_is_refused_by_name(
    host: FakeHost, change: dict[str, Any], path: str
) -> None:
    sent = await document(host)

    refused = await host.refusal("importSession", {"document": {**sent, **change}, "newSessionId": "new"})

    assert (refused.code, refused.kind) == (-32602, "invalidParams")
    assert refused.data["errors"][0]["path"].startswith(path)
    assert (await host.refusal("getState", {"sessionId": "new"})).kind == "sessionNotFound"


@pytest.mark.parametrize(("field", "value"), [("sessionId", ""), ("sessionId", "x" * 257), ("cwd", "relative/folder")])
async def test_what_createsession_would_refuse_is_refused_here_too(host: FakeHost, field: str, value: str) -> None:
    sent = copy.deepcopy(await document(host))
    sent["session"][field] = value

    refused = await host.refusal("importSession", {"document": sent, "newSessionId": "new"})

    assert refused.kind == "invalidParams"
    assert refused.data["errors"][0]["path"] == f"document.session.{field}"


async def test_a_session_whose_agent_is_not_here_is_refused_and_nothing_is_left(host: FakeHost) -> None:
    sent = copy.deepcopy(await document(host))
    sent["session"]["agent"] = "stranger"

    refused = await host.refusal("importSession", {"document": sent, "newSessionId": "new"})

    assert refused.kind == "agentNotFound"
    assert (await host.refusal("getState", {"sessionId": "new"})).kind == "sessionNotFound"


async def test_a_provider_s_state_must_be_an_object(host: FakeHost) -> None:
    sent = await document(host)

    refused = await host.refusal(
        "importSession", {"document": {**sent, "state": {"in_memory": 5}}, "newSessionId": "new"}
    )

    assert refused.kind == "configInvalid"
