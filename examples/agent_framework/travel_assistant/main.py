"""Two conversations in two processes: a user's files outlast both, and the second one knows what the first was told."""

import asyncio
from pathlib import Path
from tempfile import TemporaryDirectory

from sidecar_client import SidecarClient

HERE = Path(__file__).parent
USER_ID = "ada"


async def main() -> None:
    for agent in ["TravelAssistant", "ForgetfulAssistant"]:
        print(f"--- {agent}")
        with TemporaryDirectory() as folder:
            for text in ["I travel by train and love mountains.", "Where shall I go?"]:
                await converse(agent, text, folder)


async def converse(agent: str, text: str, folder: str) -> None:
    async with SidecarClient.start(["--config", "sidecar.toml", "--store", "memory"], cwd=str(HERE)) as client:
        session = await client.create_session(agent=agent, cwd=folder, state={"memory_scope": f"users/{USER_ID}"})
        print("You:", text)
        print("Agent:", (await session.run(text))["text"])


if __name__ == "__main__":
    asyncio.run(main())
