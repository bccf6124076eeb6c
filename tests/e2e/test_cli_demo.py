"""`agent-sidecar demo`: what it shows, and that it notices when something else is learnt."""

from pathlib import Path

import pytest

from sidecar.models import embedded_files
from tests.e2e.cli_process import Cli

SCRIPT = """
[[reply]]
when = "my name is (?P<name>.+)"
when_fields = ["name"]
data = { name = "{name}" }

[[reply]]
when = "I am 20"
when_fields = ["age"]
data = { age = 20 }

[[reply]]
text = "What is your name?"

[[reply]]
text = "And how old are you?"

[[reply]]
text = "Thank you."
"""


@pytest.fixture
def cli(tmp_path: Path) -> Cli:
    return Cli(tmp_path)


def _learnt(out: str) -> list[str]:
    return [line.strip() for line in out.splitlines() if line.startswith("  learnt: ")]


LEARNT = [
    "learnt: nothing",
    "learnt: name = 'Ruaidhrí'",
    "learnt: name = 'Ruaidhrí', age = 20",
    "learnt: name = 'Ruaidhrí', age = 20",
]


async def test_the_demo_learns_a_name_and_an_age_and_survives_a_kill(cli: Cli) -> None:
    outcome = await cli("demo", "--model", cli.script(SCRIPT))
    assert (outcome.code, outcome.err) == (0, "")
    assert _learnt(outcome.out) == LEARNT
    assert "user_info beforeRun: put in 2 instructions" in outcome.out
    assert "the process ended with -9" in outcome.out
    assert "Nothing was lost: 6 messages" in outcome.out


async def test_the_demo_fails_when_something_else_is_learnt(cli: Cli) -> None:
    outcome = await cli("demo", "--model", cli.script(SCRIPT.replace('"{name}"', '"name"')))
    assert outcome.code == 1
    assert outcome.err == (
        "agent-sidecar: after 'My name is Ruaidhrí' the memory should hold name = 'Ruaidhrí', "
        "but it holds name = 'name'\n"
    )


async def test_a_store_that_forgets_fails_the_demo(cli: Cli) -> None:
    outcome = await cli("demo", "--model", cli.script(SCRIPT), "--store", "memory")
    assert outcome.code == 1
    assert "no session" in outcome.err


async def test_a_model_that_is_missing_says_what_to_type(cli: Cli) -> None:
    outcome = await cli("demo", "--model", "embedded:no-such-file.gguf")
    assert outcome.code == 1
    assert "agent-sidecar setup embedded" in outcome.err


@pytest.mark.embedded
@pytest.mark.skipif(not embedded_files.is_installed(), reason="the embedded model is not installed")
async def test_the_demo_keeps_its_promise_with_the_embedded_model(cli: Cli) -> None:
    outcome = await cli("demo")
    assert (outcome.code, outcome.err) == (0, "")
    assert _learnt(outcome.out) == LEARNT
    assert "not enough to\nconverse" in outcome.out
