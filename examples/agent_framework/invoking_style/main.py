"""Three turns, a restart, and a fourth turn with a memory that was made again out of what it had serialized."""

import asyncio
import json
from pathlib import Path
from tempfile import TemporaryDirectory

from sidecar_client import Session, SidecarClient

HERE = Path(__file__).parent
HELLO = "Hello, what is the square root of 9?"


async def say(session: Session, text: str) -> None:
    print("You:", text)
    print("Agent:", (await session.run(text))["text"])


async def main() -> None:
    with TemporaryDirectory() as folder:
        arguments = ["--config", "sidecar.toml", "--store", f"sqlite:{folder}/sessions.db"]
        async with SidecarClient.start(arguments, cwd=str(HERE)) as client:
            session = await client.create_session(agent="invoking_style")
            for text in [HELLO, "My name is Ruaidhrí", "I am 20 years old"]:
                await say(session, text)
        async with SidecarClient.start(arguments, cwd=str(HERE)) as client:
            session = await client.resume_session(session.session_id)
            await say(session, HELLO)
            known = json.loads((await session.get_state()).get("state", {})["user_info"]["serialized"])
            print("MEMORY - User Name:", known["name"])
            print("MEMORY - User Age:", known["age"])


if __name__ == "__main__":
    asyncio.run(main())
