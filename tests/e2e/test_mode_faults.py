"""Providers whose modes are at fault: no request fails after its effect, and what fails says which provider did."""

from pathlib import Path
from typing import Any, Final

import pytest

from tests.bench.host import FakeHost
from tests.bench.plugin_files import write_plugin

PLUGIN: Final = """
from pathlib import Path

from providers.api.errors import ProviderError
from providers.api.modes import Mode, Modes
from providers.api.provider import ContextProvider

NAMES = ["plan", "Plan", "execute"]


def fault():
    return (Path(__file__).parent / "fault").read_text()


class Moody(ContextProvider):
    def modes(self, state):
        match fault():
            case "raises":
                raise RuntimeError("a secret")
            case "nothing":
                return None
            case "no sequence":
                return Modes("plan", 7)
            case "no text":
                return Modes("plan", [Mode("plan"), Mode(7)])
            case "not sendable":
                return Modes("\\ud800", [Mode("\\ud800")])
            case "elsewhere":
                return Modes("gone", [Mode("plan")])
            case "writes":
                state["mode"] = "execute"
        return Modes(state.get("mode", "plan"), [Mode(name) for name in NAMES])

    def switch_mode(self, mode, state):
        match fault():
            case "cannot switch":
                raise ValueError("a secret")
            case "refuses":
                raise ProviderError("not before noon")
            case "leaves no JSON":
                state["mode"] = {1, 2}
            case _:
                state["mode"] = mode
"""
SILENT: Final = ("raises", "nothing", "no sequence", "no text", "not sendable", "elsewhere")
UNSWITCHED: Final = ("cannot switch", "leaves no JSON", "raises", "nothing")


class Moods:
    """A sidecar with the provider, and what is wrong with that now."""

    def __init__(self, host: FakeHost, folder: Path) -> None:
        self.host = host
        self._file = folder / "plugins" / "fault"

    def suffer(self, fault: str) -> None:
        self._file.write_text(fault)

    async def request(self, method: str, **params: Any) -> Any:
        return await self.host.request(method, {"sessionId": "s", **params})

    async def switch(self, mode: str) -> Any:
        return await self.request("updateSession", configOptions={"mode": mode})


@pytest.fixture
async def moods(start_host: Any, tmp_path: Path, store: str) -> Moods:
    write_plugin(tmp_path / "plugins", "plug_moody", PLUGIN)
    config = tmp_path / "moods.toml"
    config.write_text(
        'plugins = ["plugins"]\n[agents.default]\nmodel = "scripted:echo"\n'
        '[[agents.default.context_providers]]\ntype = "history"\n'
        '[[agents.default.context_providers]]\ntype = "plug_moody:Moody"\nsource_id = "moody"\n'
    )
    made = Moods(await start_host(store=store, args=("--config", str(config))), tmp_path)
    made.suffer("")
    return made


def mode_of(answer: Any) -> Any:
    return next((option["value"] for option in answer["configOptions"] if option["id"] == "mode"), None)


@pytest.mark.parametrize("fault", SILENT)
async def test_a_provider_that_cannot_tell_its_modes_fails_no_request(moods: Moods, fault: str) -> None:
    moods.suffer(fault)

    assert mode_of(await moods.request("createSession")) is None
    answer = await moods.request("updateSession", title="new", statePatch={"other": {"a": 1}})
    assert (mode_of(answer), answer["session"]["title"]) == (None, "new")
    run = await moods.request("run", input="hi")
    assert (run["status"], run["text"]) == ("completed", "hi")
    await moods.request("forkSession", newSessionId="f")
    await moods.request("closeSession")
    assert mode_of(await moods.request("resumeSession")) is None

    log = moods.host.stderr.decode()
    assert ("'moody'" in log, "a secret" in log) == (True, False)
    moods.suffer("")
    assert mode_of(await moods.request("resumeSession")) == "plan"


