"""What tools leave in a session's state: their own agent's, and those of an agent that it asks."""

import asyncio
from pathlib import Path

from sidecar_client import Session, SidecarClient

HERE = Path(__file__).parent


async def show(session: Session, key: str) -> None:
    print(f"{key}:", (await session.get_state()).get("state", {}).get(key))


async def main() -> None:
    async with SidecarClient.start(["--config", "sidecar.toml", "--store", "memory"], cwd=str(HERE)) as client:
        friday = "Remember that the budget review is on Friday."
        memory = await client.create_session(agent="MemoryAgent")
        print((await memory.run(friday))["text"])
        await show(memory, "topic")
        print((await client.run(friday, agent="MemoryAgent"))["text"])

        for agent in ["Coordinator", "CarefulCoordinator"]:
            print(f"--- {agent}")
            session = await client.create_session(agent=agent)
            result = await session.run("Find out about tea.", functionInvocationKwargs={"user_id": "user-123"})
            print(result["text"])
            await show(session, "findings")
            await show(session, "found_for")


if __name__ == "__main__":
    asyncio.run(main())
