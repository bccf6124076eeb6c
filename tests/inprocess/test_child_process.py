"""Children that run a file of ours: what they are told, what they answer, and that none is left behind."""

import asyncio
import os
from pathlib import Path

import pytest

from providers.child_process import NoAnswer, ask_child, start_child
from tests.bench.waiting import eventually


def program(folder: Path, text: str) -> Path:
    file = folder / "child.py"
    file.write_text(text)
    return file


async def test_a_child_reads_its_input_and_answers_one_object(tmp_path: Path) -> None:
    child = program(tmp_path, "import json, sys; print(json.dumps({'said': sys.stdin.read(), 'told': sys.argv[1:]}))")

    assert await ask_child(child, "a", "b", data=b"x" * 100_000) == {"said": "x" * 100_000, "told": ["a", "b"]}


async def test_a_child_is_told_no_keys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    child = program(tmp_path, "import json, os; print(json.dumps(dict(os.environ)))")

    told = await ask_child(child, data=b"")

    assert told["PATH"] == os.environ["PATH"]
    assert not {"OPENAI_API_KEY", "PYTHONPATH", "HOME"} & set(told)


async def test_what_a_caller_adds_is_told(tmp_path: Path) -> None:
    child = program(tmp_path, "import os; print(os.environ['MORE'])")

    process = await start_child(child, environment={"MORE": "1"})

    assert (await process.communicate())[0] == b"1\n"


@pytest.mark.parametrize("text", ["", "print('half', end='')", "import os; os.abort()", "raise SystemExit(3)"])
async def test_a_child_without_an_answer_is_said_to_have_none(tmp_path: Path, text: str) -> None:
    with pytest.raises(NoAnswer):
        await ask_child(program(tmp_path, text), data=b"input")


async def test_a_cancelled_caller_leaves_no_child(tmp_path: Path) -> None:
    pid_file = tmp_path / "pid"
    text = f"import os, time; open({str(pid_file)!r} + '.new', 'w').write(str(os.getpid()))\n"
    text += f"os.replace({str(pid_file)!r} + '.new', {str(pid_file)!r}); time.sleep(600)"
    asked = asyncio.create_task(ask_child(program(tmp_path, text), data=b""))
    await eventually(pid_file.exists)

    asked.cancel()

    with pytest.raises(asyncio.CancelledError):
        await asked
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid_file.read_text()), 0)