async def test_what_a_provider_writes_on_being_asked_counts_nowhere(moods: Moods) -> None:
    await moods.request("createSession")
    moods.suffer("writes")

    assert mode_of(await moods.request("updateSession", title="new")) == "execute"

    moods.suffer("")
    assert mode_of(await moods.request("updateSession", title="newer")) == "plan"


@pytest.mark.parametrize("fault", UNSWITCHED)
async def test_a_switch_that_fails_changes_nothing_and_names_the_provider(moods: Moods, fault: str) -> None:
    await moods.request("createSession")
    moods.suffer(fault)
    wanted = {"sessionId": "s", "title": "no", "configOptions": {"mode": "execute"}}

    refusals = [
        await moods.host.refusal("updateSession", wanted),
        await moods.host.refusal("createSession", {"sessionId": "n", "mode": "execute"}),
    ]

    assert [(each.kind, each.data["sourceId"]) for each in refusals] == [("providerFailed", "moody")] * 2
    assert not [each for each in refusals if "secret" in each.message]
    assert "a secret" not in moods.host.stderr.decode()
    moods.suffer("")
    state = await moods.request("getState")
    assert (state["session"]["revision"], "title" in state["session"], state["state"]) == (0, False, {})
    assert (await moods.host.refusal("getState", {"sessionId": "n"})).kind == "sessionNotFound"


async def test_a_provider_says_itself_why_it_does_not_switch(moods: Moods) -> None:
    await moods.request("createSession")
    moods.suffer("refuses")

    refused = await moods.host.refusal("updateSession", {"sessionId": "s", "configOptions": {"mode": "execute"}})

    assert (refused.kind, refused.data["errors"][0]["path"]) == ("invalidParams", "configOptions.mode")
    assert "not before noon" in refused.message


@pytest.mark.parametrize("fault", UNSWITCHED)
async def test_a_retry_of_what_was_created_needs_no_mode(moods: Moods, fault: str) -> None:
    first = await moods.request("createSession", mode="execute")
    moods.suffer(fault)

    again = await moods.request("createSession", mode="execute")

    assert again["session"] == first["session"]
    moods.suffer("")
    assert mode_of(await moods.request("resumeSession")) == "execute"
    moods.suffer(fault)
    other = await moods.host.refusal("createSession", {"sessionId": "s", "mode": "plan"})
    assert other.kind == "idempotencyConflict"


async def test_of_modes_that_differ_in_case_the_one_that_is_named_counts(moods: Moods) -> None:
    assert mode_of(await moods.request("createSession", mode="Plan")) == "Plan"
    assert [mode_of(await moods.switch(name)) for name in ("plan", "EXECUTE", "PLAN")] == ["plan", "execute", "plan"]


async def test_a_mode_goes_along_with_forks_and_exports(moods: Moods) -> None:
    await moods.request("createSession", mode="execute")

    await moods.request("forkSession", newSessionId="f")
    fork = await moods.host.request("resumeSession", {"sessionId": "f"})
    assert mode_of(fork) == "execute"
    document = (await moods.request("exportSession"))["document"]
    await moods.request("deleteSession")
    imported = await moods.host.request("importSession", {"document": document})

    assert imported["session"]["sessionId"] == "s"
    assert mode_of(await moods.request("resumeSession")) == "execute"


@pytest.mark.parametrize("written", [{"a": 1}, 7, ["plan"], "chaos", True])
async def test_a_mode_that_a_patch_has_made_nonsense_of_is_not_shown_and_can_be_switched(
    moods: Moods, written: Any
) -> None:
    await moods.request("createSession", mode="execute")

    answer = await moods.request("updateSession", statePatch={"moody": {"mode": written}})

    assert mode_of(answer) is None
    assert (await moods.request("run", input="hi"))["status"] == "completed"
    assert mode_of(await moods.switch("plan")) == "plan"


async def test_naming_a_mode_does_not_hide_a_state_that_is_refused(moods: Moods) -> None:
    wrong = {"sessionId": "s", "mode": "plan", "state": {"moody": 7}}
    assert (await moods.host.refusal("createSession", wrong)).kind == "configInvalid"
