"""Seven orders, each in a session of its own: `main.py [MODEL]`; what the model is shown: `main.py --track [MODEL]`."""

import asyncio
import sys
from pathlib import Path

from sidecar_client import Session, SidecarClient

HERE = Path(__file__).parent
FIRST = "帮我点一份外卖。一荤一素。我不能吃辣。"
LATER = "帮我点一份外卖。"
ORDERS = [("Alice", FIRST), *[("Alice", LATER)] * 4, *[("Bob", LATER)] * 2]


async def new_session(client: SidecarClient, agent: str, user: str, model: str | None) -> Session:
    """A new conversation of a user. Whose memory it uses is settled here, and never by what is said in it."""
    if model is None:
        return await client.create_session(agent=agent, state={"user_id": user})
    return await client.create_session(agent=agent, state={"user_id": user}, model=model)


async def order(client: SidecarClient, model: str | None) -> None:
    for user, text in ORDERS:
        session = await new_session(client, "takeaway", user, model)
        print(f"--- 来自 {user} 的订单")
        print((await session.run(text))["text"])


async def track(client: SidecarClient, model: str | None) -> None:
    for agent, text in [("tracked", FIRST), ("tracked", LATER), ("on_demand", LATER)]:
        session = await new_session(client, agent, "Alice", model)
        print(f"--- {agent}: {text}")
        run = session.stream(text)
        async for event in run:
            if event["type"] == "provider.progress":
                print("tracking:", event["data"].get("message"))
        # The same without a provider of one's own, and afterwards too: a run can be explained as long as it is kept.
        shown = (await session.explain_run(run.run_id))["calls"][0]
        for seen in [*shown["messages"], *shown["tools"]]:
            if seen["source"]["type"] == "provider":
                print("explainRun:", seen["source"].get("sourceId"), "adds", seen.get("text") or seen.get("name"))


async def main(arguments: list[str]) -> None:
    model = next((argument for argument in arguments if argument != "--track"), None)
    # A store in memory ends with the process; leave `--store` out, and users are remembered until you delete it.
    async with SidecarClient.start(["--config", "sidecar.toml", "--store", "memory"], cwd=str(HERE)) as client:
        await (track if "--track" in arguments else order)(client, model)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1:]))
