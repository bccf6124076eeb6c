"""`memory list|search|delete|export`: what agents remember of somebody, by the same requests that any host sends.

`memory embed` is of another kind, and has a file of its own.
"""

import argparse
import asyncio
import json
import sys
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any, Final, cast

from sidecar_client import SidecarClient
from sidecar_client.types import (
    DeleteMemoriesParams,
    ListMemoriesParams,
    MemoryItem,
    MemoryScope,
    SearchMemoriesParams,
)

from .command import Arguments, Command, CommandError, serve_arguments, shared_options
from .memory_embed import add_embed
from .output import Output, stdout

_SCOPE_KEYS: Final = ("applicationId", "agentId", "sessionId", "userId")
_TYPES: Final = ("chat_history_memory", "file_memory")
_PAGE: Final = 1_000
_SHOWN: Final = 100
"""Characters of a memory in a table."""

Action = Callable[[SidecarClient, Arguments, Output], Coroutine[Any, Any, None]]


def _configure(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(title="what to do", metavar="ACTION", required=True)
    listing = _action(actions, "list", _list, "everything that is remembered in a scope, newest first")
    listing.add_argument("--json", action="store_true", help="print a JSON array")
    searching = _action(actions, "search", _search, "what is remembered and fits a question, best first")
    searching.add_argument("query", metavar="QUESTION")
    searching.add_argument("--limit", metavar="N", type=int, default=10, help="the most to show; default: 10")
    searching.add_argument("--json", action="store_true", help="print a JSON array")
    deleting = _action(actions, "delete", _delete, "erase memories for good; those of a turn go together")
    deleting.add_argument("memory", metavar="ID", nargs="*")
    deleting.add_argument("--all", action="store_true", help="everything in the scope")
    deleting.add_argument("--yes", action="store_true", help="do not ask")
    _action(actions, "export", _export, "everything that is remembered in a scope, one JSON object a line")
    add_embed(actions)


def _action(actions: Any, name: str, action: Action, summary: str) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = actions.add_parser(
        name, help=summary, description=summary, parents=[shared_options(again=True)]
    )
    parser.add_argument(
        "--scope",
        metavar="KEY=VALUE",
        action="append",
        required=True,
        help=f"whose memory: {', '.join(_SCOPE_KEYS)}; more than one narrows it down",
    )
    parser.add_argument("--collection", metavar="NAME", help="default: memory")
    parser.add_argument("--type", choices=_TYPES, default=_TYPES[0], help=f"whose kind of memory; default: {_TYPES[0]}")
    parser.set_defaults(perform=_perform, action=action)
    return parser


def _execute(arguments: Arguments) -> int:
    code: int = arguments.perform(arguments)
    return code


def _perform(arguments: Arguments) -> int:
    arguments.whose = _scope(arguments.scope)
    if arguments.action is _delete and bool(arguments.memory) is arguments.all:
        raise CommandError("name the memories to erase, or --all: agent-sidecar memory delete --scope … ID", 2)
    asyncio.run(_act(arguments))
    return 0


def _scope(pairs: list[str]) -> MemoryScope:
    scope: dict[str, str] = {}
    for pair in pairs:
        key, _, value = pair.partition("=")
        if key not in _SCOPE_KEYS or not value.strip():
            raise CommandError(f"--scope {pair}: say KEY=VALUE; the keys are {', '.join(_SCOPE_KEYS)}", 2)
        if key in scope:
            raise CommandError(f"--scope {pair}: {key} is given twice", 2)
        scope[key] = value
    return cast("MemoryScope", scope)


async def _act(arguments: Arguments) -> None:
    async with SidecarClient.start(serve_arguments(arguments)) as client:
        await arguments.action(client, arguments, stdout())


async def _list(client: SidecarClient, arguments: Arguments, out: Output) -> None:
    found = [item async for item in _items(client, arguments)]
    if arguments.json:
        out.line(json.dumps(found, ensure_ascii=False, indent=1))
    else:
        out.table(("memory", "said", "by", "text"), [_row(item) for item in found])


async def _search(client: SidecarClient, arguments: Arguments, out: Output) -> None:
    params = SearchMemoriesParams(
        scope=arguments.whose, type=arguments.type, query=arguments.query, limit=arguments.limit
    )
    if arguments.collection is not None:
        params["collection"] = arguments.collection
    found = (await client.search_memories(**params))["items"]
    if arguments.json:
        out.line(json.dumps(found, ensure_ascii=False, indent=1))
    else:
        rows = [(f"{item['score']:.2f}", *_row(cast("MemoryItem", item))) for item in found]
        out.table(("score", "memory", "said", "by", "text"), rows)


async def _delete(client: SidecarClient, arguments: Arguments, out: Output) -> None:
    if not arguments.yes:
        await _ask(client, arguments, out)
    out.line(f"deleted: {await client.delete_memories(**_doomed(arguments))}")


def _doomed(arguments: Arguments) -> DeleteMemoriesParams:
    params = DeleteMemoriesParams(scope=arguments.whose, type=arguments.type)
    if arguments.collection is not None:
        params["collection"] = arguments.collection
    if arguments.all:
        params["all"] = True
    else:
        params["memoryIds"] = arguments.memory
    return params


async def _ask(client: SidecarClient, arguments: Arguments, out: Output) -> None:
    """Let the person at the terminal decide.

    Raises:
        CommandError: There is nobody to ask, or the answer is no.
    """
    if not (out.is_terminal and sys.stdin.isatty()):
        raise CommandError("this erases memories for good; say --yes where nobody can be asked", 2)
    count = sum([1 async for _ in _items(client, arguments)]) if arguments.all else len(arguments.memory)
    whose = " ".join(arguments.scope)
    out.write(f"Erase {count} of the memories of {whose} for good? [y/N] ")
    answer = await asyncio.to_thread(sys.stdin.readline)
    if answer.strip().casefold() not in ("y", "yes"):
        raise CommandError("nothing was erased")


async def _export(client: SidecarClient, arguments: Arguments, out: Output) -> None:
    async for item in _items(client, arguments):
        sys.stdout.write(json.dumps(item, ensure_ascii=False) + "\n")  # as it is: a document is for programs


async def _items(client: SidecarClient, arguments: Arguments) -> AsyncIterator[MemoryItem]:
    params = ListMemoriesParams(scope=arguments.whose, type=arguments.type, limit=_PAGE)
    if arguments.collection is not None:
        params["collection"] = arguments.collection
    while True:
        page = await client.list_memories(**params)
        for item in page["items"]:
            yield item
        if "nextCursor" not in page:
            return
        params["cursor"] = page["nextCursor"]


def _row(item: MemoryItem) -> tuple[str, str, str, str]:
    """A memory on one line."""
    text = " ".join(item["text"].split())
    cut = text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"
    return item["memoryId"], item.get("createdAt", ""), item.get("role", ""), cut


COMMAND = Command(
    "memory", "list, search, erase or export what is remembered of somebody; embed it anew", _configure, _execute
)
