"""The configuration of a folder is made once, and again only for a change; endpoints are shared and closed."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, cast

import pytest

from sidecar.agents.workspaces import Workspaces
from sidecar.config.files import user_config_file
from sidecar.config.load import Sources, read_sources
from sidecar.config.model import Config
from sidecar.config.project import trust_project
from sidecar.errors import ConfigInvalid
from sidecar.models.registry import Models


class FakeModels:
    def __init__(self, config: Config, plugins: Sequence[Path]) -> None:
        self.plugins = plugins
        self.config = config
        self.closed = False

    async def aclose(self) -> None:
        self.closed = True


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    return tmp_path


def read() -> Sources:
    return read_sources(config_file=None, environ={}, store=None, log_level=None)


def users(text: str) -> None:
    user_config_file().parent.mkdir(parents=True, exist_ok=True)
    user_config_file().write_text(text)


def make_workspaces(folder: str | None = None) -> Workspaces:
    return Workspaces(read, read(), cast("Callable[[Config, Sequence[Path]], Models]", FakeModels), folder=folder)


def project(home: Path, name: str, text: str, *, trusted: bool = True) -> str:
    folder = home / name
    folder.mkdir(exist_ok=True)
    (folder / "sidecar.toml").write_text(text)
    if trusted:
        trust_project(folder / "sidecar.toml")
    return str(folder)


async def test_a_folder_without_a_file_has_the_configuration_of_the_process(home: Path) -> None:
    workspaces = make_workspaces()

    assert await workspaces.of(str(home)) is workspaces.base
    assert await workspaces.of(str(home / "gone")) is workspaces.base
    assert await workspaces.of(None) is workspaces.base


async def test_a_project_is_read_again_only_when_it_changes(home: Path) -> None:
    workspaces = make_workspaces()
    folder = project(home, "p", "[agents.a]", trusted=False)

    first = await workspaces.of(folder)
    assert await workspaces.of(folder) is first

    project(home, "p", "[agents.a]\n[agents.b]", trusted=False)
    assert [info.name for info in (await workspaces.of(folder)).catalog.infos()] == ["default", "a", "b"]


async def test_a_warning_is_logged_when_the_file_is_read_and_not_for_each_session(
    home: Path, caplog: pytest.LogCaptureFixture
) -> None:
    workspaces = make_workspaces()
    folder = project(home, "p", "plugins = ['x']", trusted=False)

    for _ in range(3):
        await workspaces.of(folder)

    assert [record.levelname for record in caplog.records] == ["WARNING"]


async def test_projects_that_agree_on_endpoints_share_them(home: Path) -> None:
    workspaces = make_workspaces()
    one = await workspaces.of(project(home, "one", "[limits]\nmax_turns = 1"))
    two = await workspaces.of(project(home, "two", "default_model = 'scripted:x'"))

    assert one.models is workspaces.base.models
    assert two.models is not workspaces.base.models
    assert one.limits.max_turns == 1


async def test_projects_with_plug_ins_of_their_own_share_no_client_of_one(home: Path) -> None:
    users('[endpoints.mine]\ntype = "plug_x:Client"')
    workspaces = make_workspaces()
    for name in ("one", "two"):
        folder = home / name
        (folder / "plugins").mkdir(parents=True)
        (folder / ".git").mkdir()
        (folder / "sidecar.toml").write_text('plugins = ["plugins"]')
        trust_project(folder / "sidecar.toml")

    one, two = [(await workspaces.of(str(home / name))).models for name in ("one", "two")]

    assert one is not two
    assert cast("Any", one).plugins == (home / "one" / "plugins",)


async def test_a_reload_closes_the_endpoints_that_no_session_has(home: Path) -> None:
    users("default_model = 'scripted:one'")
    workspaces = make_workspaces()
    first: Any = workspaces.base.models
    users("default_model = 'scripted:two'")
    await workspaces.reload()

    await workspaces.close_unused([first])
    assert not first.closed
    await workspaces.close_unused([])
    assert first.closed

    last: Any = workspaces.base.models
    assert not last.closed
    await workspaces.aclose()
    assert last.closed


async def test_a_reload_that_fails_changes_nothing(home: Path) -> None:
    users("[agents.a]")
    workspaces = make_workspaces()
    folder = project(home, "p", "[agents.b]")
    before = await workspaces.of(folder)
    users("nonsense = 1")

    with pytest.raises(ConfigInvalid):
        await workspaces.reload()

    assert await workspaces.of(folder) is before


async def test_an_edit_of_the_users_file_reaches_no_project_before_a_reload(home: Path) -> None:
    users("[agents.a]")
    workspaces = make_workspaces()
    users("nonsense = 1")

    names = [info.name for info in (await workspaces.of(project(home, "p", "[agents.b]"))).catalog.infos()]

    assert names == ["default", "a", "b"]


async def test_only_the_project_that_the_process_starts_in_configures_the_process(home: Path) -> None:
    text = "[store]\nkeep_event_runs = 3\n[limits]\npage_max = 200"
    inside, outside = project(home, "in", text), project(home, "out", text)
    workspaces = make_workspaces(inside)

    assert workspaces.of_process().store.keep_event_runs == 3
    assert (await workspaces.of(None)).warnings == ()
    (warning,) = (await workspaces.of(outside)).warnings
    assert "ignored store, limits.page_max" in warning.message


@pytest.mark.parametrize("text", ["[store]\nkeep_event_runs = 3", "[store]\nkeep_event_runs = 0", "nonsense"])
async def test_a_project_that_is_wrong_or_untrusted_configures_no_process(home: Path, text: str) -> None:
    folder = project(home, "p", text, trusted="0" in text)
    workspaces = make_workspaces(folder)

    assert workspaces.of_process().store.keep_event_runs == 200
