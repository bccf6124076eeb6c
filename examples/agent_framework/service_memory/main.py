"""Both memories, each in a session of its own: what is stored where, and what is put before the model of it."""

import asyncio
from pathlib import Path

from sidecar_client import RpcError, Session, SidecarClient

HERE = Path(__file__).parent


async def say(client: SidecarClient, session: Session, text: str) -> None:
    print("You:", text)
    run = session.stream(text)
    try:
        print("Agent:", (await run.result())["text"])
    except RpcError as error:
        print("Failed:", error.kind)
        return
    seen = await client.request("explainRun", {"sessionId": session.session_id, "runId": run.run_id})
    for message in seen["calls"][0]["messages"]:
        if message["source"]["type"] == "provider":
            print(f"From {message['source']['sourceId']}: {message['text']!r}")


async def main() -> None:
    async with SidecarClient.start(["--config", "sidecar.toml", "--store", "memory"], cwd=str(HERE)) as client:
        for agent in ["simple_service_memory", "advanced_service_memory"]:
            print(f"--- {agent}")
            session = await client.create_session(agent=agent)
            await say(client, session, "Are you offline?")
            print("State:", (await session.get_state()).get("state"))
            await say(client, session, "The spare key hangs behind the clock.")
            await say(client, session, "Where is the spare key?")
            await say(client, session, "And what is behind the clock?")
            print("State:", (await session.get_state()).get("state"))


if __name__ == "__main__":
    asyncio.run(main())
