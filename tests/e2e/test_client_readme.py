"""The example in the client's README does what it says."""

import os
import re
import subprocess
import sys
from pathlib import Path

README = (Path(__file__).parents[2] / "clients" / "python" / "README.md").read_text(encoding="utf-8")


def test_the_example_prints_what_is_promised(tmp_path: Path) -> None:
    found = re.search(r"^```python\n(.*?)^```\n+It prints `([^`]*)`", README, re.MULTILINE | re.DOTALL)
    assert found
    script, promised = found.groups()
    kept = {name: value for name, value in os.environ.items() if not name.startswith("OPENAI_")}

    ran = subprocess.run(
        [sys.executable, "-c", script],
        env={**kept, "HOME": str(tmp_path), "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )

    assert ran.stdout == promised + "\n"
