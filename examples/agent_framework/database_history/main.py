"""A conversation that outlives its sidecar and its session, because its history is in a database of one's own."""

import asyncio
from pathlib import Path
from tempfile import TemporaryDirectory

from sidecar_client import Session, SidecarClient
from sidecar_client.types import JsonObject

HERE = Path(__file__).parent
ARGUMENTS = ["--config", "sidecar.toml", "--store", "memory"]


async def say(session: Session, text: str) -> None:
    print("You:", text)
    print("Agent:", (await session.run(text))["text"])


async def state_of(session: Session, source_id: str) -> JsonObject:
    return (await session.get_state()).get("state", {})[source_id]


async def goes_on(folder: str) -> None:
    async with SidecarClient.start(ARGUMENTS, cwd=str(HERE)) as client:
        session = await client.create_session(agent="database_history", cwd=folder)
        await say(session, "Hello")
        await say(session, "Hello")
        kept = await state_of(session, "db-history")
    async with SidecarClient.start(ARGUMENTS, cwd=str(HERE)) as client:
        session = await client.create_session(agent="database_history", cwd=folder, state={"db-history": kept})
        print("--- another sidecar, another session, the same key")
        await say(session, "Hello again")


async def is_audited(folder: str) -> None:
    async with SidecarClient.start(ARGUMENTS, cwd=str(HERE)) as client:
        session = await client.create_session(agent="primary_and_audit", cwd=folder)
        print("--- primary and audit")
        await say(session, "Hello")
        await say(session, "Good bye")
        for message in (await state_of(session, "audit"))["messages"]:
            source = message.get("source", {})
            print(source.get("sourceId", message["role"]), "said:", message["content"][0]["text"])


async def main() -> None:
    with TemporaryDirectory() as folder:
        await goes_on(folder)
        await is_audited(folder)


if __name__ == "__main__":
    asyncio.run(main())
