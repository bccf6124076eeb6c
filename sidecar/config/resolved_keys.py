"""Tells who keeps secrets out of a file about keys that no configuration has: commands print them. It stores none."""

from collections.abc import Callable
from typing import Final

_listeners: Final[list[Callable[[str], None]]] = []


def listen(listener: Callable[[str], None]) -> None:
    """Have the listener told of each key of this process from now on, before it is used. It must not fail."""
    _listeners.append(listener)


def ignore(listener: Callable[[str], None]) -> None:
    """Tell it no more."""
    if listener in _listeners:
        _listeners.remove(listener)


def resolved(key: str) -> None:
    """A key is known now, and goes out next."""
    for listener in _listeners:
        listener(key)
