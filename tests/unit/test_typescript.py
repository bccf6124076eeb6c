"""The TypeScript types that are made from the contract's schema."""

import re

from protocol.methods import METHODS
from protocol.schema import json_schema
from protocol.typescript import typescript

SOURCE = typescript(json_schema())
BUILT_IN = {"string", "number", "boolean", "null", "true", "false", "key", "any", "Json", "params", "result"}


def _declaration(name: str) -> str:
    found = re.search(rf"export (?:interface|type) {name}\b.*?(?=\nexport |\n/\*\*|\Z)", SOURCE, re.DOTALL)
    assert found, name
    return found[0]


def test_a_required_field_and_an_optional_one_differ_by_a_question_mark() -> None:
    declaration = _declaration("CancelRunParams")
    assert "  runId?: string;" in declaration
    assert "  code: number;" in _declaration("WireError")


def test_unions_enums_and_data_keep_their_form() -> None:
    run = _declaration("RunParams")
    assert "input: string | Message[] | (TextBlock | " in run
    assert 'whenBusy?: "reject" | "queue" | "steer";' in run
    assert "properties?: { [key: string]: Json };" in run
    assert "responseFormat?: Json;" in run


def test_descriptions_become_comments() -> None:
    assert "/** Ask a run to stop. Answered at once, whatever the run is doing. */\nexport interface Cancel" in SOURCE


def test_every_method_is_in_the_table() -> None:
    table = _declaration("Methods")
    assert re.findall(r'^  "([^"]+)":', table, re.MULTILINE) == [method.name for method in METHODS]
    assert '"shutdown": { params: Empty; result: null };' in table


def test_every_type_that_is_used_is_declared() -> None:
    code = re.sub(r'/\*\*.*?\*/|//[^\n]*|"[^"]*"', "", SOURCE, flags=re.DOTALL)
    declared = set(re.findall(r"export (?:interface|type) (\w+)", code))
    used = {name for types in re.findall(r":([^;{}]+);", code) for name in re.findall(r"[A-Za-z_]\w*", types)}
    assert used - declared - BUILT_IN == set()


def test_a_description_of_several_lines_cannot_end_its_comment_early() -> None:
    described = {"type": "object", "description": "One.\n\nTwo */ three.", "properties": {"a-b": {"type": "null"}}}
    empty = {"client": {}, "server": {}}
    schema = {
        "x-protocolVersion": 1,
        "$defs": {"A": described},
        "x-methods": {},
        "x-hostMethods": {},
        "x-notifications": empty,
    }
    source = typescript({**schema, "x-events": {}})
    assert '/**\n * One.\n *\n * Two * / three.\n */\nexport interface A {\n  "a-b"?: null;\n}\n' in source
