"""The embeddings API of an OpenAI-compatible endpoint. It keeps nothing, and passes on nothing that the endpoint says.

A search waits for it, so its limits are short. Passages go one batch at a time, and do not crowd out the queries.
"""

import asyncio
from collections.abc import Sequence
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from protocol.errors import KINDS
from providers.api.memory import EmbedderError, Vector
from sidecar.errors import ModelTimeout, ModelUnavailable, SidecarError
from sidecar.models.embedders.answer import vectors_of
from sidecar.models.embedders.cache import Role
from sidecar.models.embedders.texts import batches, prepared
from sidecar.models.embedders.vectors import dimension

from .openai_endpoint import OpenAIEndpoint
from .openai_errors import RETRIED_STATUSES, error_of_connection, error_of_status
from .retry import AttemptFailed, RetryPolicy

if TYPE_CHECKING:
    from openai import APIStatusError, AsyncAPIResponse

MAX_TEXT_BYTES: Final = 8_000
"""No token is shorter than a byte, and the models take 8,191 of them."""

MAX_BATCH_TEXTS: Final = 64
MAX_BATCH_BYTES: Final = 32_000
"""What a server on an ordinary processor can do within the limit of a batch."""

MAX_ANSWER_BYTES: Final = 32 * 1024 * 1024
PASSAGE_TIMEOUT_S: Final = 60.0


class OpenAIEmbedder:
    """One model of one endpoint."""

    def __init__(
        self,
        endpoint: OpenAIEndpoint,
        model: str,
        *,
        query_timeout_s: float,
        passage_timeout_s: float = PASSAGE_TIMEOUT_S,
        retries: RetryPolicy | None = None,
    ) -> None:
        """Nothing is opened yet.

        Args:
            endpoint: where the model is.
            model: its name there.
            query_timeout_s: the longest that a batch of queries may take, retries included.
            passage_timeout_s: the same for passages.
            retries: how often to try again; by default as the endpoint is configured, with short waits.
        """
        self._endpoint = endpoint
        self._model = model
        self._limits: dict[Role, float] = {"query": query_timeout_s, "passage": passage_timeout_s}
        self._retries = retries or RetryPolicy(endpoint.config.max_retries, first_wait=0.25, longest_wait=4.0)
        self._passages = asyncio.Lock()
        self._dimension: int | None = None

    @property
    def name(self) -> str:
        """Names the model and its host, whatever the endpoint is called here."""
        host = urlsplit(self._endpoint.url).netloc.rpartition("@")[2]
        return f"openai:{self._model}@{host}"

    async def embed(self, texts: Sequence[str], *, role: Role) -> Sequence[Vector]:
        """One vector a text, in order.

        Raises:
            EmbedderError: the endpoint did not give them within the limit, or what it gave is of another dimension than
                before; or a text is blank.
        """
        vectors: list[Vector] = []
        for batch in batches(prepared(texts, MAX_TEXT_BYTES), MAX_BATCH_TEXTS, MAX_BATCH_BYTES):
            async with self._passages if role == "passage" else nullcontext():
                vectors += await self._batch(batch, self._limits[role])
        return vectors

    async def _batch(self, texts: list[str], limit_s: float) -> list[Vector]:
        deadline = asyncio.get_running_loop().time() + limit_s
        try:
            async with asyncio.timeout_at(deadline):
                vectors = await self._with_retries(texts, deadline)
        except SidecarError as error:
            raise EmbedderError(error.message) from None
        except TimeoutError:
            raise EmbedderError(f"{self._where} did not embed {len(texts)} texts within {limit_s:g} s") from None
        self._check_dimension(vectors)
        return vectors

    async def _with_retries(self, texts: list[str], deadline: float) -> list[Vector]:
        retry = 0
        while True:
            retry += 1
            try:
                return await self._attempt(texts)
            except AttemptFailed as failure:
                error = failure.error
            wait = self._retries.wait(retry, error.fields.get("retry_after_ms"))
            if wait is None or asyncio.get_running_loop().time() + wait >= deadline:
                raise error
            await asyncio.sleep(wait)

    async def _attempt(self, texts: list[str]) -> list[Vector]:
        client = await self._endpoint.client()
        headers = await self._endpoint.headers()
        import httpx2
        from openai import APIConnectionError, APIStatusError, APITimeoutError

        api = await asyncio.to_thread(lambda: client.embeddings.with_streaming_response)  # it imports a good deal
        try:
            async with api.create(
                input=texts, model=self._model, encoding_format="float", extra_headers=headers
            ) as response:
                answer = await self._body(response)
        except APIStatusError as error:
            raise self._refused(error) from None
        except APITimeoutError:
            limit = self._endpoint.config.connect_timeout_ms
            what = f"{self._where} was not reached within {limit} ms (connect_timeout_ms)"
            raise AttemptFailed(ModelTimeout(what)) from None
        except APIConnectionError as error:
            raise AttemptFailed(error_of_connection(error, self._endpoint.name, self._endpoint.address)) from None
        except httpx2.HTTPError:
            what = f"{self._where}: the connection broke in the middle of the answer"
            raise AttemptFailed(ModelUnavailable(what)) from None
        try:
            return await asyncio.to_thread(vectors_of, answer, len(texts))
        except ValueError as error:
            raise EmbedderError(f"{self._where} did not answer with vectors: {error}") from None

    async def _body(self, response: "AsyncAPIResponse[Any]") -> bytes:
        answer = bytearray()
        async for piece in response.iter_bytes():
            answer += piece
            if len(answer) > MAX_ANSWER_BYTES:
                raise EmbedderError(f"{self._where} answered with more than {MAX_ANSWER_BYTES >> 20} MiB")
        return bytes(answer)

    def _refused(self, error: "APIStatusError") -> Exception:
        status = error.status_code
        if status in {401, 403}:
            self._endpoint.key_source.forget()
        meaning = error_of_status(
            status,
            error.body,
            error.response.headers,
            endpoint=self._endpoint.name,
            model=self._model,
            key_hint=self._endpoint.key_source.hint,
        )
        return AttemptFailed(meaning) if status in RETRIED_STATUSES and KINDS[meaning.kind].retryable else meaning

    def _check_dimension(self, vectors: list[Vector]) -> None:
        for vector in vectors:
            found = dimension(vector)
            self._dimension = self._dimension or found
            if found != self._dimension:
                raise EmbedderError(
                    f"{self._where} gave vectors of {found} numbers, and of {self._dimension} before: it has another "
                    "model under the same name now; restart, and embed the memories again"
                )

    @property
    def _where(self) -> str:
        return f"endpoint {self._endpoint.name!r} at {self._endpoint.address}"
