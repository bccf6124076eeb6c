"""`sessions list|show|export|import|delete`: what is stored, by the same requests that any host sends."""

import argparse
import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator, Callable, Coroutine
from pathlib import Path
from typing import Any, Final, cast

from sidecar_client import RpcError, SidecarClient
from sidecar_client.types import JsonObject, ListSessionsParams, SessionInfo

from .command import Arguments, Command, CommandError, serve_arguments, shared_options
from .output import Output, stdout
from .session_text import COLUMNS, describe_message, describe_state, row, transcript

ANY_SIZE: Final = 2**53 - 1
"""`maxMessageBytes` of a client that takes a session of any length."""
_PAGE: Final = 1_000

Action = Callable[[SidecarClient, Arguments, Output], Coroutine[Any, Any, None]]


def _configure(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(title="what to do", metavar="ACTION", required=True)
    listing = _action(actions, "list", _list, "every stored session, newest first")
    listing.add_argument("--query", metavar="TEXT", help="only those with this text in title or id")
    listing.add_argument("--archived", action="store_true", help="those that are archived, instead")
    listing.add_argument("--json", action="store_true", help="print a JSON array")
    showing = _action(actions, "show", _show, "a session's state and messages")
    showing.add_argument("session", metavar="ID")
    showing.add_argument("--json", action="store_true", help="print one JSON object")
    exporting = _action(actions, "export", _export, "a whole session as one JSON document")
    exporting.add_argument("session", metavar="ID")
    exporting.add_argument("--file", metavar="F", type=Path, help="where to write it; default: to stdout")
    importing = _action(actions, "import", _import, "make a session out of an exported document")
    importing.add_argument("document", metavar="FILE", help="the document; - reads it from stdin")
    importing.add_argument("--as", dest="session", metavar="ID", help="default: the id in the document")
    deleting = _action(actions, "delete", _delete, "remove sessions for good")
    deleting.add_argument("session", metavar="ID", nargs="+")


def _action(actions: Any, name: str, action: Action, summary: str) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = actions.add_parser(
        name, help=summary, description=summary, parents=[shared_options(again=True)]
    )
    parser.set_defaults(action=action)
    return parser


def _execute(arguments: Arguments) -> int:
    asyncio.run(_act(arguments))
    return 0


async def _act(arguments: Arguments) -> None:
    options: JsonObject = {"maxMessageBytes": ANY_SIZE}
    async with SidecarClient.start(serve_arguments(arguments), options=options) as client:
        await arguments.action(client, arguments, stdout())


async def _list(client: SidecarClient, arguments: Arguments, out: Output) -> None:
    found = [session async for session in _stored(client, arguments)]
    if arguments.json:
        out.line(json.dumps(found, ensure_ascii=False, indent=1))
    else:
        out.table(COLUMNS, [row(session) for session in found])


async def _stored(client: SidecarClient, arguments: Arguments) -> AsyncIterator[SessionInfo]:
    params = ListSessionsParams(limit=_PAGE, archived=arguments.archived)
    if arguments.query is not None:
        params["query"] = arguments.query
    while True:
        page = await client.list_sessions(**params)
        for session in page["sessions"]:
            yield session
        if "nextCursor" not in page:
            return
        params["cursor"] = page["nextCursor"]


async def _show(client: SidecarClient, arguments: Arguments, out: Output) -> None:
    state = await client.request("getState", {"sessionId": arguments.session})
    messages = [message async for message in transcript(arguments.session, client)]
    if arguments.json:
        out.line(json.dumps({"state": state, "messages": messages}, ensure_ascii=False, indent=1))
        return
    out.write(describe_state(state))
    for message in messages:
        out.line(describe_message(message))


async def _export(client: SidecarClient, arguments: Arguments, out: Output) -> None:
    document = await client.export_session(arguments.session)
    text = json.dumps(document, ensure_ascii=False, indent=1) + "\n"
    if arguments.file is None:
        sys.stdout.write(text)  # as it is: a document is for programs
        return
    await asyncio.to_thread(_write_private, arguments.file, text)
    out.line(f"exported: {arguments.session} to {arguments.file}, {len(document['messages'])} messages")


def _write_private(path: Path, text: str) -> None:
    """Write a file that its owner alone can read, whole or not at all.

    Raises:
        CommandError: It cannot be written.
    """
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        file = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        try:
            with open(file, "w", encoding="utf-8") as stream:
                stream.write(text)
            beside.replace(path)
        finally:
            beside.unlink(missing_ok=True)
    except OSError as error:
        raise CommandError(f"cannot write {path}: {error.strerror}") from error


async def _import(client: SidecarClient, arguments: Arguments, out: Output) -> None:
    document = _read_document(arguments.document)
    session = await client.import_session(document, arguments.session)
    out.line(f"imported: {session['sessionId']}")


def _read_document(name: str) -> JsonObject:
    try:
        text = sys.stdin.read() if name == "-" else Path(name).read_text(encoding="utf-8")
        document: Any = json.loads(text)
    except OSError as error:
        raise CommandError(f"cannot read {name}: {error.strerror}") from error
    except ValueError as error:
        raise CommandError(f"{name} is no JSON document: {error}") from error
    if not isinstance(document, dict):
        raise CommandError(f"{name} is no exported session")
    return cast("JsonObject", document)


async def _delete(client: SidecarClient, arguments: Arguments, out: Output) -> None:
    """Delete each one, whatever became of the others.

    Raises:
        CommandError: Some are not there, or in use.
    """
    failed: list[str] = []
    for session_id in arguments.session:
        try:
            await client.request("getState", {"sessionId": session_id, "include": ["session"]})  # is it there?
            await client.delete_session(session_id)
        except RpcError as error:
            failed.append(f"{session_id}: {error.message}")
        else:
            out.line(f"deleted: {session_id}")
    if failed:
        raise CommandError("\n".join(failed))


COMMAND = Command("sessions", "list, show, export, import or delete stored sessions", _configure, _execute)
