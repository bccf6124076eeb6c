"""What `doctor` looks at, one function a part. It calls no model and writes nothing; `doctor` shows the findings."""

import asyncio
import importlib.metadata
import os
import platform
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final, Literal, NamedTuple

import protocol
import providers
import sidecar
from protocol.version import PROTOCOL_VERSIONS, VERSION
from sidecar.config.files import user_config_file
from sidecar.config.load import Loaded
from sidecar.config.model import Config
from sidecar.errors import SidecarError
from sidecar.models import embedded_files
from sidecar.models.embedders.bundled import BUNDLED, best_installed
from sidecar.models.embedders.registry import AUTO, NONE, endpoint_of
from sidecar.models.registry import EMBEDDED, Models
from sidecar.sessions.ids import new_id, now
from sidecar.stores.base import Owner, StoreError
from sidecar.stores.registry import default_path, make_store

from .command import Arguments
from .config import load_config

LIBRARIES: Final = ("pydantic", "openai", "pygls", "lsprotocol", "rich", "platformdirs", "uvloop")
CLIENT_DISTRIBUTION: Final = "agent-sidecar-client"
_ENDPOINT_SECONDS: Final = 10.0


class Check(NamedTuple):
    """One finding."""

    name: str
    status: Literal["ok", "note", "warning", "problem"]
    """`problem`: the default agent cannot run."""
    detail: str
    fix: str = ""
    """What to type or change."""


async def check_all(arguments: Arguments) -> list[Check]:
    """Everything, for a server that is started with these options."""
    checks = [*_program(), *_embedded()]
    try:
        loaded = load_config(arguments)
    except SidecarError as error:
        return [*checks, Check("configuration", "problem", error.message, "agent-sidecar config check")]
    config = loaded.config
    return [
        *checks,
        *_configuration(loaded),
        await _store(config.store.path or "sqlite"),
        *_endpoints(config),
        await asyncio.to_thread(check_embedder, config),
        await _default_model(loaded),
    ]


def check_embedder(config: Config) -> Check:
    """What turns text into vectors. It is not tried."""
    setting = config.embeddings.embedder
    words_alone = "memory is found by its words alone"
    if setting == NONE:
        return Check("embeddings", "note", f"switched off; {words_alone}")
    if setting != AUTO:
        try:
            endpoint_of(setting, config.endpoints)
        except SidecarError as error:
            return Check("embeddings", "warning", error.message, "set embedder in [embeddings] of sidecar.toml")
        return Check("embeddings", "ok", setting)
    found = best_installed()
    if found is not None:
        return Check("embeddings", "ok", f"{found.distribution} {found.version}")
    obstacles = [why for model in BUNDLED if model.version is not None and (why := model.obstacle())]
    detail = "; ".join(["no embedder is installed that can run", *obstacles, words_alone])
    return Check("embeddings", "note", detail, "agent-sidecar setup embeddings")


def _program() -> Iterator[Check]:
    yield Check("agent-sidecar", "ok", f"{VERSION}, protocol {', '.join(map(str, PROTOCOL_VERSIONS))}")
    yield Check("Python", "ok", f"{platform.python_version()} ({platform.python_implementation()}) at {sys.executable}")
    yield _libraries()
    yield _packages()
    if _version(CLIENT_DISTRIBUTION) is not None:
        yield Check(
            "client",
            "warning",
            f"{CLIENT_DISTRIBUTION} is installed beside agent-sidecar, which brings the same package sidecar_client",
            f"{sys.executable} -m pip uninstall {CLIENT_DISTRIBUTION}, then reinstall agent-sidecar",
        )


def library_versions() -> dict[str, str | None]:
    """Library → its installed version; None where it is missing."""
    return {name: _version(name) for name in LIBRARIES}


def _libraries() -> Check:
    versions = library_versions()
    missing = [name for name, version in versions.items() if version is None and name != "uvloop"]
    shown = ", ".join(f"{name} {version}" for name, version in versions.items() if version is not None)
    if missing:
        return Check("libraries", "problem", f"missing: {', '.join(missing)}", "reinstall agent-sidecar")
    return Check("libraries", "ok", shown)


