"""Rules that decide in a person's place: of the configuration, of providers, standing ones. And the plain editor."""

import stat
from pathlib import Path
from typing import Any

import pytest

from sidecar.agents.consent import FORBIDDEN_TEXT, REJECTED_TEXT
from tests.bench.fake_model import FakeModel
from tests.bench.gated import APPROVALS, TOOLS, Gated, says, select, tool
from tests.bench.host import LATER, FakeHost, HostSession, Refuses
from tests.bench.plugin_files import write_plugin
from tests.bench.wanted_calls import told, wants
from tests.bench.wire import Json

RAN, DENIED, ASKED = "ran", "denied", "asked"


@pytest.fixture
def gated(start_host: Any, model: FakeModel, store: str) -> Gated:
    return Gated(start_host, model, store)


class Caller:
    """Has the model call a tool, and says what became of the call."""

    def __init__(self, gated: Gated, model: FakeModel) -> None:
        self._gated = gated
        self._model = model

    async def __call__(self, session: HostSession, name: str, argument: Any, answer: str = "rejectOnce") -> str:
        """`ran` unasked, `denied` unasked, or `asked` (and answered as said)."""
        host = session.host
        before = len(host.asked("host/requestApproval"))
        host.serves["host/requestApproval"] = lambda params: select(answer)
        self._gated.ran.clear()
        wants(self._model, (name, {"a": argument}))
        says(self._model, "fine")
        await session.run("go")
        was_asked = len(host.asked("host/requestApproval")) > before
        ran = sum(self._gated.ran.values())
        (_, text) = told(self._model)[-1]
        assert ran == (text == f"{name} done")
        if was_asked:
            assert ran == answer.startswith("allow")
            assert ran or text == REJECTED_TEXT
            return ASKED
        assert ran or text == FORBIDDEN_TEXT
        return RAN if ran else DENIED


@pytest.fixture
def call(gated: Gated, model: FakeModel) -> Caller:
    return Caller(gated, model)


# ---- the configuration's ------------------------------------------------------------------------------------------

RULES = """
[agents.ruled.approvals]
rules = [
  { decision = "allow", tool = "del*", arguments = { a = "safe*" } },
  { decision = "allow", tool = "?end" , arguments = { a = 1 } },
  { decision = "allow", tool = "send", arguments = { a = "[1]" } },
  { decision = "ask", tool = "*", arguments = { a = "*ask*" } },
  { decision = "deny", tool = "*", arguments = { a = "*secret*" } },
  { decision = "deny", tool = "look", arguments = { b = "*" } },
]
"""


async def test_rules_of_a_configuration_decide_by_tool_and_arguments(
    gated: Gated, call: Caller, tmp_path: Path
) -> None:
    """Deny beats ask beats allow; an allow frees a tool that is always gated."""
    file = tmp_path / "sidecar.toml"
    file.write_text(RULES)
    host = await gated.start(args=("--config", str(file)))
    session = await host.create_session(agent="ruled", tools=TOOLS)

    assert await call(session, "delete", "safe") == RAN
    assert await call(session, "delete", "safe\nand sound") == RAN
    assert await call(session, "delete", "unsafe") == ASKED
    assert await call(session, "delete", "safe, but ask") == ASKED
    options = [option["optionId"] for option in host.asked("host/requestApproval")[-1]["params"]["options"]]
    assert options == ["allowOnce", "rejectOnce", "rejectAlways"], "what lasts would not count against the rule"
    assert await call(session, "delete", "safe secret") == DENIED
    assert await call(session, "delete", "ask the secret") == DENIED
    assert await call(session, "delete", {"deep": "secret"}) == DENIED
    assert await call(session, "send", 1) == RAN
    assert await call(session, "send", True) == ASKED
    assert await call(session, "send", "1") == ASKED
    assert await call(session, "send", "[1]") == RAN
    assert await call(session, "look", "x") == RAN, "a rule for an argument that is not there"
    assert await call(session, "look", "ask") == ASKED
    assert await call(session, "look", "ask", "allowOnce") == ASKED
    assert await call(session, "look", "secret") == DENIED


