"""Three turns in which the agent gets to know its user: `main.py [MODEL]`, for example `embedded:smollm2-135m`."""

import asyncio
import sys
from pathlib import Path

from sidecar_client import SidecarClient
from sidecar_client.types import CreateSessionParams

HERE = Path(__file__).parent


async def main(models: list[str]) -> None:
    async with SidecarClient.start(["--config", "sidecar.toml", "--store", "memory"], cwd=str(HERE)) as client:
        wanted: CreateSessionParams = {"agent": "user_info_memory"}
        if models:
            wanted["model"] = models[0]
        session = await client.create_session(**wanted)
        for text in ["Hello, what is the square root of 9?", "My name is Ruaidhrí", "I am 20 years old"]:
            print("You:", text)
            # A few words will do, and a small model finds no end by itself.
            print("Agent:", (await session.run(text, options={"maxOutputTokens": 16}))["text"])
        known = (await session.get_state()).get("state", {}).get("user_info", {})
        print("MEMORY - User Name:", known.get("name"))
        print("MEMORY - User Age:", known.get("age"))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1:]))
