"""Vectors as they are kept: 32-bit floats, little-endian, of unit length. Pure; needs no numpy."""

import math
import sys
from array import array
from collections.abc import Iterable

from providers.api.memory import Vector


def unit_vector(numbers: Iterable[float]) -> Vector:
    """The vector of this direction.

    Raises:
        ValueError: it has none: no numbers, zeros only, or something that is no finite number.
    """
    values = list(numbers)
    try:
        length = math.hypot(*values)
    except (TypeError, OverflowError):
        raise ValueError("a vector holds numbers only") from None
    if not length or not math.isfinite(length):
        raise ValueError("a vector has a finite length above zero")
    packed = array("f", [value / length for value in values])
    if sys.byteorder == "big":
        packed.byteswap()
    return packed.tobytes()


def little_endian(data: bytes | memoryview) -> "array[float]":
    """The numbers of 32-bit floats, little-endian.

    Raises:
        ValueError: bytes are left over.
    """
    numbers = array("f", bytes(data))
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers


def dimension(vector: Vector) -> int:
    """How many numbers a vector has."""
    return len(vector) // array("f").itemsize
