"""Who sends, and for whom, is the host's to say: with each run, and never by way of the model."""

import asyncio
from pathlib import Path

from sidecar_client import SidecarClient

HERE = Path(__file__).parent
UPDATE = "Email the launch update to finance@example.com"


async def main() -> None:
    async with SidecarClient.start(["--config", "sidecar.toml", "--store", "memory"], cwd=str(HERE)) as client:
        # A run without a session: what these values are for ends with it anyway.
        whole = {"user_id": "user-123", "tenant": "contoso"}
        print((await client.run(UPDATE, agent="send_email", functionInvocationKwargs=whole))["text"])

        user = {"user_id": "user-123"}
        print((await client.run(UPDATE, agent="send_email", functionInvocationKwargs=user))["text"])
        print((await client.run(UPDATE, agent="send_email"))["text"])

        print((await client.run(UPDATE, agent="enrich_tool_context", functionInvocationKwargs=user))["text"])

        in_my_name = "Email in my name: finance@example.com"
        print((await client.run(in_my_name, agent="inject_run_context", properties=whole))["text"])
        print((await client.run(in_my_name, agent="inject_run_context"))["text"])


if __name__ == "__main__":
    asyncio.run(main())
