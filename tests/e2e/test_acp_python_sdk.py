"""A whole conversation by the client of the Python SDK, `agent-client-protocol`."""

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
from acp import PROTOCOL_VERSION, RequestError, spawn_agent_process, text_block
from acp.schema import AllowedOutcome, RequestPermissionResponse

from tests.bench.clients_run import note
from tests.e2e.cli_process import COMMAND, Cli
from tests.editors.editor_settings import PLUGIN

SCRIPT = """
[[reply]]
when_tool = "remove"
text = "It says: {result}"
[[reply]]
when = "remove"
calls = [{ name = "remove", arguments = { path = "a.txt" } }]
[[reply]]
when = "story"
text = ["Once upon", " a time"]
stall = true
[[reply]]
when = "."
text = ["You said: ", "{input}"]
"""


class Editor:
    """The SDK's `Client`: it keeps what it is shown, and allows every call once."""

    def __init__(self) -> None:
        self.updates: list[Any] = []
        self.permissions: list[Any] = []
        self._news = asyncio.Event()

    async def session_update(self, session_id: str, update: Any, **_: Any) -> None:
        self.updates.append(update)
        self._news.set()

    async def request_permission(
        self, session_id: str, tool_call: Any, options: list[Any], **_: Any
    ) -> RequestPermissionResponse:
        self.permissions.append(tool_call)
        chosen = next(option.option_id for option in options if option.kind == "allow_once")
        return RequestPermissionResponse(outcome=AllowedOutcome(outcome="selected", option_id=chosen))

    def text(self, kind: str = "agent_message_chunk") -> str:
        return "".join(u.content.text for u in self.updates if u.session_update == kind)

    async def reads(self, text: str) -> None:
        async with asyncio.timeout(10):
            while text not in self.text():
                self._news.clear()
                await self._news.wait()


@pytest.fixture
def cli(tmp_path: Path) -> Cli:
    """A folder with a configuration, a tool and a model."""
    cli = Cli(tmp_path)
    (tmp_path / "plugins").mkdir(mode=0o755)
    (tmp_path / "plugins" / "acp_tools.py").write_text(PLUGIN)
    (tmp_path / "sidecar.toml").write_text(
        f'plugins = ["plugins"]\ntools = ["acp_tools:remove"]\ndefault_model = "{cli.script(SCRIPT)}"\n'
        '[agents.default]\ntools = [{ type = "registered", name = "remove" }]\n'
    )
    return cli


@asynccontextmanager
async def attached(cli: Cli) -> AsyncIterator[tuple[Any, Editor]]:
    """The SDK's connection to an agent; it must end well."""
    editor = Editor()
    arguments = (*COMMAND[1:], "acp", "--config", str(cli.folder / "sidecar.toml"), "--store", cli.store)
    async with spawn_agent_process(
        editor, COMMAND[0], *arguments, env=cli.environment, cwd=cli.folder,
        transport_kwargs={"stderr": sys.stderr.fileno(), "shutdown_timeout": 10}, use_unstable_protocol=True,
    ) as (connection, process):  # fmt: skip
        answer = await connection.initialize(protocol_version=PROTOCOL_VERSION)
        assert answer.protocol_version == PROTOCOL_VERSION
        yield connection, editor
    assert process.returncode == 0


async def test_a_whole_conversation_by_the_python_sdk(cli: Cli, record_property: Any) -> None:
    folder = str(cli.folder)
    async with attached(cli) as (connection, editor):
        session = (await connection.new_session(cwd=folder, mcp_servers=[])).session_id

        answer = await connection.prompt(session_id=session, prompt=[text_block("hello")])
        assert (answer.stop_reason, editor.text()) == ("end_turn", "You said: hello")

        answer = await connection.prompt(session_id=session, prompt=[text_block("remove a file")])
        assert answer.stop_reason == "end_turn"
        assert [call.kind for call in editor.permissions] == ["delete"]
        assert "It says: removed a.txt" in editor.text()

        story = asyncio.create_task(connection.prompt(session_id=session, prompt=[text_block("story")]))
        await editor.reads("Once upon a time")
        with pytest.raises(RequestError) as busy:
            await connection.prompt(session_id=session, prompt=[text_block("hello")])
        assert busy.value.data["kind"] == "sessionBusy"
        state = await connection.ext_method("sidecar/getState", {"sessionId": session})
        assert state["session"]["status"] == "running"
        await connection.cancel(session_id=session)
        assert (await story).stop_reason == "cancelled"

        options = await connection.set_config_option(config_id="model", session_id=session, value="scripted:echo")
        assert options.config_options[0].current_value == "scripted:echo"
        said = editor.text()

    async with attached(cli) as (connection, editor):
        listed = await connection.list_sessions(cwd=folder)
        assert [info.session_id for info in listed.sessions] == [session]
        await connection.load_session(cwd=folder, session_id=session, mcp_servers=[])
        assert editor.text("user_message_chunk") == "helloremove a filestory"
        assert said.startswith(editor.text())
        kinds = [update.session_update for update in editor.updates]
        assert kinds.count("tool_call") == 1
        await connection.close_session(session_id=session)
        await connection.resume_session(session_id=session, cwd=folder)
        await connection.prompt(session_id=session, prompt=[text_block("again")])
        assert editor.text().endswith("again")
    note(record_property, "ACP SDK, Python", version("agent-client-protocol"))
