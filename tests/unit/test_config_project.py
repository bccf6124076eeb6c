"""A project's file is data from a workspace that may be hostile: where it is looked for, and what of it counts."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from sidecar.config.files import user_config_file
from sidecar.config.load import Loaded, load
from sidecar.config.project import distrust_folder, find_project, is_fresh, read_project, trust_project
from sidecar.errors import CapabilityRequired, ConfigInvalid

EVERYTHING = """
default_agent = "coder"
default_model = "scripted:echo"
[endpoints.local]
base_url = "http://evil.example/v1"
[limits]
max_turns = 3
[agents.coder]
description = "d"
instructions_file = "coder.md"
model = "scripted:echo"
[agents.helper]
description = "Helps"
instructions = "Help."
options = { temperature = 0.5 }
model = "scripted:echo"
"""

Write = Callable[[str], Path]


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home / "config"))
    return home


@pytest.fixture
def repository(home: Path) -> Path:
    root = home / "repository"
    (root / ".git").mkdir(parents=True)
    (root / "a" / "b").mkdir(parents=True)
    return root


@pytest.fixture
def project(repository: Path) -> Write:
    def write(text: str) -> Path:
        (repository / "sidecar.toml").write_text(text)
        (repository / "coder.md").write_text("Code.")
        return repository / "sidecar.toml"

    return write


def loaded(folder: Path, config_file: Path | None = None) -> Loaded:
    return load(config_file=config_file, environ={}, store=None, log_level=None, folder=folder)


def users(text: str) -> None:
    user_config_file().parent.mkdir(parents=True, exist_ok=True)
    user_config_file().write_text(text)


# ---- where it is looked for ---------------------------------------------------------------------------------------


def test_it_is_looked_for_up_to_the_root_of_the_repository_and_the_nearest_counts(
    project: Write, repository: Path
) -> None:
    root = project("")
    assert find_project(repository / "a" / "b") == root

    nearer = repository / "a" / "sidecar.toml"
    nearer.write_text("")
    assert find_project(repository / "a" / "b") == nearer
    assert find_project(repository) == root


def test_it_is_never_looked_for_above_the_repository(repository: Path) -> None:
    (repository.parent / "sidecar.toml").write_text("")

    assert find_project(repository / "a") is None


def test_outside_of_a_repository_only_the_folder_itself_counts(tmp_path: Path) -> None:
    (tmp_path / "plain" / "below").mkdir(parents=True)
    file = tmp_path / "plain" / "sidecar.toml"
    file.write_text("")

    assert find_project(tmp_path / "plain") == file
    assert find_project(tmp_path / "plain" / "below") is None


def test_it_is_never_looked_for_above_home(home: Path, tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / "sidecar.toml").write_text("")
    (home / "work").mkdir()

    assert find_project(home / "work") is None


def test_a_folder_that_is_not_there_has_none(tmp_path: Path) -> None:
    assert find_project(tmp_path / "gone") is None
    assert find_project(tmp_path / "nul\0") is None


def test_the_users_own_file_and_that_of_the_command_line_are_no_projects(home: Path, repository: Path) -> None:
    users("default_model = 'scripted:echo'")
    own = repository / "sidecar.toml"
    own.write_text("default_model = 'scripted:echo'")

    assert find_project(user_config_file().parent) is None
    assert find_project(repository, beside=own) is None


def test_a_link_out_of_the_project_is_not_followed(repository: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere.toml").write_text("[agents.leak]\ninstructions = 'secret'")
    (repository / "sidecar.toml").symlink_to(tmp_path / "elsewhere.toml")

    result = loaded(repository)

    assert "leak" not in result.config.agents
    assert "a link that leads out of the project is not followed" in result.warnings[0]
    with pytest.raises(ConfigInvalid, match="leads out"):
        trust_project(repository / "sidecar.toml")


# ---- without trust ------------------------------------------------------------------------------------------------


def test_without_trust_it_adds_agents_and_everything_else_only_warns(project: Write, repository: Path) -> None:
    users("[agents.coder]\ninstructions = 'mine'")
    project(EVERYTHING)

    result = loaded(repository)

    assert result.config.default_agent == "default"
    assert result.config.default_model is None
    assert result.config.limits.max_turns == 40
    assert "local" not in result.config.endpoints
    assert result.config.agents["coder"].instructions == "mine"
    helper = result.config.agents["helper"]
    assert (helper.description, helper.instructions, helper.model) == ("Helps", "Help.", None)
    assert helper.options is not None
    assert helper.options.temperature == 0.5
    (warning,) = result.warnings
    for ignored in ("default_agent", "default_model", "endpoints", "limits", "agents.coder", "agents.helper.model"):
        assert ignored in warning
    assert f"agent-sidecar trust {repository}" in warning


def test_without_trust_it_changes_no_agent_of_the_command_lines_file(project: Write, repository: Path) -> None:
    project("[agents.mine]\ninstructions = 'evil'\n[agents.default]\ninstructions = 'evil'")
    own = repository.parent / "own.toml"
    own.write_text("[agents.mine]\ndescription = 'd'")

    result = loaded(repository, own)

    assert result.config.agents["mine"].instructions is None
    assert "default" not in result.config.agents


@pytest.mark.parametrize(
    "text",
    [
        "[agents.a]\ninstructions = 3",
        "[agents.a]\noptions = { temprature = 1 }",
        "[agents.a]\noptions = { model = 'evil:x' }",
        "this is no TOML",
        "a." * 300 + "b = 1",
        "\udcff",
    ],
)
def test_without_trust_a_broken_file_is_a_warning(text: str, project: Write, repository: Path) -> None:
    file = project("")
    file.write_bytes(text.encode("utf-8", "surrogateescape"))

    result = loaded(repository)

    assert result.config == loaded(repository.parent).config
    (warning,) = result.warnings
    assert str(file) in warning
    assert "nothing of this project's file counts" in warning
    assert "\n" not in warning


def test_a_fifo_in_its_place_is_never_waited_for(repository: Path) -> None:
    os.mkfifo(repository / "sidecar.toml")

    assert "no regular file" in loaded(repository).warnings[0]


def test_a_file_that_says_nothing_more_needs_no_trust(project: Write, repository: Path) -> None:
    project("[agents.helper]\ninstructions = 'Help.'")

    assert loaded(repository).warnings == ()


# ---- with trust ---------------------------------------------------------------------------------------------------


def test_with_trust_everything_counts_over_the_users_file_and_under_that_of_the_command_line(
    project: Write, repository: Path
) -> None:
    users("default_model = 'scripted:users'\n[limits]\nmax_turns = 9\n[agents.coder]\ndescription = 'mine'")
    own = repository.parent / "own.toml"
    own.write_text("default_model = 'scripted:own'")
    file = project(EVERYTHING)
    trust_project(file)

    result = loaded(repository / "a", own)

    assert result.warnings == ()
    assert (result.config.default_agent, result.config.default_model) == ("coder", "scripted:own")
    assert (result.config.limits.max_turns, result.origin(("limits", "max_turns"))) == (3, str(file))
    assert (result.config.agents["coder"].description, result.config.agents["coder"].instructions) == ("d", "Code.")
    assert result.files == (user_config_file(), file, repository / "coder.md", own)


@pytest.mark.parametrize("changed", ["sidecar.toml", "coder.md", "plugins/deep/p.py", "plugins/new.py"])
def test_a_change_of_the_file_or_of_what_it_brings_in_asks_again(changed: str, repository: Path) -> None:
    deep = repository / "plugins" / "deep"
    deep.mkdir(parents=True)
    (deep / "p.py").write_text("x = 1")
    (repository / "coder.md").write_text("Code.")
    file = repository / "sidecar.toml"
    file.write_text('plugins = ["plugins"]\n[agents.coder]\ninstructions_file = "coder.md"')
    trust_project(file)
    assert loaded(repository).warnings == ()

    with (repository / changed).open("a") as stream:
        stream.write("# more\n")

    result = loaded(repository)
    assert result.config.plugins == ()
    assert result.config.agents["coder"].instructions is None
    assert f"{repository / changed} changed since it was trusted" in result.warnings[0]
    trust_project(file)
    assert loaded(repository).config.plugins == (str(repository / "plugins"),)


def test_bytecode_beside_a_plug_in_changes_nothing(repository: Path) -> None:
    (repository / "plugins" / "__pycache__").mkdir(parents=True)
    file = repository / "sidecar.toml"
    file.write_text('plugins = ["plugins"]')
    trust_project(file)

    (repository / "plugins" / "__pycache__" / "p.cpython-311.pyc").write_bytes(b"x")

    assert loaded(repository).warnings == ()


def test_what_a_link_in_a_plug_in_folder_leads_to_is_looked_at_too(repository: Path, tmp_path: Path) -> None:
    (tmp_path / "linked").mkdir()
    (tmp_path / "linked" / "p.py").write_text("x = 1")
    (repository / "plugins").mkdir()
    (repository / "plugins" / "link").symlink_to(tmp_path / "linked")
    (repository / "plugins" / "loop").symlink_to(repository / "plugins")
    file = repository / "sidecar.toml"
    file.write_text('plugins = ["plugins"]')
    trust_project(file)
    assert loaded(repository).warnings == ()

    (tmp_path / "linked" / "p.py").write_text("x = 2")

    assert "changed since it was trusted" in loaded(repository).warnings[0]


def test_too_much_to_look_through_is_refused(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sidecar.config.brought_in.MAX_FILES", 3)
    (repository / "plugins").mkdir()
    for number in range(4):
        (repository / "plugins" / f"p{number}.py").write_text("")
    file = repository / "sidecar.toml"
    file.write_text('\nplugins = ["plugins"]')

    with pytest.raises(ConfigInvalid, match="name smaller ones") as refused:
        trust_project(file)

    assert refused.value.fields["line"] == 2


@pytest.mark.parametrize(
    ("text", "error"), [("[limits]\nmax_turn = 3", ConfigInvalid), ("[telemetry]\nenabled = true", CapabilityRequired)]
)
def test_with_trust_a_wrong_file_is_refused(
    text: str, error: type[Exception], project: Write, repository: Path
) -> None:
    file = project(text)
    trust_project(file)

    with pytest.raises(error, match=f"{file}:2"):
        loaded(repository)


def test_deny_rules_of_an_earlier_file_stay(project: Write, repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sidecar.config.unavailable.UNAVAILABLE", ())
    users("[agents.a.approvals]\nrules = [{ decision = 'deny', tool = 'rm' }]")
    trust_project(project("[agents.a.approvals]\nrules = [{ decision = 'allow', tool = '*' }]"))

    approvals = loaded(repository).config.agents["a"].approvals

    assert approvals is not None
    assert [(rule.decision, rule.tool) for rule in approvals.rules or ()] == [("deny", "rm"), ("allow", "*")]


def test_limits_of_the_connection_do_not_count_in_a_project(project: Write, repository: Path) -> None:
    trust_project(project("[limits]\nmax_message_bytes = 100_000"))

    assert "ignored limits.max_message_bytes" in loaded(repository).warnings[0]


def test_plug_in_folders_of_all_files_stay_known(project: Write, repository: Path) -> None:
    users('plugins = ["mine"]')
    trust_project(project('plugins = ["theirs", "/abs"]'))

    result = loaded(repository)

    assert result.config.plugins == (str(repository / "theirs"), "/abs")
    assert result.plugins == (user_config_file().parent / "mine", repository / "theirs", Path("/abs"))


# ---- reading again ------------------------------------------------------------------------------------------------


def test_what_was_read_is_fresh_until_the_file_its_trust_or_its_plug_ins_change(
    project: Write, repository: Path
) -> None:
    file = project('plugins = ["plugins"]')
    (repository / "plugins").mkdir()
    untrusted = read_project(file)
    assert (untrusted.trust, is_fresh(untrusted)) == ("untrusted", True)

    trust_project(file)
    assert not is_fresh(untrusted)
    trusted = read_project(file)
    assert (trusted.trust, is_fresh(trusted)) == ("trusted", True)

    (repository / "plugins" / "p.py").write_text("")
    assert not is_fresh(trusted)
    changed = read_project(file)
    assert (changed.trust, is_fresh(changed)) == ("changed", True)

    (repository / "plugins" / "p.py").unlink()
    assert not is_fresh(changed)
    distrust_folder(repository)
    assert not is_fresh(trusted)
    assert read_project(file).trust == "untrusted"
