"""`docs/configuration.md` is what the types say, and leaves no key out."""

from pydantic import BaseModel

from protocol.docstrings import field_docs
from sidecar.config.document import FILE, SECTIONS, document
from sidecar.config.limits import Limits
from sidecar.config.model import AgentConfig, Config


def test_the_document_is_fresh() -> None:
    assert FILE.read_text(encoding="utf-8") == document(), "run: python -m sidecar.config.document"


def test_every_type_of_the_configuration_has_a_table() -> None:
    named = {model.__name__ for _, model in SECTIONS}

    assert named - {"Config"} == set(Config.model_json_schema()["$defs"])


def test_every_key_has_a_meaning() -> None:
    rows = [line for line in document().splitlines() if line.startswith("| `")]

    assert len(rows) == sum(len(model.model_fields) for _, model in SECTIONS)
    assert [row for row in rows if row.endswith("|  |")] == []


def test_a_row_tells_type_unit_bounds_default_and_meaning() -> None:
    assert (
        "| `max_header_bytes` | whole number of bytes, 64 to 1_048_576 | `8_192` "
        "| Longest header block of a framed message. |"
    ) in document()
    assert "| `durability` | `full` · `normal` | `full` |" in document()
    assert "| `import` | text | required |" in document()


def test_keys_of_missing_features_are_marked() -> None:
    assert "| `mcp_servers` † |" in document()
    assert "| `plugins` |" in document()


def test_docstrings_are_inherited_and_belong_to_their_own_field() -> None:
    docs = field_docs(AgentConfig)

    assert "64 KiB" in docs["instructions_file"]
    assert docs["description"].startswith("What it is for")
    assert set(field_docs(Limits)) == set(Limits.model_fields)


class Undocumented(BaseModel):
    a: int = 1
    b: int = 2
    """Second."""


def test_a_field_without_a_docstring_is_absent() -> None:
    assert field_docs(Undocumented) == {"b": "Second."}