# ---- a provider's -------------------------------------------------------------------------------------------------

GUARD = """
import asyncio

from providers.api.provider import ContextProvider

class Guard(ContextProvider):
    async def before_run(self, *, context, **others):
        context.extend_approval_rules(self, [self.decide, self.later])

    def decide(self, call):
        match call.arguments["a"]:
            case "fail":
                raise ValueError("broken")
            case "odd":
                return "maybe"
            case "swap":
                call.arguments["a"] = "swapped"
                return "allow"
            case "allow" | "both":
                return "allow"
        return None

    async def later(self, call):
        await asyncio.sleep(0)
        if call.arguments["a"] == "hang":
            await asyncio.Event().wait()
        return "ask" if call.arguments["a"] == "both" else None
"""


async def test_rules_of_a_provider_decide_and_a_failing_one_denies(gated: Gated, call: Caller, tmp_path: Path) -> None:
    write_plugin(tmp_path / "plugins", "plug_guard", GUARD)
    file = tmp_path / "sidecar.toml"
    file.write_text(
        'plugins = ["plugins"]\n[limits]\nmiddleware_timeout_ms = 300\n'
        '[[agents.guarded.context_providers]]\ntype = "plug_guard:Guard"\nsource_id = "guard"\n'
    )
    host = await gated.start(args=("--config", str(file)))
    session = await host.create_session(agent="guarded", tools=TOOLS)

    assert await call(session, "delete", "allow") == RAN
    assert await call(session, "delete", "both") == ASKED
    assert await call(session, "delete", "else") == ASKED
    assert await call(session, "look", "else") == RAN
    assert await call(session, "look", "fail") == DENIED
    assert await call(session, "look", "odd") == DENIED
    assert await call(session, "look", "hang") == DENIED
    assert await call(session, "delete", "swap") == RAN
    assert gated.ran == {"delete{'a': 'swap'}": 1}
    host.kill()  # its log holds the traces that the failures are told by


# ---- standing ones ------------------------------------------------------------------------------------------------


async def test_always_is_for_this_tool_this_agent_and_this_folder_also_after_a_restart(
    gated: Gated, call: Caller, tmp_path: Path
) -> None:
    home = {"XDG_CONFIG_HOME": str(tmp_path / "config"), "HOME": str(tmp_path)}
    here, there = tmp_path / "here", tmp_path / "there"
    here.mkdir()
    there.mkdir()
    host = await gated.start(env=home)

    async def session(host: FakeHost, cwd: Path = here, tools: list[Json] = TOOLS, **agent: Any) -> HostSession:
        return await host.create_session(cwd=str(cwd), tools=tools, **({"agent": agent} if agent else {}))

    first = await session(host)
    assert await call(first, "delete", 1, "allowAlways") == ASKED
    assert await call(first, "delete", 2) == RAN
    assert await call(first, "send", 2) == ASKED, "another tool"
    assert await call(await session(host), "delete", 3) == RAN
    assert await call(await session(host, there), "delete", 3) == ASKED
    assert await call(await session(host, name="other"), "delete", 3) == ASKED
    changed = {**tool("delete", gated=True), "inputSchema": {"type": "object", "required": ["a"]}}
    assert await call(await session(host, tools=[changed]), "delete", 3) == ASKED
    assert await call(first, "send", 5, "allowAlwaysExactly") == ASKED
    host.kill()
    await host.wait()

    host = await gated.start(env=home)
    later = await session(host)
    assert await call(later, "delete", 4) == RAN
    assert await call(later, "send", 5) == RAN
    assert await call(later, "send", 6) == ASKED
    file = tmp_path / "config" / "agent-sidecar" / "approvals.json"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    rules = (await host.request("listApprovalRules"))["items"]
    assert [(rule["tool"], rule["decision"], rule.get("arguments"), rule["scope"]) for rule in rules] == [
        ("delete", "allow", None, "always"),
        ("send", "allow", {"a": 5}, "always"),
    ]
    await host.request("revokeApprovalRule", {"ruleId": rules[0]["ruleId"]})
    assert await call(later, "delete", 4) == ASKED
    file.write_text("{")
    assert await call(later, "send", 5) == ASKED, "a damaged file holds no rules"


