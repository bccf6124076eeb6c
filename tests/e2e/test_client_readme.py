"""The examples in the client's README do what it says."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

README = (Path(__file__).parents[2] / "clients" / "python" / "README.md").read_text(encoding="utf-8")

EXAMPLES = re.findall(r"^```python\n(.*?)^```\n+It prints `([^`]*)`", README, re.MULTILINE | re.DOTALL)


def test_there_is_a_promise_for_every_example() -> None:
    assert len(EXAMPLES) == README.count("```python\n") == 2


@pytest.mark.parametrize(("script", "promised"), EXAMPLES)
def test_the_example_prints_what_is_promised(tmp_path: Path, script: str, promised: str) -> None:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("OPENAI_")}

    ran = subprocess.run(
        [sys.executable, "-c", script],
        cwd=tmp_path,
        env={**kept, "HOME": str(tmp_path), "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )

    assert ran.stdout == promised + "\n"
