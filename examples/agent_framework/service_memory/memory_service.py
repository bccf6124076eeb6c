"""Stands for a memory service far away: containers of memories, found by the words that they share with a question."""

import itertools
import re
from collections.abc import Iterable, Sequence
from typing import Final


class ServiceClient:
    """Its client. The containers are the service's: they outlive every provider, and know nothing of sessions."""

    _containers: Final[dict[str, list[str]]] = {}
    _numbers: Final = itertools.count(1)

    async def create_memory_container(self) -> str:
        """Make an empty container, and give its id."""
        container_id = f"memories-{next(self._numbers)}"
        self._containers[container_id] = []
        return container_id

    async def store_memories(self, container_id: str, texts: Iterable[str]) -> None:
        """Keep texts that it has not yet."""
        kept = self._containers[container_id]
        kept.extend(text for text in texts if text not in kept)

    async def load_memories(self, container_id: str, question: str) -> Sequence[str]:
        """The memories that share a longer word with the question."""
        asked = _words(question)
        return [text for text in self._containers[container_id] if asked & _words(text)]


def _words(text: str) -> set[str]:
    return set(re.findall(r"\w{4,}", text.lower()))
