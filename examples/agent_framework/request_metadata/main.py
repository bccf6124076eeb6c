"""What the host says of a request reaches middleware, from there the session's state, and from there every tool."""

import asyncio
from pathlib import Path

from sidecar_client import SidecarClient

HERE = Path(__file__).parent


async def main() -> None:
    async with SidecarClient.start(["--config", "sidecar.toml", "--store", "memory"], cwd=str(HERE)) as client:
        session = await client.create_session(agent="request_metadata")
        result = await session.run("Hello!", properties={"request_id": "req-abc-123"})
        print(result["text"])
        print((await session.get_state()).get("state", {})["requestId"])


if __name__ == "__main__":
    asyncio.run(main())
