"""Two conversations: where notes have a scope, the second one knows what was said in the first."""

import asyncio
from pathlib import Path

from sidecar_client import SidecarClient

HERE = Path(__file__).parent


async def main() -> None:
    async with SidecarClient.start(["--config", "sidecar.toml", "--store", "memory"], cwd=str(HERE)) as client:
        for agent in ["TravelAssistant", "ForgetfulAssistant"]:
            print(f"--- {agent}")
            for text in ["I travel by train and love mountains.", "Where shall I go?"]:
                session = await client.create_session(agent=agent)  # each time a new conversation
                print("You:", text)
                print("Agent:", (await session.run(text))["text"])


if __name__ == "__main__":
    asyncio.run(main())
