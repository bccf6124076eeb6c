"""A process dies at a named point only where a test asked for it."""

import os
import signal
import subprocess
import sys

import pytest

PASSES = "from sidecar.crash_points import reached\nfor n in range(4): reached('a'); reached('b'); print(n, flush=True)"


@pytest.mark.parametrize(
    ("testing", "at", "code", "printed"),
    [
        ("1", "a:1", -signal.SIGKILL, []),
        ("1", "b:3", -signal.SIGKILL, ["0", "1"]),
        ("1", "c:1", 0, ["0", "1", "2", "3"]),
        ("1", "", 0, ["0", "1", "2", "3"]),
        ("0", "a:1", 0, ["0", "1", "2", "3"]),
    ],
)
def test_the_nth_pass_of_a_point_kills(testing: str, at: str, code: int, printed: list[str]) -> None:
    env = {**os.environ, "AGENT_SIDECAR_TESTING": testing, "AGENT_SIDECAR_CRASH_AT": at}
    ran = subprocess.run([sys.executable, "-c", PASSES], env=env, capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stdout.split()) == (code, printed)
