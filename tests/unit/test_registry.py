"""The registry names classes that are there, and imports none of them before it is asked."""

import subprocess
import sys

import pytest

from providers.api.provider import ContextProvider, ProviderConfig
from providers.registry import REGISTRY


@pytest.mark.parametrize("name", REGISTRY)
def test_a_row_names_a_provider_with_a_description(name: str) -> None:
    kind = REGISTRY[name]

    assert issubclass(kind.factory, ContextProvider)
    assert issubclass(kind.factory.config_type, ProviderConfig)
    assert kind.factory is kind.factory
    assert kind.description.endswith(".")


def test_a_provider_is_imported_when_somebody_has_it() -> None:
    script = "import sys, providers.registry; print(*(name for name in sys.modules if name.startswith('providers.')))"

    loaded = subprocess.run((sys.executable, "-c", script), check=True, capture_output=True, text=True).stdout.split()

    assert not {f"providers.{kind.where.partition(':')[0]}" for kind in REGISTRY.values()} & set(loaded)
