"""`schema`: prints the wire contract as a document."""

import argparse
import json

from .command import Arguments, Command
from .output import stdout


def _configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--format", choices=("jsonschema", "openrpc", "typescript"), default="jsonschema", help="default: jsonschema"
    )


def _execute(arguments: Arguments) -> int:
    stdout().write(_document(arguments.format))
    return 0


def _document(form: str) -> str:
    from protocol.schema import OPENRPC_FILE, SCHEMA_FILE
    from protocol.typescript import typescript

    if form == "openrpc":
        return OPENRPC_FILE.read_text(encoding="utf-8")
    schema = SCHEMA_FILE.read_text(encoding="utf-8")
    return schema if form == "jsonschema" else typescript(json.loads(schema))


COMMAND = Command("schema", "print the wire contract as JSON Schema, OpenRPC or TypeScript", _configure, _execute)
