"""A provider with modes and a plan, as a plug-in: for what a host sees of both.

Its tool `work` moves the plan on, and `switch` changes the mode.
"""

from pathlib import Path
from typing import Final

from tests.bench.plugin_files import write_plugin

PLUGIN: Final = '''
from providers.api.modes import Mode, Modes, PlanEntry
from providers.api.provider import ContextProvider
from providers.api.tool import tool


class Working(ContextProvider):
    def modes(self, state):
        return Modes(state.get("mode", "plan"), [Mode("plan", "Thinks first"), Mode("execute")])

    def switch_mode(self, mode, state):
        state["mode"] = mode

    async def before_run(self, *, agent, session, context, state):
        def show(status):
            entries = [PlanEntry("1", "Look", "around", "completed"), PlanEntry("2", "Leap", status=status)]
            context.show_plan(self, entries)

        @tool
        async def work() -> str:
            """Get on with it."""
            show("completed")
            return "done"

        @tool
        async def switch(mode: str) -> str:
            """Work in another way."""
            self.switch_mode(mode, state)
            return mode

        show("inProgress")
        context.extend_instructions(self, f"Mode: {self.modes(state).current}")
        context.extend_tools(self, [work, switch])
'''
MODEL: Final = """
[[reply]]
when_tool = "work"
text = "ok"

[[reply]]
when_tool = "switch"
text = "ok"

[[reply]]
when = "work"
calls = [{ name = "work", arguments = {} }]

[[reply]]
when = "execute"
calls = [{ name = "switch", arguments = { mode = "execute" } }]

[[reply]]
when = "."
text = "You said: {input}"
"""


def configure(folder: Path) -> Path:
    """Write the plug-in, the model and a configuration whose default agent has both; gives the configuration."""
    write_plugin(folder / "plugins", "working", PLUGIN)
    (folder / "moding.toml").write_text(MODEL)
    file = folder / "modes.toml"
    file.write_text(
        'plugins = ["plugins"]\n[endpoints.small]\ntype = "scripted"\ncontext_size = 900\n'
        f'[agents.default]\nmodel = "small:{folder / "moding.toml"}"\n'
        '[[agents.default.context_providers]]\ntype = "history"\n'
        '[[agents.default.context_providers]]\ntype = "working:Working"\nsource_id = "working"\n'
    )
    return file
