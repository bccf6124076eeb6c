"""An embedder in a child process: batches, queries first, cancellation, crashes. The model is a script of the test."""

import asyncio
import json
import os
import struct
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
import uvloop

from providers.api.memory import EmbedderError
from sidecar.models.embedders.bundled import BundledModel
from sidecar.models.embedders.local import LocalEmbedder
from sidecar.models.embedders.process import EmbedderProcess
from tests.bench.waiting import eventually

Open = Callable[..., LocalEmbedder]
PATIENCE_S = 60.0
"""What a loaded machine may take."""


LETTERS = BundledModel(
    name="letters:v1",
    package="letters",
    distribution="letters",
    requirement="letters",
    max_text_bytes=20,
    max_batch=2,
)
CHILD = """
import json, os, pathlib, struct, sys, time
folder = pathlib.Path(__file__).parent
def note(line):
    with open(folder / "log", "a") as log:
        log.write(json.dumps(line) + "\\n")
note({"start": sorted(os.environ)})
for line in sys.stdin.buffer:
    batch = json.loads(line)
    texts = batch["texts"]
    note(texts)
    while "wait" in texts and not (folder / "go").exists():
        time.sleep(0.002)
    if "crash" in texts:
        os.abort()
    answer = {"count": len(texts) + texts.count("more"), "dimension": 2}
    if "fail" in texts:
        answer = {"error": "RuntimeError"}
    if "missing" in texts:
        answer = {"error": "import"}
    numbers = [number for text in texts for number in (float("nan") if text == "nan" else len(text), 2.0)]
    sys.stdout.buffer.write(json.dumps(answer).encode() + b"\\n")
    if "error" not in answer:
        sys.stdout.buffer.write(struct.pack(f"<{len(numbers)}f", *numbers))
    sys.stdout.flush()
"""
"""Counts letters, and does what some words tell it to."""


@dataclass
class Child:
    """What the child is told and notes."""

    folder: Path

    @property
    def log(self) -> list[Any]:
        path = self.folder / "log"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    @property
    def batches(self) -> list[list[str]]:
        return [line for line in self.log if isinstance(line, list)]

    @property
    def starts(self) -> int:
        return len(self.log) - len(self.batches)

    def go(self) -> None:
        """Let it go on with a batch that holds `wait`."""
        (self.folder / "go").touch()

    async def began(self, text: str) -> None:
        """Wait until it works at this text."""
        await eventually(lambda: any(text in batch for batch in self.batches))


@pytest.fixture
def child(tmp_path: Path) -> Child:
    (tmp_path / "child.py").write_text(CHILD)
    return Child(tmp_path)


@pytest_asyncio.fixture
async def open_local(child: Child) -> AsyncIterator[Open]:
    opened: list[LocalEmbedder] = []

    def make(query_timeout_s: float = PATIENCE_S, batch_timeout_s: float = PATIENCE_S) -> LocalEmbedder:
        process = EmbedderProcess("letters", script=child.folder / "child.py", timeout_s=batch_timeout_s)
        opened.append(LocalEmbedder(LETTERS, query_timeout_s=query_timeout_s, process=process))
        return opened[-1]

    yield make
    for embedder in opened:
        await embedder.aclose()


async def test_texts_are_embedded_in_order_in_bounded_batches_by_one_process(child: Child, open_local: Open) -> None:
    found = await open_local().embed(["a", "bbb", "cc", "x" * 45], role="passage")

    lengths = [round(2 * first / second) for first, second in (struct.unpack("<2f", vector) for vector in found)]
    assert lengths == [1, 3, 2, 20]
    assert child.batches == [["a", "bbb"], ["cc"], ["x" * 20]]
    assert child.starts == 1


async def test_nothing_is_started_before_the_first_text(child: Child, open_local: Open) -> None:
    embedder = open_local()

    assert list(await embedder.embed([], role="passage")) == []
    assert (embedder.name, child.log) == ("letters:v1", [])


