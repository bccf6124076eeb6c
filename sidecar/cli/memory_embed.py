"""`memory embed`: makes a collection's vectors anew, after another embedder was chosen. Nothing else can mend that."""

import argparse
import asyncio
import os
from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from .command import Arguments, CommandError, shared_options
from .output import Output, stdout

if TYPE_CHECKING:
    from sidecar.config.model import Config
    from sidecar.memory.vector_filler import OnProgress

_SUMMARY: Final = "make a collection's vectors anew, by the embedder that is configured now"


def add_embed(actions: Any) -> None:
    """Declare the action."""
    parser: argparse.ArgumentParser = actions.add_parser(
        "embed", help=_SUMMARY, description=_SUMMARY, parents=[shared_options(again=True)]
    )
    parser.add_argument("--collection", metavar="NAME", help="default: memory")
    parser.set_defaults(perform=_embed)


def _embed(arguments: Arguments) -> int:
    from sidecar.errors import SidecarError

    from .config import load_config

    try:
        config = load_config(arguments).config
    except SidecarError as error:
        raise CommandError(error.message) from error
    asyncio.run(_anew(config, arguments.collection, stdout()))
    return 0


async def _anew(config: "Config", collection: str | None, out: Output) -> None:
    from providers.api.memory import EmbedderError
    from providers.chat_history_memory_config import DEFAULT_COLLECTION
    from sidecar.memory.vector_filler import VectorFiller
    from sidecar.models.embedders.configured import ConfiguredEmbedder
    from sidecar.sessions.ids import new_id, now
    from sidecar.stores.base import Owner, StoreError
    from sidecar.stores.registry import make_store

    name = DEFAULT_COLLECTION if collection is None else collection
    source = ConfiguredEmbedder(config, {})
    store = make_store(config.store.path or "sqlite", durability=config.store.durability)
    try:
        embedder = await source.find()
        if embedder is None:
            raise CommandError("there is no embedder; agent-sidecar setup embeddings installs one")
        await store.open(Owner(id=new_id("own"), pid=os.getpid(), since=now()))
        with _shown(out) as on_progress:
            count = await VectorFiller(store.memories, embedder).embed_anew(name, on_progress)
    except (EmbedderError, StoreError) as error:
        raise CommandError(
            f"not all of {name!r} is embedded, the rest follows by itself or by this: {error}"
        ) from error
    finally:
        await store.close()
        await source.aclose()
    out.line(f"embedded: {count} of {name} by {embedder.name}")


@contextmanager
def _shown(out: Output) -> "Generator[OnProgress | None]":
    """A bar on a terminal; nothing elsewhere."""
    if out.console is None:
        yield None
        return
    from rich.progress import Progress

    with Progress(console=out.console, transient=True) as bar:
        task = bar.add_task("embedding", total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)
