"""The docstrings of fields, read from the source: pydantic could collect them itself, but only at every start-up."""

import ast
import inspect
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from pydantic import BaseModel


def field_docs(model: type[BaseModel]) -> dict[str, str]:
    """What each field of a model means, by its name; inherited ones included. A field without a docstring is absent."""
    found: dict[str, str] = {}
    for cls in reversed(model.__mro__):
        if issubclass(cls, BaseModel) and cls is not BaseModel:
            found |= _docs_in(inspect.getfile(cls)).get(cls.__name__, {})
    return {name: found[name] for name in model.model_fields if name in found}


@cache
def _docs_in(file: str) -> dict[str, dict[str, str]]:
    """Class → field → docstring, of one source file."""
    tree = ast.parse(Path(file).read_text(encoding="utf-8"))
    return {node.name: dict(_pairs(node)) for node in tree.body if isinstance(node, ast.ClassDef)}


def _pairs(node: ast.ClassDef) -> Iterator[tuple[str, str]]:
    for field, below in zip(node.body, node.body[1:], strict=False):
        if (
            isinstance(field, ast.AnnAssign)
            and isinstance(field.target, ast.Name)
            and isinstance(below, ast.Expr)
            and isinstance(below.value, ast.Constant)
            and isinstance(below.value.value, str)
        ):
            yield field.target.id, inspect.cleandoc(below.value.value)
