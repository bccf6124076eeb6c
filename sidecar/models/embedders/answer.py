"""Reads what the embeddings API answers: tolerant of how numbers are written, strict about how many there are. Pure."""

import base64
from collections.abc import Iterable
from typing import Any, cast

from providers.api.memory import Vector
from sidecar.models.json_text import parse

from .vectors import little_endian, unit_vector


def vectors_of(answer: bytes, count: int) -> list[Vector]:
    """The vectors of an answer, in the order of the texts. Numbers may come as such, or as base64 of 32-bit floats.

    Args:
        answer: the body.
        count: how many texts there were.

    Raises:
        ValueError: it is no such answer. The message repeats nothing of it.
    """
    rows = _rows(answer)
    if len(rows) != count:
        raise ValueError(f"{len(rows)} vectors for {count} texts")
    vectors: dict[int, Vector] = {}
    for place, row in enumerate(rows):
        index = row.get("index", place)
        if not isinstance(index, int) or not 0 <= index < count or index in vectors:
            raise ValueError("a vector's index is missing, doubled or out of range")
        vectors[index] = unit_vector(_numbers(row.get("embedding")))
    return [vectors[index] for index in range(count)]


def _rows(answer: bytes) -> list[dict[str, Any]]:
    try:
        body = parse(answer)
    except ValueError:
        raise ValueError("it is no JSON; check base_url") from None
    rows = cast(dict[str, Any], body).get("data") if isinstance(body, dict) else None
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in cast(list[Any], rows)):
        raise ValueError("it has no list of vectors; check base_url")
    return cast(list[dict[str, Any]], rows)


def _numbers(embedding: Any) -> Iterable[float]:
    if isinstance(embedding, list):
        return cast(list[float], embedding)
    try:
        return little_endian(base64.b64decode(embedding, validate=True))
    except (TypeError, ValueError):
        raise ValueError("a vector is no list of numbers, and no base64 of 32-bit ones") from None
