"""An embeddings endpoint for tests: `/v1/embeddings`, whose vectors tell which words two texts share.

    async with FakeEmbeddings() as model:
        ...                                        # answers each request with vectors
        model.fails(429)                           # the next request: as the fake of chat completions does
        model.replies(answers({"data": []}))       # the next request: exactly this
        model.otherwise(lambda request: …)         # every request that nothing is scripted for
        assert model.texts == ["what was asked"]

It refuses blank text with a 400, as services do.
"""

import base64
import hashlib
import json
import math
import re
import struct
from collections.abc import Sequence
from typing import Any

from tests.bench.fake_model import FakeModel
from tests.bench.model_script import EOF, Raw, Reply
from tests.bench.recorded import Recorded


class FakeEmbeddings(FakeModel):
    """The endpoint. All of it runs on the test's own loop."""

    def __init__(self, *, models: Sequence[str] = ("fake-embeddings",), dimension: int = 64) -> None:
        super().__init__(models=models, strict=False)
        self.dimension = dimension
        self.as_base64 = False
        """Whether vectors are sent as text of their bytes."""
        self.otherwise(self.embedded)

    @property
    def texts(self) -> list[str]:
        """All texts that were sent, oldest first."""
        return [text for request in self.requests for text in request.body["input"]]

    async def _reply_to(self, request: Recorded) -> Reply:
        if not request.path.endswith("/embeddings"):
            return await super()._reply_to(request)
        async with self._changed:
            self.requests.append(request)
            self._changed.notify_all()
        return self._chat_reply(request)

    def embedded(self, request: Recorded) -> Reply:
        """The answer to a request where nothing goes wrong."""
        texts: list[str] = request.body["input"]
        if not all(text.strip() for text in texts):
            return answers({"error": {"message": "input cannot be an empty string"}}, status=400)
        rows = [{"index": index, "embedding": self._shown(text)} for index, text in enumerate(texts)]
        return answers({"object": "list", "data": rows, "model": request.body["model"]})

    def _shown(self, text: str) -> list[float] | str:
        numbers = meaning(text, self.dimension)
        return base64.b64encode(struct.pack(f"<{len(numbers)}f", *numbers)).decode() if self.as_base64 else numbers


def answers(body: Any, *, status: int = 200) -> Reply:
    """One JSON document."""
    return Reply([Raw(json.dumps(body).encode()), EOF], status, {"content-type": "application/json"})


def meaning(text: str, dimension: int = 64) -> list[float]:
    """Numbers of unit length that resemble those of texts with the same words; a character of CJK is a word."""
    numbers = [0.0] * dimension
    for word in re.findall(r"[\u3040-\u9fff]|[^\W\u3040-\u9fff]+", text.lower()) or [text]:
        place = int.from_bytes(hashlib.sha256(word.encode("utf-8", "replace")).digest()[:4], "big")
        numbers[place % dimension] += 1.0
    length = math.hypot(*numbers)
    return [number / length for number in numbers]
