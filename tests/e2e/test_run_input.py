"""What a run takes as input: a string, blocks or messages, and the whole conversation again each time (BR-18)."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.bench.fake_model import FakeModel
from tests.bench.host import FakeHost

Message = dict[str, Any]

QUESTION: Message = {"role": "user", "content": "q"}


def conversation(model: FakeModel) -> list[str]:
    """What the last model request held, without instructions."""
    return [message["content"] for message in model.last_request.messages if message["role"] != "system"]


def without_ids(messages: list[Message]) -> list[Message]:
    """The transcript as a host keeps it that knows nothing of ids."""
    return [{"role": m["role"], "content": "".join(b["text"] for b in m["content"])} for m in messages]


def as_sent(messages: list[Message]) -> list[Message]:
    """The transcript exactly as `getHistory` gave it."""
    return messages


@pytest.mark.parametrize("kept", [without_ids, as_sent])
async def test_the_whole_transcript_may_be_sent_again_each_turn(
    start_host: Any, model: FakeModel, kept: Callable[[list[Message]], list[Message]]
) -> None:
    host = await start_host(env=model.environment)
    session = await host.create_session()
    expected: list[str] = []
    for turn in range(1, 6):
        model.says(f"answer {turn}")
        stored = (await host.request("getHistory", {"sessionId": session.id}))["messages"]

        await session.run([*kept(stored), {"role": "user", "content": f"question {turn}"}])

        expected.append(f"question {turn}")
        assert conversation(model) == expected
        expected.append(f"answer {turn}")
    assert [text for _, text in await session.history()] == expected


async def test_a_replay_with_nothing_new_is_a_run_without_input(start_host: Any, model: FakeModel) -> None:
    host = await start_host(env=model.environment)
    session = await host.create_session()
    model.says("a")
    await session.run("q")
    model.says("b")

    await session.run([{"role": "user", "content": "q"}, {"role": "assistant", "content": "a"}])

    assert conversation(model) == ["q", "a"]
    assert [text for _, text in await session.history()] == ["q", "a", "b"]


async def test_the_same_words_twice_are_two_messages(start_host: Any, model: FakeModel) -> None:
    """Without an assistant message at the head it is no replay, however equal it looks."""
    host = await start_host(env=model.environment)
    session = await host.create_session()
    model.otherwise(lambda _: ["yes"])
    await session.run([{"role": "user", "content": "again"}])

    await session.run([{"role": "user", "content": "again"}])

    assert conversation(model) == ["again", "yes", "again"]


@pytest.mark.parametrize(
    "given",
    [
        [QUESTION, {"role": "assistant", "content": "something else"}],
        [QUESTION, {"role": "assistant", "content": "a"}, {"role": "assistant", "content": "b"}],
        [{"role": "assistant", "content": "a"}],
        [{"messageId": "new", "role": "assistant", "content": "a"}],
        [{"role": "tool", "content": [{"type": "functionResult", "callId": "c", "content": []}]}],
        [{"role": "user", "content": [{"type": "functionCall", "callId": "c", "name": "f", "arguments": {}}]}],
        [{"role": "user", "content": [{"type": "approvalResponse", "requestId": "r", "approved": True}]}],
        [{"type": "functionResult", "callId": "c", "content": []}],
    ],
)
async def test_words_are_not_put_into_the_model_s_mouth(start_host: Any, model: FakeModel, given: Any) -> None:
    host = await start_host(env=model.environment)
    session = await host.create_session()
    model.says("a")
    await session.run("q")

    refused = await host.refusal("run", {"sessionId": session.id, "input": given})

    assert (refused.code, refused.kind) == (-32602, "invalidParams")
    assert [text for _, text in await session.history()] == ["q", "a"]
    assert len(model.requests) == 1


def media(kind: str, data: str) -> Message:
    """A block that holds something in base64."""
    if kind == "resource":
        return {"type": kind, "resource": {"uri": "file:///a", "blob": data}}
    return {"type": kind, "data": data, "mimeType": "a/b"}


@pytest.mark.parametrize(("kind", "field"), [("image", "data"), ("audio", "data"), ("resource", "resource.blob")])
async def test_media_that_are_no_base64_are_refused_with_their_place(host: FakeHost, kind: str, field: str) -> None:
    session = await host.create_session(model="scripted:echo")
    good = [{"type": "text", "text": "look"}, media(kind, "aGk=")]

    for data in ("a word!", "aGk", "aGk=aGk=", "a-_=", "aG\nk=", "äGk="):
        blocks = [*good, media(kind, data)]
        for given, path in (
            (blocks, f"input.2.{field}"),
            ([QUESTION, {"role": "user", "content": blocks}], f"input.1.content.2.{field}"),
        ):
            refused = await host.refusal("run", {"sessionId": session.id, "input": given, "runId": "r"})
            assert (refused.code, refused.kind) == (-32602, "invalidParams"), data
            assert [fault["path"] for fault in refused.data["errors"]] == [path]
            assert data not in str(refused.data) + refused.message, "what was sent is never repeated"
    assert session.events() == []
    assert (await session.run(good, runId="r"))["status"] == "completed"


@pytest.mark.parametrize("given", ["", [], [{"type": "text", "text": ""}], [{"role": "user", "content": ""}]])
async def test_blank_input_is_legal(host: FakeHost, given: Any) -> None:
    session = await host.create_session(model="scripted:echo")

    assert (await session.run(given))["status"] == "completed"


async def test_several_messages_come_in_their_order_with_their_own_fields(start_host: Any, model: FakeModel) -> None:
    host = await start_host(env=model.environment)
    session = await host.create_session()
    model.says("ok")
    given = [
        {"messageId": "mine", "role": "user", "content": "one", "authorName": "Ada", "metadata": {"k": [1]}},
        {"role": "system", "content": "be brief"},
        {"role": "user", "content": [{"type": "text", "text": "two"}]},
    ]

    result = await session.run(given)

    stored = (await host.request("getHistory", {"sessionId": session.id}))["messages"]
    assert [message["role"] for message in stored] == ["user", "system", "user", "assistant"]
    first = stored[0]
    assert (first["messageId"], first["authorName"], first["metadata"]) == ("mine", "Ada", {"k": [1]})
    assert {message["runId"] for message in stored} == {result["runId"]}
    assert [message["source"]["type"] for message in stored] == ["external"] * 3 + ["agent"]
    assert len({message["messageId"] for message in stored}) == 4


async def test_an_id_given_twice_in_one_input_counts_once(start_host: Any, model: FakeModel) -> None:
    host = await start_host(env=model.environment)
    session = await host.create_session()
    model.says("ok")

    await session.run([{"messageId": "m", "role": "user", "content": "one"}] * 2)

    assert conversation(model) == ["one"]


async def test_a_one_off_run_takes_no_words_of_the_model_s_either(host: FakeHost) -> None:
    given = [{"role": "user", "content": "q"}, {"role": "assistant", "content": "a"}]

    refused = await host.refusal("run", {"input": given, "agent": {"model": "scripted:echo"}})

    assert refused.kind == "invalidParams"
    assert host.events() == []
