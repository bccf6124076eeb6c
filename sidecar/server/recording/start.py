"""Begins the recording that `serve --record` asks for. If it cannot be written, the client is served all the same."""

from collections.abc import Mapping
from pathlib import Path

from sidecar.config.known_secrets import Secrets, secrets_of
from sidecar.config.model import Config
from sidecar.handshake import Answered, initialize_result
from sidecar.telemetry import LOGGER
from sidecar.transport.decode import encode_json

from .file import Recording
from .opening import NotRecorded


def start_recording(
    file: str, config: Config, environ: Mapping[str, str], answered: Answered | None, instance_id: str
) -> Recording | None:
    """A recording to the file; None, and an error in the log, where that cannot be.

    Args:
        file: Where to; relative to the working directory.
        config: What holds before `initialize`.
        environ: The environment of the process.
        answered: The `initialize` that was answered before anything could be recorded.
        instance_id: As its answer told it.
    """
    try:
        recording = Recording(Path(file), Secrets(secrets_of(config, environ)))
    except NotRecorded as error:
        LOGGER.error("nothing is recorded in %s: %s", file, error)
        return None
    if answered is not None:
        head = {"jsonrpc": "2.0", "id": answered.request_id}
        recording.received(encode_json({**head, "method": "initialize", "params": answered.params}))
        recording.sent(encode_json({**head, "result": initialize_result(answered.params, instance_id)}))
    return recording
