"""A plug-in's chat client: written in one of two ways, imported and made once, closed once, or refused."""

import asyncio
import sys
import threading
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from protocol.agents import RunOptions
from protocol.messages import FunctionCallBlock, Usage
from providers import import_thread
from providers.api.ports import (
    CallRequested,
    Finished,
    ModelTraits,
    ReasoningDelta,
    TextDelta,
    ToolSpec,
)
from sidecar.config.endpoints import EndpointConfig
from sidecar.errors import (
    ConfigInvalid,
)
from sidecar.models.custom import CustomChat
from sidecar.models.registry import Models
from tests.bench.chat_plugin import HEAD, Plug, chat_plugin, failure, request, streams, updates
from tests.bench.plugin_files import install, write_plugin
from tests.bench.waiting import eventually


@pytest.fixture
async def plug(tmp_path: Path) -> AsyncIterator[Plug]:
    async with chat_plugin(tmp_path / "plugins") as made:
        yield made


# ---- the two ways to write one -----------------------------------------------------------------------------------


async def test_a_stream_goes_through_as_it_is(plug: Plug) -> None:
    body = "yield TextDelta('a')\nyield ReasoningDelta('r')\nyield 'b'\nyield Finished('length', Usage(input_tokens=1))"

    got = await updates(plug.client(streams(body)))

    assert got == [TextDelta("a"), ReasoningDelta("r"), TextDelta("b"), Finished("length", Usage(input_tokens=1))]


RESPOND = """
class C(GetResponseClient):
    config_type = Config
    async def get_response(self, messages, *, options=None, client_kwargs=None, **kwargs):
        seen.append((messages, options, client_kwargs, kwargs))
        return f"{self.endpoint} {self.model} {self.config.word} {messages[-1].text}"
"""


async def test_get_response_is_given_messages_options_and_client_kwargs(plug: Plug) -> None:
    tool = ToolSpec("t", "does", {"type": "object"})
    options = RunOptions(temperature=0.5, model="mine:m", max_turns=3, instructions="said already")
    asked = request(instructions="Be brief.", options=options, tools=[tool], client_kwargs={"tenant": "a"})

    got = await updates(plug.client(RESPOND, config={"word": "oh"}), asked)

    assert got == [TextDelta("mine m oh hello"), Finished("stop")]
    [(messages, given, kwargs, others)] = plug.seen
    assert [message.text for message in messages] == ["hello"]
    assert given == {"temperature": 0.5, "instructions": "Be brief.", "tools": [tool]}
    assert kwargs == {"tenant": "a"}
    assert others == {}


async def test_get_response_may_give_calls_usage_and_an_ending(plug: Plug) -> None:
    code = """
class C(GetResponseClient):
    async def get_response(self, messages, **kwargs):
        call = FunctionCallBlock(call_id="c", name="t", arguments={"a": 1})
        return ChatAnswer("", Finished("toolCalls", Usage(output_tokens=7)), (call,))
"""
    got = await updates(plug.client(code))

    call = FunctionCallBlock(call_id="c", name="t", arguments={"a": 1})
    assert got == [CallRequested(call), Finished("toolCalls", Usage(output_tokens=7))]


async def test_a_plain_get_response_is_called_in_a_thread_and_may_block(plug: Plug) -> None:
    code = """
go = threading.Event()
class C:
    def __init__(self, endpoint, model): pass
    def get_response(self, messages, options=None, client_kwargs=None):
        seen.append(threading.current_thread())
        assert go.wait(10)
        return "done"
"""
    client = plug.client(code)
    await client.load()
    asking = asyncio.create_task(updates(client))
    await eventually(lambda: plug.seen)  # the loop goes on meanwhile
    sys.modules["plug_client"].go.set()

    assert await asking == [TextDelta("done"), Finished("stop")]
    assert plug.seen != [threading.main_thread()]


async def test_a_class_need_not_inherit(plug: Plug) -> None:
    code = """
class C:
    traits = ModelTraits(tools=True)
    def __init__(self, endpoint, model): self.model = model
    async def stream(self, request):
        yield self.model
        yield Finished("stop")
"""
    client = plug.client(code, context_size=99)

    assert await updates(client) == [TextDelta("m"), Finished("stop")]
    assert client.traits == ModelTraits(tools=True, context_size=99)
    assert client.name == "mine:m"


