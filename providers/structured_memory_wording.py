"""What `structured_memory` tells models: to ask for a fact, to use one, to look for one. It decides nothing."""

import json
import re
from typing import Any, Final

from protocol.base import JsonObject

ASK: Final = "You do not know the user's {label} yet. Ask for it, and answer no other question before you know it."
ASK_MEANWHILE: Final = "You do not know the user's {label} yet. Answer as usual, and ask for it when it fits."
KNOWN: Final = "The user's {label}: {value}."
EXTRACT: Final = "Read the user's message and fill in what it says about the user. Use null for what it does not say."

_EXTRACT_ONE: Final = (
    "Copy {description} from the message, word for word. If the message does not say it, answer with nothing."
)
_PLACEHOLDER: Final = re.compile(r"\{(field|label|description|value)\}")


def filled(template: str, name: str, field: JsonObject, value: Any = None) -> str:
    """A template's text for a field.

    Args:
        template: `{field}` is the field's name in words, `{description}` what its schema says of it, `{label}` the
            name, followed by the description where there is one, `{value}` the value on one line.
        name: The field.
        field: Its schema.
        value: What is known.
    """
    shown = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    words = name.replace("_", " ")
    described = _description(field)
    by_name = {
        "field": words,
        "label": f"{words} ({described})" if described else words,
        "description": described or f"the user's {words}",
        "value": " ".join(shown.split()),
    }
    return _PLACEHOLDER.sub(lambda found: by_name[found[1]], template)


def extract_one(name: str, field: JsonObject) -> str:
    """What a small model is told, which looks for one field a call."""
    return filled(_EXTRACT_ONE, name, field)


def _description(field: JsonObject) -> str:
    described: object = field.get("description")
    return described.strip().rstrip(".") if isinstance(described, str) else ""
