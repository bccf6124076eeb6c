"""One instruction for every run, and one number that is counted after it."""

import asyncio
from pathlib import Path

from sidecar_client import SidecarClient

HERE = Path(__file__).parent


async def main() -> None:
    async with SidecarClient.start(["--config", "sidecar.toml", "--store", "memory"], cwd=str(HERE)) as client:
        session = await client.create_session(agent="callback_provider")
        for text in ["What is JSON-RPC?", "And stdio?"]:
            print("You:", text)
            print("Agent:", (await session.run(text))["text"])
        print("State:", (await session.get_state()).get("state"))


if __name__ == "__main__":
    asyncio.run(main())
