"""`getSchema`: the whole contract as one document, as it was generated with this build."""

import asyncio

from pydantic_core import from_json

from protocol.schema import OPENRPC_FILE, SCHEMA_FILE
from protocol.state import GetSchemaParams, GetSchemaResult

from .services import Call, Services


async def get_schema(params: GetSchemaParams, call: Call, services: Services) -> GetSchemaResult:
    """JSON Schema, or OpenRPC."""
    file = SCHEMA_FILE if params.format == "jsonschema" else OPENRPC_FILE
    return GetSchemaResult.model_validate({"schema": from_json(await asyncio.to_thread(file.read_bytes))})
