"""How much is read of an answer with an error status: its beginning. The `openai` client would read all of it."""

from collections.abc import AsyncIterator
from typing import Final

import httpx2

MAX_ERROR_BYTES: Final = 64 << 10
"""As sent, that is compressed perhaps."""


async def cut_error_body(response: httpx2.Response) -> None:
    """A hook of the HTTP client: the body of an answer that failed ends after so many bytes."""
    if not response.is_success and isinstance(response.stream, httpx2.AsyncByteStream):
        response.stream = _Beginning(response.stream)


class _Beginning(httpx2.AsyncByteStream):
    def __init__(self, whole: httpx2.AsyncByteStream) -> None:
        self._whole = whole

    async def __aiter__(self) -> AsyncIterator[bytes]:
        left = MAX_ERROR_BYTES
        async for piece in self._whole:
            yield piece[:left]
            left -= len(piece)
            if left <= 0:
                return

    async def aclose(self) -> None:
        await self._whole.aclose()
