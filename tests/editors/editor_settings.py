"""What the tests of editors' settings share: the page, an agent that reads and edits documents, events to compare.

Not the conversations themselves: each editor holds its own, in its own language.
"""

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

from tests.editors.conftest import STALLS, Workspace

PAGE: Final = Path(__file__).parents[2] / "docs" / "editors.md"
ASKS: Final = "remove it"
"""The input after which the model calls a tool that needs consent."""
REMOVED: Final = "removed a.txt"
"""The answer where consent was given."""

MODEL: Final = rf"""
[[reply]]
when_tool = "remove"
text = "{{result}}"

[[reply]]
when_tool = "edit_document"
text = "{{result}}"

[[reply]]
when = '^Explain .*line'
text = "It is a note."

[[reply]]
when = '^Find and fix .* of (?P<uri>\S+) \(version'
[[reply.calls]]
name = "edit_document"
arguments = {{ uri = "{{uri}}", edits = [{{ old_string = "it was saved", new_string = "it\nis" }}] }}

[[reply]]
when = "{ASKS}"
calls = [{{ name = "remove", arguments = {{ path = "a.txt" }} }}]

[[reply]]
when = "{STALLS}"
text = ["Once upon", " a time"]
stall = true

[[reply]]
when = "."
text = ["You said: ", "{{input}}"]
"""
PLUGIN: Final = '''
from providers.api.tool import tool


@tool(approval_mode="always_require", kind="delete")
def remove(path: str) -> str:
    """Remove a file."""
    return f"removed {path}"
'''


def prepare(workspace: Workspace) -> None:
    """Give the user's default agent a tool that needs consent, and the open documents, as the page says."""
    config = Path(workspace.environment["XDG_CONFIG_HOME"]) / "agent-sidecar" / "sidecar.toml"
    model = config.with_name("model.toml")
    model.write_text(MODEL)
    plugins = config.with_name("plugins")
    plugins.mkdir(mode=0o755)
    (plugins / "editor_tools.py").write_text(PLUGIN)
    agent = blocks("toml")[0]
    assert agent.startswith("[agents.default]\n")
    config.write_text(
        f'plugins = ["plugins"]\ntools = ["editor_tools:remove"]\n{config.read_text()}{agent}'
        f'model = "scripted:{model}"\ntools = [{{ type = "registered", name = "remove" }}]\n'
    )
    workspace.environment.update(HOME=str(workspace.root.parent), STALLS=STALLS, ASKS=ASKS)


def blocks(language: str) -> list[str]:
    """The page's blocks of code in a language, in order."""
    return re.findall(rf"^```{language}\n(.*?)^```", PAGE.read_text("utf-8"), flags=re.MULTILINE | re.DOTALL)


def assert_replayed(said: dict[str, Any]) -> None:
    """After a restart the editor was sent what it had been sent of the session, event for event."""
    live = _durable(said["live"])
    assert {"request.opened", "request.resolved", "tool.completed", "usage.updated"} <= {one["type"] for one in live}
    ends = [one["data"]["status"] for one in live if one["type"] == "run.completed"]
    assert (ends[0], ends[-1]) == ("completed", "cancelled")
    assert _durable(said["replayed"]) == live


def seen_by_the_model(explained: dict[str, Any]) -> str:
    """What providers put before the model in a run's first call, as `explainRun` tells it."""
    return "\n".join(message.get("text", "") for message in explained["calls"][0]["messages"])


def _durable(events: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """The events that a replay repeats, without what differs from one sending to the next."""
    return [
        {name: value for name, value in event.items() if name not in ("prevSeq", "_meta")}
        for event in events
        if not event.get("ephemeral")
    ]
