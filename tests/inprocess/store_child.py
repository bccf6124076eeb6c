"""The process behind `store_cases.Child`: a store, driven by lines of JSON on stdin. Not a test."""

import asyncio
import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

from providers.api.memory import Scope
from sidecar.stores.base import Event, Owner, StoreError, Unit
from sidecar.stores.sqlite import SqliteStore
from tests.inprocess.memory_cases import said, texts
from tests.inprocess.store_cases import TIME, first


def say(answer: object) -> None:
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()


async def do(store: SqliteStore, action: str, args: list[Any]) -> object:
    match action, args:
        case "create", [session]:
            return (await store.create(session, first(session), key="k")).epoch
        case "acquire", [session]:
            lease = await store.acquire(session)
            return [lease.epoch, lease.seq, lease.took_over]
        case "commit", [unit_id, session, epoch, seq, count]:
            events = [Event(n, "warning", TIME, b"{}") for n in range(seq + 1, seq + 1 + count)]
            return await store.commit(Unit(unit_id, session, epoch, seq, events))
        case "fill", [session, epoch, seq, count]:
            # Says each seq once it is durable, so that the parent knows what was acknowledged.
            for number in range(seq, seq + count):
                done = await store.commit(
                    Unit(f"{number}", session, epoch, number, [Event(number + 1, "x", TIME, b"")])
                )
                say(done)
            return "filled"
        case "fork", []:
            return fork()
        case "close", []:
            await store.close()
            return "closed"
        case _:
            return await do_memory(store, action, args)


async def do_memory(store: SqliteStore, action: str, args: list[Any]) -> object:
    match action, args:
        case "remember", [session, epoch, seq, user, memory_id, text]:
            write = said(memory_id, text, Scope(user_id=user))
            events = [Event(seq + 1, "warning", TIME, b"{}")]
            return await store.commit(Unit(os.urandom(8).hex(), session, epoch, seq, events, memory=[write]))
        case "search", [user, text]:
            return await texts(store, Scope(user_id=user), text)
        case "forget", [user]:
            return await store.memories.forget("memory", Scope(user_id=user), None)
        case _:
            raise ValueError(action)


def fork() -> int:
    """Fork, without `exec`, a process that does nothing; returns once it runs."""
    reading, writing = os.pipe()
    if (pid := os.fork()) == 0:
        os.write(writing, b"!")
        for fd in (0, 1, 2, writing):
            os.close(fd)
        signal.pause()
    os.read(reading, 1)
    return pid


async def main(path: str, since: str) -> None:
    store = SqliteStore(Path(path))
    opened = False
    loop = asyncio.get_running_loop()
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        action, *args = json.loads(line)
        try:
            if action == "open":
                answer: object = (await store.open(Owner(os.urandom(8).hex(), os.getpid(), since))).version
                opened = True
            else:
                answer = await do(store, action, args)
        except StoreError as error:
            answer = type(error).__name__
        say(answer)
    if opened:
        await store.close()


asyncio.run(main(*sys.argv[1:]))
