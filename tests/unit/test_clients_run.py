"""README's table of clients: it names those that the suite runs, and the run can write it."""

import pytest

from tests.bench.clients_run import CLIENTS, README, in_readme, note, noted, written


def test_the_readme_names_every_client_that_the_suite_runs_with_a_version() -> None:
    shown = in_readme(README.read_text(encoding="utf-8"))

    assert {name: speaks for name, (_, speaks) in shown.items()} == CLIENTS
    assert [name for name, (version, _) in shown.items() if not version[0].isdigit()] == []


def test_the_run_writes_what_its_tests_have_noted_and_nothing_else() -> None:
    recorded: list[tuple[str, object]] = [("other", 1)]
    note(lambda name, value: recorded.append((name, value)), "Vim", " 9.0 ")
    before = README.read_text(encoding="utf-8")

    after = written(before, noted(recorded))

    assert in_readme(after)["Vim"][0] == "9.0"
    assert in_readme(after)["Neovim"][0] == "not run"
    assert written(after, {name: version for name, (version, _) in in_readme(before).items()}) == before


@pytest.mark.parametrize(("name", "version"), [("Ed", "1"), ("Vim", " ")])
def test_a_client_without_a_row_or_a_version_is_not_noted(name: str, version: str) -> None:
    with pytest.raises(ValueError, match="give CLIENTS a row"):
        note(lambda name, value: None, name, version)
