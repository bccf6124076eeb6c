"""A plug-in's chat client is held to the contract: what it gives is checked, what it raises is a model error."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing
from pathlib import Path

import pytest

from providers.api.ports import (
    CallRequested,
    Finished,
    TextDelta,
)
from sidecar.errors import (
    ModelBadStream,
    ModelNotFound,
    ModelRateLimited,
    ModelTimeout,
    ModelUnavailable,
    SidecarError,
)
from tests.bench.chat_plugin import Plug, chat_plugin, failure, request, streams, updates


@pytest.fixture
async def plug(tmp_path: Path) -> AsyncIterator[Plug]:
    async with chat_plugin(tmp_path / "plugins") as made:
        yield made


# ---- what it gives ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "body",
    [
        "yield 3",
        "yield TextDelta(3)",
        "yield ReasoningDelta(None)",
        "yield CallRequested('x')",
        "yield Finished('because')",
        "yield Finished('stop', usage=3)",
        "yield Finished('stop', model=3)",
        "yield CallRequested(FunctionCallBlock(call_id='c', name='', arguments={}))",
        "yield CallRequested(FunctionCallBlock(call_id='c', name='t', arguments={'a': {1, 2}}))",
        "yield TextDelta('a')",
        "if False: yield",
    ],
)
async def test_what_is_no_update_fails_the_call(plug: Plug, body: str) -> None:
    assert (await failure(plug.client(streams(body)), ModelBadStream)).message.startswith("mine:m: ")


async def test_what_comes_after_the_ending_is_left_out(plug: Plug) -> None:
    client = plug.client(streams("yield 'a'\nyield Finished('stop')\nyield 'b'"))

    assert await updates(client) == [TextDelta("a"), Finished("stop")]


async def test_broken_text_is_mended(plug: Plug) -> None:
    client = plug.client(
        streams("yield 'a\\0'\nyield '\\ud83d'\nyield '\\ude00'\nyield '\\ud83d'\nyield Finished('stop')")
    )

    said = "".join(update.text for update in await updates(client) if isinstance(update, TextDelta))

    assert said == "a\ufffd\U0001f600\ufffd"


async def test_calls_get_ids_of_their_own(plug: Plug) -> None:
    call = "yield CallRequested(FunctionCallBlock(call_id='c', name='t', arguments={}))"
    got = await updates(plug.client(streams(f"{call}\n{call}\nyield Finished('toolCalls')")))

    ids = [update.call.call_id for update in got if isinstance(update, CallRequested)]
    assert ids[0] == "c"
    assert len(set(ids)) == 2


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("class C(CustomChatClient):\n    def stream(self, request): return [1]", "gave a list, not an async iterator"),
        ("class C(GetResponseClient):\n    async def get_response(self, messages, **k): return 3", "TypeError"),
    ],
)
async def test_what_is_no_answer_fails_the_call(plug: Plug, code: str, message: str) -> None:
    assert message in (await failure(plug.client(code), SidecarError)).message


# ---- what it raises --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("raised", "message"),
    [
        ("ValueError('secret')", "ValueError"),
        ("SystemExit('secret')", "SystemExit"),
        ("KeyboardInterrupt", "KeyboardInterrupt"),
        ("asyncio.CancelledError", "CancelledError"),
        ("StopIteration", "RuntimeError"),
        ("TimeoutError('secret')", "TimeoutError"),
    ],
)
async def test_what_it_raises_is_told_by_its_type_only(plug: Plug, raised: str, message: str) -> None:
    client = plug.client(streams(f"yield 'a'\nraise {raised}"))

    told = await failure(client, ModelUnavailable)

    assert told.message == f"mine:m: its chat client failed: {message}"


@pytest.mark.parametrize("raised", ["ValueError('secret')", "SystemExit", "StopIteration"])
async def test_so_is_what_a_thread_raises(plug: Plug, raised: str) -> None:
    client = plug.client(f"class C(GetResponseClient):\n    def get_response(self, messages, **k): raise {raised}")

    await failure(client, ModelUnavailable)


async def test_it_may_say_why_it_failed(plug: Plug) -> None:
    raised = "ChatClientError('modelRateLimited', 'slow down', retry_after_ms=5)"
    told = await failure(plug.client(streams(f"raise {raised}\nyield")), ModelRateLimited)

    assert told.message == "mine:m: slow down"
    assert told.fields["retry_after_ms"] == 5


async def test_it_may_say_that_there_is_no_such_model(plug: Plug) -> None:
    client = plug.client(streams("raise ChatClientError('modelNotFound', 'no')\nyield"))

    assert (await failure(client, ModelNotFound)).message == "mine:m: no"


# ---- limits and ends -------------------------------------------------------------------------------------------------

WAITS = "try:\n    yield 'a'\n    await asyncio.Event().wait()\nfinally:\n    seen.append('freed')"


@pytest.mark.parametrize("limit", ["idle_timeout_ms", "total_timeout_ms"])
async def test_silence_is_limited(plug: Plug, limit: str) -> None:
    client = plug.client(streams(WAITS), **{limit: 30})

    told = await failure(client, ModelTimeout)

    assert limit in told.message
    assert plug.seen == ["freed"]


async def test_a_call_that_is_cancelled_frees_what_it_holds(plug: Plug) -> None:
    client = plug.client(streams(WAITS))
    stream = client.stream(request())
    assert await anext(stream) == TextDelta("a")
    asking = asyncio.create_task(anext(stream))
    await asyncio.sleep(0)
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking

    assert plug.seen == ["freed"]
    await stream.aclose()


async def test_closing_the_stream_early_closes_the_client_s(plug: Plug) -> None:
    client = plug.client(streams(WAITS))
    async with aclosing(client.stream(request())) as stream:
        await anext(stream)

    assert plug.seen == ["freed"]


async def test_a_stream_that_cannot_be_closed_changes_nothing_of_the_answer(plug: Plug) -> None:
    client = plug.client(streams("try:\n    yield Finished('stop')\nfinally:\n    raise SystemExit"))

    assert await updates(client) == [Finished("stop")]