async def test_never_again_beats_every_allowance_until_it_is_revoked(
    gated: Gated, call: Caller, tmp_path: Path
) -> None:
    host = await gated.start(env={"XDG_CONFIG_HOME": str(tmp_path / "config"), "HOME": str(tmp_path)})
    rules = {"approvals": {"rules": [{"decision": "allow", "tool": "delete", "arguments": {"a": "free"}}]}}
    first = await host.create_session(tools=TOOLS, agent=rules)
    second = await host.create_session(tools=TOOLS, agent=rules)
    assert await call(second, "delete", 1, "allowSession") == ASKED
    assert await call(first, "delete", 1, "rejectAlways") == ASKED
    assert await call(first, "delete", 2) == DENIED
    assert await call(first, "delete", "free") == DENIED
    assert await call(second, "delete", 1) == DENIED
    listed = (await host.request("listApprovalRules", {"sessionId": second.id}))["items"]
    assert [(rule["decision"], rule["scope"]) for rule in listed] == [("allow", "session"), ("deny", "always")]
    await host.request("revokeApprovalRule", {"ruleId": listed[1]["ruleId"]})
    assert await call(second, "delete", 1) == RAN


async def test_a_rule_of_a_session_comes_back_with_it_and_counts_for_no_other(gated: Gated, call: Caller) -> None:
    session = await gated.session()
    assert await call(session, "delete", 1, "allowSession") == ASKED
    other = await session.host.create_session(tools=TOOLS)
    assert await call(other, "delete", 1) == ASKED
    session = await gated.again(session)
    assert await call(session, "delete", 2) == RAN


# ---- a plain editor -----------------------------------------------------------------------------------------------

EDITOR: Json = {"capabilities": {"window": {"showMessage": {"messageActionItem": {}}}}}
PRESSED: list[tuple[Any, bool]] = [
    ({"title": "Allow once"}, True),
    ({"title": "Reject"}, False),
    (None, False),
    ({"title": "allow once"}, False),
    ({"title": "Delete everything"}, False),
    ({}, False),
    ("Allow once", False),
    (Refuses(-32601, "no"), False),
]


async def test_a_plain_editor_is_asked_by_a_message_with_buttons(gated: Gated, model: FakeModel) -> None:
    host = await gated.start(EDITOR, framing="header")
    session = await host.create_session(tools=TOOLS)
    for number, (pressed, allows) in enumerate(PRESSED):
        gated.ran.clear()
        host.serves["window/showMessageRequest"] = lambda params, pressed=pressed: pressed
        wants(model, ("delete", {"a": number}))
        says(model, "fine")

        assert (await session.run("go"))["text"] == "fine"

        assert gated.ran == ({f"delete{{'a': {number}}}": 1} if allows else {})
        shown = host.asked("window/showMessageRequest")[-1]["params"]
        assert f'{{"a":{number}}}' in shown["message"]
        assert {"Allow once", "Reject"} <= {action["title"] for action in shown["actions"]}
    assert host.asked("host/requestApproval") == []


async def test_a_host_that_knows_approvals_is_not_asked_by_messages(gated: Gated, call: Caller) -> None:
    host = await gated.start({**APPROVALS, **EDITOR})
    host.serves["window/showMessageRequest"] = lambda params: LATER
    assert await call(await host.create_session(tools=TOOLS), "delete", 1, "allowOnce") == ASKED
    assert host.asked("window/showMessageRequest") == []
