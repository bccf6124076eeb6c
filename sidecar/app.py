"""The composition root: reads the configuration, puts the parts together, and runs them until the process ends."""

import asyncio
import os
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from protocol.base import JsonObject
from protocol.features import LIMITS
from protocol.lifecycle import InitializeParams
from protocol.version import PROTOCOL_VERSIONS
from sidecar.agents.workspaces import Workspaces
from sidecar.config.limits import Limits
from sidecar.config.load import Sources, combine, read_sources
from sidecar.config.model import Config, LoggingConfig
from sidecar.errors import ProtocolVersionUnsupported, SidecarError
from sidecar.handlers.services import Documents, Pages, ServerFacts, Services
from sidecar.handshake import Inherited, initialize_result
from sidecar.models.embedders.configured import ConfiguredEmbedder
from sidecar.models.registry import Models
from sidecar.options import ServeOptions
from sidecar.process import Process, Started
from sidecar.server.delta_merger import DeltaMerger
from sidecar.server.envelope import notification
from sidecar.server.event_routes import EventRoutes
from sidecar.server.validation import validate
from sidecar.sessions.admission import RunSetup
from sidecar.sessions.host_features import HostFeatures, host_features
from sidecar.sessions.ids import new_id, now
from sidecar.sessions.manager import SessionManager
from sidecar.sessions.memory_access import MemoryAccess
from sidecar.sessions.outlet import Ask, Outlet
from sidecar.sessions.store_access import StoreAccess
from sidecar.sessions.tickets import Tickets
from sidecar.stores.base import Owner, SessionStore
from sidecar.stores.registry import make_store
from sidecar.telemetry import LOGGER, cannot_log_to, configure_logging, log_strays
from sidecar.transport.connection import Connection
from sidecar.transport.writer import WriterLimits

if TYPE_CHECKING:
    from sidecar.server.recording.file import Recording

MERGE_FOR_S: Final = 0.05
"""The longest that a delta is held back for merging."""


def serve(options: ServeOptions, start: Inherited) -> int:
    """Serve one client on the inherited descriptors until it is done.

    Returns:
        The exit code of the process.
    """
    _give_big_blocks_back()
    # Never closed: that would wait for every task that ignores its cancellation. The process ends right after this.
    return asyncio.Runner(loop_factory=_loop_factory()).run(_serve(options, start))


def _give_big_blocks_back() -> None:
    """Have the C library return a freed block of a mebibyte or more to the system at once.

    By itself glibc keeps blocks up to the size of the largest that was ever freed: one big message would stay resident.
    """
    if sys.platform == "linux":
        import ctypes

        mmap_threshold = -3
        with suppress(OSError, AttributeError):  # another C library has no such setting
            ctypes.CDLL(None).mallopt(mmap_threshold, 1 << 20)


def _loop_factory() -> Any:
    try:
        import uvloop
    except ImportError:  # Windows, PyPy: asyncio's own loop
        return None
    return uvloop.new_event_loop


async def _serve(options: ServeOptions, start: Inherited) -> int:
    sources, config, config_error = _load(options)
    _log_to(config.logging, options)
    log_strays(asyncio.get_running_loop())
    if config_error is not None:
        LOGGER.error("%s", config_error.message)
    limits = config.limits
    recording: Recording | None = None
    if options.record is not None:
        from sidecar.server.recording.start import start_recording

        recording = start_recording(options.record, config, os.environ, start.answered, start.instance_id)
    connection = Connection(
        start.inbound,
        start.outbound,
        framing=start.framing or options.framing,
        max_message_bytes=limits.max_message_bytes,
        max_header_bytes=limits.max_header_bytes,
        initial=start.unread,
        limits=WriterLimits(
            drain_above=limits.writer_drain_bytes,
            drain_until=limits.writer_drain_bytes // 4,
            pause_reading_above=limits.writer_pause_bytes,
            hard_cap=limits.writer_cap_bytes,
            stuck_after=limits.writer_stuck_ms / 1000,
        ),
        tap=recording,
    )

    def initialize(params: JsonObject, documents: Documents, ask: Ask) -> Started:
        started = start_services(
            options, sources, config_error, connection, params, documents, ask, start.instance_id, limits
        )
        if recording is not None:
            recording.hide(started.services.workspaces.of_process(), os.environ)
        return started

    process = Process(connection, options, initialize, limits=limits)
    code = 1
    try:
        code = await process.run(start.answered.params if start.answered is not None else None)
    finally:
        if recording is not None:
            recording.close(code)
    return code


def _load(options: ServeOptions) -> tuple[Sources | None, Config, SidecarError | None]:
    """The configuration, or why there is none: a bad file must not end the process before it can say so."""
    try:
        sources = _read(options, None)
        return sources, combine(sources).config, None
    except SidecarError as error:
        return None, Config(), error


def _log_to(logging: LoggingConfig, options: ServeOptions) -> None:
    """A log file that cannot be opened must not end the process: the log is on stderr then."""
    file = options.log_file or logging.file
    try:
        configure_logging(logging.level, file)
    except OSError as error:
        configure_logging(logging.level)
        LOGGER.error("%s, so the log is here", cannot_log_to(file, error))


def _read(options: ServeOptions, initialization: JsonObject | None) -> Sources:
    return read_sources(
        config_file=Path(options.config) if options.config is not None else None,
        environ=os.environ,
        store=options.store,
        log_level=options.log_level,
        initialization=initialization,
    )