# ---- made once, closed once ------------------------------------------------------------------------------------------


async def test_it_is_made_at_the_first_call_once_for_all(plug: Plug) -> None:
    code = """
class C(GetResponseClient):
    def __init__(self, *args):
        super().__init__(*args)
        seen.append("made")
    async def get_response(self, messages, **kwargs): return "x"
"""
    client = plug.client(code)
    assert "plug_client" not in sys.modules

    await asyncio.gather(*(updates(client) for _ in range(5)))

    assert plug.seen == ["made"]


@pytest.mark.parametrize("prefix", ["async ", ""])
async def test_it_is_closed_with_the_endpoints(plug: Plug, prefix: str) -> None:
    code = streams("yield Finished('stop')") + f"    {prefix}def aclose(self): seen.append('closed')\n"
    write_plugin(plug.folder, "plug_client", HEAD + code)
    models = Models({"mine": EndpointConfig(type="plug_client:C")}, plugins=[plug.folder])
    client = await models.ready("mine:m")
    assert isinstance(client, CustomChat)
    assert await updates(client) == [Finished("stop")]

    await models.aclose()
    await models.aclose()

    assert plug.seen == ["closed"]


async def test_one_that_fails_to_close_does_no_harm(plug: Plug) -> None:
    client = plug.client(streams("yield Finished('stop')") + "    async def aclose(self): raise SystemExit\n")
    await updates(client)

    await client.aclose()


async def test_one_that_was_never_called_is_neither_made_nor_closed(plug: Plug) -> None:
    await plug.client("raise RuntimeError").aclose()


async def test_an_installed_client_is_found_by_its_name(plug: Plug) -> None:
    site = install(plug.folder / "site", {"plug_client": HEAD + RESPOND}, chat_clients="house = plug_client:C")
    sys.path.append(str(site))

    models = Models({"h": EndpointConfig(type="house")})
    client = await models.ready("h:m")

    assert isinstance(client, CustomChat)
    assert (await updates(client))[0] == TextDelta("h m hi hello")
    await models.aclose()


# ---- what cannot be used ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("code", "config", "message"),
    [
        ("1 / 0", None, "cannot be imported: ZeroDivisionError"),
        ("raise SystemExit", None, "cannot be imported: SystemExit"),
        ("D = 1", None, "has no 'C'"),
        ("C = 1", None, "is no class, but a int"),
        ("class C: pass", None, "neither stream nor get_response"),
        (
            "class C:\n    def get_response(self, messages): pass",
            None,
            "must take (messages, *, options, client_kwargs)",
        ),
        ("class C:\n    def stream(self): pass", None, "must take 2 arguments"),
        ("class C(CustomChatClient): pass", None, "does not define stream"),
        ("class C(GetResponseClient): pass", None, "does not define get_response"),
        (RESPOND, {"wrd": "x"}, "config.wrd: Extra inputs are not permitted; did you mean 'word'?"),
        (RESPOND, {"word": 3}, "config.word: Input should be a valid string"),
        (RESPOND.replace("config_type = Config", "config_type = 3"), None, "config_type is no subclass"),
    ],
)
async def test_a_client_that_cannot_be_used_is_a_fault_of_the_configuration(
    plug: Plug, code: str, config: Any, message: str
) -> None:
    told = await failure(plug.client(code, config=config), ConfigInvalid)

    assert message in told.message
    assert "endpoint 'mine'" in told.message
    assert told.fields["key"] == "endpoints.mine"


async def test_an_import_that_hangs_is_given_up(plug: Plug, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(import_thread, "IMPORT_S", 0.05)

    told = await failure(plug.client("threading.Event().wait(5)"), ConfigInvalid)

    assert "still being imported" in told.message


async def test_a_client_that_was_mended_works_the_next_time(plug: Plug) -> None:
    client = plug.client("1 / 0")
    await failure(client, ConfigInvalid)
    write_plugin(plug.folder, "plug_client", HEAD + RESPOND)

    assert (await updates(client))[0] == TextDelta("mine m hi hello")
