"""The README's examples do what it says: its scripts are run, its bytes are sent, its transcript is compared."""

import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.bench.embedded import needs_embedded

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def block(language: str, index: int = 0) -> str:
    """The n-th code block of a language."""
    return re.findall(rf"^```{language}\n(.*?)^```", README, flags=re.MULTILINE | re.DOTALL)[index]


def environment(tmp_path: Path) -> dict[str, str]:
    """A newcomer's environment: the installed command on the path, no key, a data folder of its own."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith("OPENAI_")}
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return {**kept, "PATH": path, "XDG_DATA_HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path)}


def test_the_shell_script_streams_the_answer(tmp_path: Path) -> None:
    script = block("bash")
    assert len(script.splitlines()) < 10

    ran = subprocess.run(
        ["bash", "-c", script], env=environment(tmp_path), capture_output=True, text=True, timeout=60, check=True
    )

    assert ran.stdout == "hello\n"


def test_the_python_script_prints_the_events_and_the_answer(tmp_path: Path) -> None:
    ran = subprocess.run(
        [sys.executable, "-c", block("python")],
        env=environment(tmp_path),
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )

    lines = ran.stdout.split()
    assert lines[0] == "run.started"
    assert lines[-2:] == ["run.completed", "hello"]


def test_the_messages_are_right_to_the_byte(tmp_path: Path) -> None:
    text = next(
        part
        for part in re.findall(r"^```text\n(.*?)^```", README, re.MULTILINE | re.DOTALL)
        if "Content-Length" in part
    )
    sent = "".join(line.replace("\\r\\n", "\r\n") for line in text.splitlines()).encode()

    ran = subprocess.run(
        [str(Path(sys.executable).with_name("agent-sidecar")), "serve", "--store", "memory"],
        input=sent,
        env=environment(tmp_path),
        capture_output=True,
        timeout=60,
        check=True,
    )

    answers = re.findall(rb'"id":(\d)', ran.stdout)
    assert sorted(set(answers)) == [b"1", b"2", b"3", b"4"]
    assert b'"error"' not in ran.stdout


def test_the_example_configuration_is_accepted(tmp_path: Path) -> None:
    config = tmp_path / "sidecar.toml"
    config.write_text(block("toml"), encoding="utf-8")
    assert tomllib.loads(block("toml"))

    ran = subprocess.run(
        [str(Path(sys.executable).with_name("agent-sidecar")), "config", "check", "--config", str(config)],
        env=environment(tmp_path),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert ran.returncode == 0, ran.stderr


async def test_the_example_agent_is_accepted(host) -> None:
    session = await host.create_session(**json.loads(block("json")))

    assert [provider["sourceId"] for provider in session.opened["providers"]] == ["in_memory", "user_info"]


@needs_embedded
@pytest.mark.embedded
def test_the_transcript_is_what_the_demo_prints(tmp_path: Path) -> None:
    expected = next(
        part for part in re.findall(r"^```text\n(.*?)^```", README, re.MULTILINE | re.DOTALL) if "You:" in part
    )

    ran = subprocess.run(
        [str(Path(sys.executable).with_name("agent-sidecar")), "demo"],
        env=environment(tmp_path),
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )

    assert ran.returncode == 0, ran.stdout + ran.stderr
    printed = iter([_plain(line) for line in ran.stdout.splitlines()])
    for line in expected.splitlines():
        assert any(_plain(line) == found for found in printed), f"the demo does not print {line!r} (any more, or here)"


def _plain(line: str) -> str:
    """A line without the numbers of the machine: event numbers, times."""
    return re.sub(r"\s+", " ", re.sub(r"\d+ ms|←\s+\d+", "#", line)).strip()
