"""What is meant for the chat client goes to it, and what is meant for tools goes to tools."""

import asyncio
from pathlib import Path

from sidecar_client import RpcError, SidecarClient

HERE = Path(__file__).parent


async def main() -> None:
    async with SidecarClient.start(["--config", "sidecar.toml", "--store", "memory"], cwd=str(HERE)) as client:
        session = await client.create_session(agent="chat_client")
        print((await session.run("Good morning", clientKwargs={"region": "eu-west"}))["text"])

        both = await session.run(
            "Tell ann@example.com",
            functionInvocationKwargs={"user_id": "user-123"},
            clientKwargs={"region": "eu-west"},
        )
        print(both["text"])

        try:
            await session.run("Hello?", clientKwargs={"region": "nowhere"})
        except RpcError as error:
            print(f"{error.kind}: {error}")


if __name__ == "__main__":
    asyncio.run(main())
