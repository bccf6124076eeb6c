"""The composition root: reads the configuration, puts the parts together, and runs them until the process ends."""

import asyncio
import os
import sys
import time
from pathlib import Path
from typing import Any

from protocol.base import JsonObject
from protocol.lifecycle import InitializeParams
from protocol.version import PROTOCOL_VERSIONS
from sidecar.agents.catalog import AgentCatalog
from sidecar.config.load import Loaded, load
from sidecar.config.model import Config
from sidecar.errors import ProtocolVersionUnsupported, SidecarError
from sidecar.handlers.services import Documents, ServerFacts, Services
from sidecar.handshake import Inherited, initialize_result
from sidecar.models.registry import Models
from sidecar.options import ServeOptions
from sidecar.process import Process, Started
from sidecar.server.envelope import notification
from sidecar.server.validation import validate
from sidecar.sessions.ids import new_id, now
from sidecar.sessions.manager import Outlet, SessionManager
from sidecar.sessions.store_access import StoreAccess
from sidecar.sessions.tickets import Tickets
from sidecar.stores.base import Owner
from sidecar.stores.registry import make_store
from sidecar.telemetry import LOGGER, configure_logging
from sidecar.transport.connection import Connection
from sidecar.transport.writer import WriterLimits


def serve(options: ServeOptions, start: Inherited) -> int:
    """Serve one client on the inherited descriptors until it is done.

    Returns:
        The exit code of the process.
    """
    with asyncio.Runner(loop_factory=_loop_factory()) as runner:
        return runner.run(_serve(options, start))


def _loop_factory() -> Any:
    try:
        import uvloop
    except ImportError:  # Windows, PyPy: asyncio's own loop
        return None
    return uvloop.new_event_loop


async def _serve(options: ServeOptions, start: Inherited) -> int:
    loaded, config_error = _load(options)
    config = loaded.config if loaded is not None else Config()
    configure_logging(config.logging.level, config.logging.file)
    if config_error is not None:
        LOGGER.error("%s", config_error.message)
    limits = config.limits
    connection = Connection(
        start.inbound,
        start.outbound,
        framing=start.framing or options.framing,
        max_message_bytes=limits.max_message_bytes,
        initial=start.unread,
        limits=WriterLimits(
            drain_above=limits.writer_drain_bytes,
            drain_until=limits.writer_drain_bytes // 4,
            pause_reading_above=limits.writer_pause_bytes,
            hard_cap=limits.writer_cap_bytes,
            stuck_after=limits.writer_stuck_ms / 1000,
        ),
    )

    def initialize(params: JsonObject, documents: Documents) -> Started:
        return start_services(options, config, config_error, connection, params, documents, start.instance_id)

    process = Process(connection, options, initialize, max_in_flight=limits.max_in_flight)
    return await process.run(start.answered.params if start.answered is not None else None)


def _load(options: ServeOptions) -> tuple[Loaded | None, SidecarError | None]:
    """The configuration, or why there is none: a bad file must not end the process before it can say so."""
    try:
        loaded = load(
            config_file=Path(options.config) if options.config is not None else None,
            environ=os.environ,
            store=options.store,
            log_level=options.log_level,
        )
    except SidecarError as error:
        return None, error
    for warning in loaded.warnings:
        sys.stderr.write(f"agent-sidecar: {warning}\n")
    return loaded, None


def start_services(
    options: ServeOptions,
    config: Config,
    config_error: SidecarError | None,
    connection: Connection,
    raw: JsonObject,
    documents: Documents,
    instance_id: str,
) -> Started:
    """What `initialize` starts.

    Raises:
        InvalidParams: our block has the wrong shape.
        ProtocolVersionUnsupported: there is no version in common.
        ConfigInvalid: the block's configuration is refused.
    """
    params = validate(InitializeParams, raw)
    block = params.initialization_options.sidecar if params.initialization_options is not None else None
    if block is not None and not set(block.protocol_versions) & set(PROTOCOL_VERSIONS):
        raise ProtocolVersionUnsupported(PROTOCOL_VERSIONS)
    if block is not None and block.config is not None and config_error is None:
        loaded = load(
            config_file=Path(options.config) if options.config is not None else None,
            environ=os.environ,
            store=options.store,
            log_level=options.log_level,
            initialization=block.config,
        )
        config = loaded.config
        for warning in loaded.warnings:
            LOGGER.warning("%s", warning)
    secrets = {name: value.get_secret_value() for name, value in (block.secrets or {}).items()} if block else {}
    services = build_services(config, config_error, connection, documents, instance_id, secrets)
    services.sessions.default_cwd = default_cwd(params)
    return Started(
        result=initialize_result(raw, instance_id),
        services=services,
        process_id=params.process_id,
        is_editor=bool(params.capabilities.get("textDocument") or params.capabilities.get("workspace")),
        max_message_bytes=(block.max_message_bytes if block else None) or config.limits.max_outbound_bytes,
    )


def build_services(
    config: Config,
    config_error: SidecarError | None,
    connection: Connection,
    documents: Documents,
    instance_id: str,
    secrets: dict[str, str],
) -> Services:
    """The parts of the sidecar, put together. Nothing is opened, no model is called."""
    catalog = AgentCatalog(config.agents, default_agent=config.default_agent)
    models = Models(config.endpoints, default_model=config.default_model, secrets=secrets)
    store = config.store
    stores = StoreAccess(
        lambda: make_store(store.path or "sqlite", durability=store.durability),
        make_store("memory"),
        Owner(id=new_id("own"), pid=os.getpid(), since=now()),
        place=store.path or "the default store",
    )

    def send_event(envelope: JsonObject) -> None:
        connection.send(notification("run/event", envelope))

    sessions = SessionManager(
        stores,
        catalog,
        Outlet(send_event, connection.drain),
        cache_bytes=config.limits.history_cache_bytes,
        hook_timeout_ms=config.limits.provider_timeout_ms,
        max_turns=config.limits.max_turns,
    )
    return Services(
        facts=ServerFacts(instance_id=instance_id, started=time.monotonic()),
        sessions=sessions,
        catalog=catalog,
        models=models,
        tickets=Tickets(),
        documents=documents,
        keep_event_runs=store.keep_event_runs,
        config_error=config_error,
    )


def default_cwd(params: InitializeParams) -> str:
    """Where a session works that names no folder: the client's first workspace folder, its root, or our own folder."""
    from urllib.parse import unquote, urlsplit

    uris = [str(folder.get("uri", "")) for folder in params.workspace_folders or ()]
    for uri in (*uris, params.root_uri or ""):
        parts = urlsplit(uri)
        if parts.scheme == "file" and parts.path:
            return unquote(parts.path)
    return str(Path.cwd())
