"""Every requirement has a test that names it, and every number that a test names is a requirement."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from tests.requirements import CASES, FAULTS, MATRIX

TESTS = Path(__file__).parent.parent
_CASES = re.compile(r"\b[Cc]ases? (\d+(?:(?:, | and | to )\d+)*)")
_FAULT = re.compile(r"\bBR-\d\d")
_ROW = re.compile(r"\b(?:[FL]\d{1,2}|S4)\b")


def docstrings() -> Iterator[str]:
    """What test files and test functions say of themselves."""
    for path in TESTS.rglob("test_*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        nodes = [tree, *(node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))]
        tests = any(isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) for node in nodes[1:])
        yield from (text for node in nodes if tests and (text := ast.get_docstring(node)))


@cache
def named() -> tuple[frozenset[int], frozenset[str], frozenset[str]]:
    """The cases, faults and rows that tests name."""
    cases: set[int] = set()
    faults: set[str] = set()
    rows: set[str] = set()
    for text in docstrings():
        for found in _CASES.findall(text):
            cases.update(numbers(found))
        faults.update(_FAULT.findall(text))
        rows.update(_ROW.findall(text))
    return frozenset(cases), frozenset(faults), frozenset(rows)


def numbers(text: str) -> Iterator[int]:
    """`12`, `29 and 31`, `15, 16 and 17`, `36 to 39`."""
    for part in re.split(r", | and ", text):
        first, _, last = part.partition(" to ")
        yield from range(int(first), int(last or first) + 1)


@pytest.mark.parametrize("case", CASES)
def test_a_case_has_a_test(case: int) -> None:
    assert case in named()[0], CASES[case]


@pytest.mark.parametrize("fault", sorted(FAULTS))
def test_a_reported_fault_has_a_test(fault: str) -> None:
    assert fault in named()[1]


@pytest.mark.parametrize("row", sorted(MATRIX))
def test_a_row_of_the_matrix_has_a_test(row: str) -> None:
    assert row in named()[2]


def test_no_test_names_what_is_no_requirement() -> None:
    cases, faults, rows = named()

    assert not cases - CASES.keys()
    assert not faults - FAULTS
    assert not rows - MATRIX


def test_numbers_are_read_as_they_are_written() -> None:
    assert list(numbers("12")) == [12]
    assert list(numbers("29 and 31")) == [29, 31]
    assert list(numbers("15, 16 and 17")) == [15, 16, 17]
    assert list(numbers("36 to 39")) == [36, 37, 38, 39]