def _packages() -> Check:
    """Our packages have plain names: another project's of the same name may stand before them."""
    places = {Path(str(package.__file__)).resolve().parent.parent for package in (protocol, providers, sidecar)}
    if len(places) == 1:
        return Check("packages", "ok", f"in {places.pop()}")
    return Check(
        "packages",
        "problem",
        f"protocol, providers and sidecar come from different places: {', '.join(sorted(map(str, places)))}",
        "install agent-sidecar in an environment of its own, and start it without PYTHONPATH",
    )


def _embedded() -> Iterator[Check]:
    setup = "agent-sidecar setup embedded"
    runtime = embedded_files.runtime_version()
    if runtime is None:
        yield Check("embedded runtime", "note", f"{embedded_files.RUNTIME_DISTRIBUTION} is not installed", setup)
    else:
        yield Check("embedded runtime", "ok", f"{embedded_files.RUNTIME_DISTRIBUTION} {runtime}")
    model = embedded_files.bundled_file()
    if model is None:
        yield Check("embedded model", "note", f"{embedded_files.MODEL_ID} is not installed", setup)
    elif not embedded_files.is_intact(model):
        yield Check("embedded model", "warning", f"{model} is damaged", setup)
    else:
        yield Check("embedded model", "ok", f"{embedded_files.MODEL_ID} at {model}")


def _configuration(loaded: Loaded) -> Iterator[Check]:
    files = ", ".join(map(str, loaded.files)) or f"no file; yours would be {user_config_file()}"
    yield Check("configuration", "ok", files)
    for warning in loaded.warnings:
        yield Check("configuration", "warning", warning)


async def _store(spec: str) -> Check:
    path = database(spec)
    if path is None:
        return Check("store", "ok", f"{spec}: sessions end with the process")
    if not await asyncio.to_thread(path.exists):
        return _store_to_be(path)
    store = make_store(spec)
    try:
        info = await store.open(Owner(id=new_id("own"), pid=os.getpid(), since=now()), migrate=False)
    except StoreError as error:
        return Check("store", "problem", f"{path}: {error}", "choose another with --store, or mend this one")
    await store.close()
    return Check("store", "ok", f"{path}, schema {info.version}")


def database(spec: str) -> Path | None:
    """The file of a store; None for a store that is in no file."""
    kind, _, place = spec.partition(":")
    if kind != "sqlite":
        return None
    return Path(place).expanduser() if place else default_path()


def _store_to_be(path: Path) -> Check:
    folder = next(parent for parent in path.absolute().parents if parent.exists())
    if folder.is_dir() and os.access(folder, os.W_OK | os.X_OK):
        return Check("store", "ok", f"{path}, to be created")
    return Check("store", "problem", f"{path} cannot be created in {folder}", "choose another place with --store")


def _endpoints(config: Config) -> Iterator[Check]:
    for name, endpoint in config.endpoints.items():
        if endpoint.type != "openai":
            continue
        address = endpoint.base_url or os.environ.get("OPENAI_BASE_URL") or "OpenAI's own address"
        variable = endpoint.api_key_env
        if variable is not None and not os.environ.get(variable):
            yield Check(f"endpoint {name}", "note", f"{address}; {variable} is not set", f"export {variable}=…")
        else:
            yield Check(f"endpoint {name}", "ok", address)


async def _default_model(loaded: Loaded) -> Check:
    """The model of the default agent, found as a run would find it. A plug-in is not imported for that."""
    config = loaded.config
    agent = config.agents.get(config.default_agent)
    models = Models(config.endpoints, default_model=config.default_model, plugins=loaded.plugins)
    try:
        async with asyncio.timeout(_ENDPOINT_SECONDS):
            model = (agent.model if agent else None) or await models.default()
        models.get(model)
        if model == EMBEDDED:
            await asyncio.to_thread(embedded_files.checked_file)
    except SidecarError as error:
        return Check("default model", "problem", error.message, "set default_model in sidecar.toml, or see above")
    except TimeoutError:
        return Check("default model", "problem", "the endpoint did not list its models in time", "set OPENAI_MODEL")
    finally:
        await models.aclose()
    if model == EMBEDDED:
        return Check("default model", "ok", f"{model}; it shows the plumbing, and cannot converse")
    return Check("default model", "ok", model)


def _version(distribution: str) -> str | None:
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return None