async def test_the_process_is_told_no_key(child: Child, open_local: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-canary")

    await open_local().embed(["a"], role="query")

    assert "OMP_NUM_THREADS" in child.log[0]["start"]
    assert "OPENAI_API_KEY" not in child.log[0]["start"]


async def test_a_query_passes_the_passages_that_wait(child: Child, open_local: Open) -> None:
    """BR-05(a): the loop goes on meanwhile, and so does this test."""
    embedder = open_local()
    passages = [asyncio.create_task(embedder.embed([text], role="passage")) for text in ("wait", "p1", "p2")]
    await child.began("wait")
    query = asyncio.create_task(embedder.embed(["q"], role="query"))
    await asyncio.sleep(0)

    child.go()
    await asyncio.gather(query, *passages)

    assert child.batches == [["wait"], ["q"], ["p1"], ["p2"]]


async def test_who_is_cancelled_goes_at_once_and_what_did_not_begin_is_not_done(child: Child, open_local: Open) -> None:
    embedder = open_local()
    tasks = [asyncio.create_task(embedder.embed([text], role="passage")) for text in ("wait", "never", "kept")]
    await child.began("wait")

    for task in tasks[:2]:
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    child.go()

    assert await tasks[2]
    assert child.batches == [["wait"], ["kept"]]
    assert child.starts == 1


async def test_a_query_waits_only_so_long(child: Child, open_local: Open) -> None:
    embedder = open_local(query_timeout_s=0.05)

    with pytest.raises(EmbedderError, match=r"letters took longer than 0\.05 s"):
        await embedder.embed(["wait"], role="query")

    child.go()
    assert await embedder.embed(["p"], role="passage")


async def test_a_process_that_hangs_is_ended_and_the_next_text_works(child: Child, open_local: Open) -> None:
    embedder = open_local(batch_timeout_s=1.5)

    with pytest.raises(EmbedderError, match=r"took longer than 1\.5 s for 1 texts"):
        await embedder.embed(["wait"], role="passage")

    assert await embedder.embed(["p"], role="passage")
    assert child.starts == 2


@pytest.mark.skipif(os.name != "posix", reason="signals")
@pytest.mark.parametrize("factory", [asyncio.new_event_loop, uvloop.new_event_loop])
def test_a_process_that_crashes_is_one_error_and_the_next_text_works(
    child: Child, factory: Callable[[], asyncio.AbstractEventLoop]
) -> None:
    async def crash_and_go_on() -> None:
        process = EmbedderProcess("letters", script=child.folder / "child.py")
        embedder = LocalEmbedder(LETTERS, query_timeout_s=PATIENCE_S, process=process)
        with pytest.raises(EmbedderError, match="process of letters was ended by signal 6"):
            await embedder.embed(["crash"], role="passage")
        assert await embedder.embed(["fine"], role="passage")
        await embedder.aclose()
        assert process.pid is None

    with asyncio.Runner(loop_factory=factory) as runner:
        runner.run(crash_and_go_on())

    assert child.starts == 2


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("fail", r"letters failed \(RuntimeError\); .*agent-sidecar setup embeddings"),
        ("missing", r"letters cannot be imported; .*pip install 'agent-sidecar\[embeddings\]'"),
        ("nan", "no vector"),
        ("more", "process of letters"),
    ],
)
async def test_what_a_model_cannot_do_is_one_error_and_the_next_text_works(
    open_local: Open, text: str, says: str
) -> None:
    embedder = open_local()

    with pytest.raises(EmbedderError, match=says):
        await embedder.embed([text], role="passage")

    assert await embedder.embed(["fine"], role="passage")


async def test_blank_text_does_not_reach_the_model(child: Child, open_local: Open) -> None:
    """BR-21."""
    with pytest.raises(EmbedderError, match="blank"):
        await open_local().embed(["a", " \u200b"], role="passage")

    assert child.log == []


async def test_text_reaches_the_model_in_the_form_that_it_was_trained_on(child: Child, open_local: Open) -> None:
    await open_local().embed(["\u200b" * 99 + "ﬁne\n\n  words ", "㍿"], role="passage")

    assert child.batches == [["fine words"], ["株式会社"]]


async def test_closing_gives_up_what_waits_ends_the_process_and_takes_nothing_more(
    child: Child, open_local: Open
) -> None:
    embedder = open_local()
    calls = [asyncio.create_task(embedder.embed([text], role="passage")) for text in ("wait", "never")]
    await child.began("wait")

    await embedder.aclose()

    for call in (*calls, embedder.embed(["late"], role="query")):
        with pytest.raises(EmbedderError, match="stopping"):
            await call
    assert child.batches == [["wait"]]
    assert asyncio.all_tasks() == {asyncio.current_task()}
