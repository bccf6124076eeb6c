"""The user names a favorite food; from then on the agent knows it, in this session and in no other."""

import asyncio
from pathlib import Path

from sidecar_client import Session, SidecarClient

HERE = Path(__file__).parent


async def say(session: Session, text: str) -> None:
    print("You:", text)
    print("Agent:", (await session.run(text))["text"])


async def main() -> None:
    async with SidecarClient.start(["--config", "sidecar.toml", "--store", "memory"], cwd=str(HERE)) as client:
        session = await client.create_session(agent="user_preference")
        await say(session, "What shall we cook?")
        await say(session, "My favorite food is sushi.")
        await say(session, "What shall we cook?")
        print("State:", (await session.get_state()).get("state"))

        other = await client.create_session(agent="user_preference")
        await say(other, "What shall we cook?")
        print("State:", (await other.get_state()).get("state"))


if __name__ == "__main__":
    asyncio.run(main())
