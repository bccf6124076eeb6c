"""A key that no header can hold is told of as a key that is wrong, whatever would have sent it."""

import pytest

from providers.api.memory import EmbedderError
from sidecar.config.endpoints import EndpointConfig
from sidecar.errors import ModelAuth
from sidecar.models.openai_embeddings import OpenAIEmbedder
from sidecar.models.openai_endpoint import OpenAIEndpoint

URL = "http://127.0.0.1:9/v1"
BY_ENVIRONMENT = EndpointConfig(type="openai", base_url=URL, api_key_env="K")
BY_SECRET = EndpointConfig(type="openai", base_url=URL, api_key_secret="s")
KEYS = ["sk-\u201cabc\u201d", "sk-a\nb"]


def endpoint(key: str, config: EndpointConfig) -> OpenAIEndpoint:
    return OpenAIEndpoint("e", config, environ={"K": key}, secrets={"s": key})


@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize(("config", "where"), [(BY_ENVIRONMENT, "in K"), (BY_SECRET, "in the secret 's'")])
async def test_it_is_refused_before_anything_is_sent_and_not_repeated(
    key: str, config: EndpointConfig, where: str
) -> None:
    with pytest.raises(ModelAuth, match=where) as caught:
        await endpoint(key, config).headers()
    assert key[3:] not in caught.value.message


@pytest.mark.parametrize("key", KEYS)
async def test_an_embedder_cannot_embed_with_it(key: str) -> None:
    made = endpoint(key, BY_ENVIRONMENT)
    try:
        with pytest.raises(EmbedderError, match="characters that no key has"):
            await OpenAIEmbedder(made, "m", query_timeout_s=5).embed(["tea"], role="query")
    finally:
        await made.aclose()