def start_services(
    options: ServeOptions,
    sources: Sources | None,
    config_error: SidecarError | None,
    connection: Connection,
    raw: JsonObject,
    documents: Documents,
    ask: Ask,
    instance_id: str,
    limits: Limits,
) -> Started:
    """What `initialize` starts. `limits` are those that the connection began with.

    Raises:
        InvalidParams: our block has the wrong shape.
        ProtocolVersionUnsupported: there is no version in common.
        ConfigInvalid: the block's configuration is refused.
    """
    params = validate(InitializeParams, raw)
    block = params.initialization_options.sidecar if params.initialization_options is not None else None
    if block is not None and not set(block.protocol_versions) & set(PROTOCOL_VERSIONS):
        raise ProtocolVersionUnsupported(PROTOCOL_VERSIONS)
    settings = block.config if block is not None else None
    secrets = {name: value.get_secret_value() for name, value in (block.secrets or {}).items()} if block else {}
    events = EventRoutes(connection.send, is_host=_is_host(params))
    workspaces = Workspaces(
        lambda: _read(options, settings),
        replace(sources, initialization=settings) if sources is not None else None,
        lambda config, plugins: Models(
            config.endpoints, default_model=config.default_model, secrets=secrets, plugins=plugins
        ),
        folder=default_cwd(params),
    )
    for warning in workspaces.base.warnings:
        LOGGER.warning("%s", warning.message)
    config = workspaces.of_process()
    if config.logging != workspaces.base.loaded.config.logging:
        _log_to(config.logging, options)
    max_message_bytes = (block.max_message_bytes if block else None) or config.limits.max_outbound_bytes
    services = build_services(
        config,
        workspaces,
        config_error,
        connection,
        events,
        documents,
        instance_id,
        secrets=secrets,
        opted_out=frozenset((block.opt_out_events or ()) if block else ()),
        ask=ask,
        host=host_features(block.features if block else {}, params.capabilities),
        max_queued=limits.max_queued_runs,
        page_bytes=min(config.limits.page_bytes, max_message_bytes // 2),
    )
    services.sessions.default_cwd = workspaces.folder
    return Started(
        result=initialize_result(raw, instance_id, advertised(limits)),
        services=services,
        events=events,
        process_id=params.process_id,
        is_editor=bool(params.capabilities.get("textDocument") or params.capabilities.get("workspace")),
        max_message_bytes=max_message_bytes,
    )


def build_services(
    config: Config,
    workspaces: Workspaces,
    config_error: SidecarError | None,
    connection: Connection,
    events: EventRoutes,
    documents: Documents,
    instance_id: str,
    *,
    secrets: Mapping[str, str],
    opted_out: frozenset[str],
    ask: Ask,
    host: HostFeatures,
    max_queued: int,
    page_bytes: int,
) -> Services:
    """The parts of the sidecar, put together. Nothing is opened, no model is called."""
    store = config.store

    def durable_store() -> SessionStore:
        by_now = store if config_error is None else workspaces.base.loaded.config.store  # mended, and read again
        return make_store(by_now.path or "sqlite", durability=by_now.durability)

    stores = StoreAccess(
        durable_store,
        make_store("memory"),
        Owner(id=new_id("own"), pid=os.getpid(), since=now()),
        place=store.path or "the default store",
    )

    def notify(method: str, params: JsonObject) -> None:
        connection.send(notification(method, params))

    merger = DeltaMerger(
        events.send,
        connection.queued_bytes,
        merge_above=config.limits.writer_drain_bytes // 4,
        later=lambda flush: asyncio.get_running_loop().call_later(MERGE_FOR_S, flush),
    )
    tickets = Tickets()
    sessions = SessionManager(
        stores,
        workspaces,
        Outlet(merger.send, connection.congested, connection.drain, notify, opted_out, ask, host),
        MemoryAccess(stores, ConfiguredEmbedder(config, secrets)),
        documents,
        cache_bytes=config.limits.history_cache_bytes,
    )
    return Services(
        facts=ServerFacts(instance_id=instance_id, started=time.monotonic()),
        sessions=sessions,
        workspaces=workspaces,
        tickets=tickets,
        documents=documents,
        run_setup=RunSetup(
            outlet=sessions.outlet,
            tickets=tickets,
            keep_event_runs=store.keep_event_runs,
            max_queued=max_queued,
            max_queued_total=config.limits.max_queued_runs_total,
        ),
        pages=Pages(config.limits.page_default, config.limits.page_max, page_bytes),
        config_error=config_error,
    )


def advertised(limits: Limits) -> dict[str, int]:
    """The limits that `initialize` tells of."""
    values = limits.wire()
    return {name: values[name] for name in LIMITS}


def _is_host(params: InitializeParams) -> bool:
    """Whether the client speaks our protocol, which its block says; a plain editor does not."""
    options = params.initialization_options
    return options is not None and "sidecar" in options.model_fields_set


def default_cwd(params: InitializeParams) -> str:
    """Where a session works that names no folder: the client's first workspace folder, its root, or our own folder."""
    from urllib.parse import unquote, urlsplit

    uris = [str(folder.get("uri", "")) for folder in params.workspace_folders or ()]
    for uri in (*uris, params.root_uri or ""):
        with suppress(ValueError):  # it is no URI
            parts = urlsplit(uri)
            if parts.scheme == "file" and parts.path:
                return unquote(parts.path)
    try:
        return str(Path.cwd())
    except OSError:  # it was deleted
        return os.path.expanduser("~")
