"""Both memories, each in a session of its own: what is stored where, and what is put before the model of it."""

import asyncio
from pathlib import Path

from sidecar_client import RpcError, Session, SidecarClient

HERE = Path(__file__).parent


async def say(session: Session, text: str) -> None:
    print("You:", text)
    try:
        result = await session.run(text)
    except RpcError as error:
        print("Failed:", error.kind)
        return
    for message in (await session.explain_run(result["runId"]))["calls"][0]["messages"]:
        if message["source"]["type"] == "provider":
            print("Provider:", message.get("text"))
    print("Agent:", result["text"])


async def main() -> None:
    async with SidecarClient.start(["--config", "sidecar.toml", "--store", "memory"], cwd=str(HERE)) as client:
        for agent in ["simple_service_memory", "advanced_service_memory"]:
            print(f"--- {agent}")
            session = await client.create_session(agent=agent)
            await say(session, "Are you offline?")
            print("State:", (await session.get_state()).get("state"))
            await say(session, "The spare key hangs behind the clock.")
            await say(session, "Where is the spare key?")
            await say(session, "And what is behind the clock?")
            print("State:", (await session.get_state()).get("state"))


if __name__ == "__main__":
    asyncio.run(main())
