"""One OpenAI-compatible endpoint: its `openai` client, built once and off the loop, with the key of the moment.

The client's own retries and redirects are off: both are ours to decide. Nothing of the environment that was meant for
OpenAI (organisation, project, custom headers, key) goes to another host.
"""

import asyncio
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from sidecar.config.endpoints import EndpointConfig

from .openai_key import KeySource

if TYPE_CHECKING:
    from openai import AsyncOpenAI, Omit

OPENAI_URL: Final = "https://api.openai.com/v1"
OPENAI_HOST: Final = "api.openai.com"


class OpenAIEndpoint:
    """Where calls go. All models of one endpoint share it, and its connections."""

    def __init__(
        self,
        name: str,
        config: EndpointConfig,
        *,
        environ: Mapping[str, str] = os.environ,
        secrets: Mapping[str, str] | None = None,
        use_proxies: bool = True,
    ) -> None:
        """`use_proxies`: whether the environment's proxies count; never for a server of our own on loopback."""
        self.name = name
        self.config = config
        self.url = config.base_url or environ.get("OPENAI_BASE_URL") or OPENAI_URL
        host = urlsplit(self.url).hostname or ""
        self.is_openai = host == OPENAI_HOST or host.endswith(f".{OPENAI_HOST}")  # its regions
        self.key_source = KeySource(
            name, config, is_required=self.is_openai, environ=environ, secrets=secrets if secrets is not None else {}
        )
        self._use_proxies = use_proxies
        self._client: AsyncOpenAI | None = None
        self._lock = asyncio.Lock()

    @property
    def address(self) -> str:
        """The base URL without credentials and query, for messages."""
        parts = urlsplit(self.url)
        return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"

    async def client(self) -> "AsyncOpenAI":
        """The client; the first call imports and builds it in a thread."""
        if self._client is None:
            async with self._lock:
                if self._client is None:
                    self._client = await asyncio.to_thread(self._build)
        return self._client

    async def headers(self) -> "dict[str, str | Omit]":
        """The headers of one request: the key, and the configured ones.

        Raises:
            ModelAuth: a key is needed, and there is none.
        """
        headers: dict[str, str | Omit] = {"Authorization": f"Bearer {await self.key_source.key()}"}
        if not self.is_openai:
            headers.update(self._not_for_others())
        headers.update((name, value.get_secret_value()) for name, value in self.config.headers.items())
        return headers

    async def aclose(self) -> None:
        """Close the connections."""
        client, self._client = self._client, None
        if client is not None:
            await client.close()

    def _build(self) -> "AsyncOpenAI":
        from openai import AsyncOpenAI, DefaultAsyncHttpxClient, Timeout

        from .openai_error_bodies import cut_error_body

        config = self.config
        seconds = config.idle_timeout_ms / 1000
        timeout = Timeout(connect=config.connect_timeout_ms / 1000, read=None, write=seconds, pool=seconds)
        client = AsyncOpenAI(
            api_key="set by each request",
            base_url=self.url,
            organization=config.organization,
            max_retries=0,
            timeout=timeout,
            http_client=DefaultAsyncHttpxClient(
                follow_redirects=False,
                trust_env=self._use_proxies,
                timeout=timeout,
                event_hooks={"response": [cut_error_body]},
            ),
        )
        if not self.is_openai:
            client.organization, client.project = config.organization, None
        api = client.responses if config.type == "openai_responses" else client.chat.completions
        _ = api.with_streaming_response  # imported here, not on the loop
        return client

    def _not_for_others(self) -> "dict[str, Omit]":
        from openai import Omit

        lines = os.environ.get("OPENAI_CUSTOM_HEADERS", "").splitlines()
        return {name.strip(): Omit() for name, colon, _ in (line.partition(":") for line in lines) if colon}
