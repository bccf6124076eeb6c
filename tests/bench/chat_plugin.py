"""A chat client that a test writes as a plug-in, and what its calls give. Tests only."""

import sys
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from protocol.messages import text_message
from providers.api.ports import ChatRequest, ChatUpdate
from sidecar.config.endpoints import EndpointConfig
from sidecar.errors import SidecarError
from sidecar.models.custom import CustomChat
from tests.bench.plugin_files import clean_imports, write_plugin

HEAD = """
import asyncio, threading, time
from protocol.messages import FunctionCallBlock, Usage
from providers.api.chat_client import ChatClientError, CustomChatClient, GetResponseClient
from providers.api.ports import CallRequested, ChatAnswer, Finished, ModelTraits, ReasoningDelta, TextDelta
from providers.api.provider import ProviderConfig
seen = []
class Config(ProviderConfig):
    word: str = "hi"
"""


class Plug:
    """A client that a test writes, and the module that it is in."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.clients: list[CustomChat] = []

    def client(self, code: str, *, model: str = "m", **config: Any) -> CustomChat:
        write_plugin(self.folder, "plug_client", HEAD + code)
        made = CustomChat("mine", EndpointConfig(type="plug_client:C", **config), model, [self.folder])
        self.clients.append(made)
        return made

    @property
    def seen(self) -> list[Any]:
        return sys.modules["plug_client"].seen


@asynccontextmanager
async def chat_plugin(folder: Path) -> AsyncIterator[Plug]:
    """A folder for the client; what was made of it is closed, and its module forgotten."""
    with clean_imports():
        made = Plug(folder)
        yield made
        for client in made.clients:
            await client.aclose()


def request(text: str = "hello", **fields: Any) -> ChatRequest:
    return ChatRequest(messages=[text_message("user", text)], **fields)


async def updates(client: CustomChat, asked: ChatRequest | None = None) -> list[ChatUpdate]:
    async with aclosing(client.stream(asked or request())) as stream:
        return [update async for update in stream]


async def failure(client: CustomChat, kind: type[SidecarError]) -> SidecarError:
    with pytest.raises(kind) as failed:
        await updates(client)
    assert "secret" not in failed.value.message
    return failed.value


def streams(body: str, head: str = "CustomChatClient") -> str:
    """A client whose `stream` does this."""
    lines = "\n".join(f"        {line}" for line in body.splitlines())
    return f"class C({head}):\n    config_type = Config\n    async def stream(self, request):\n{lines}\n"
