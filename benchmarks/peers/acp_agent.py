"""An agent of the `agent-client-protocol` package: a prompt `N` is answered with N pieces of text."""

import asyncio
from typing import Any

from acp import (
    Client,
    InitializeResponse,
    NewSessionResponse,
    PromptResponse,
    run_agent,
    update_agent_message_text,
)


class Peer:
    """Knows one session."""

    client: Client

    def on_connect(self, conn: Client) -> None:
        self.client = conn

    async def initialize(self, protocol_version: int, **ignored: Any) -> InitializeResponse:
        return InitializeResponse(protocol_version=protocol_version)

    async def new_session(self, cwd: str, **ignored: Any) -> NewSessionResponse:
        return NewSessionResponse(session_id="bench")

    async def prompt(self, session_id: str, prompt: list[Any], **ignored: Any) -> PromptResponse:
        for _ in range(int(prompt[0].text)):
            await self.client.session_update(session_id, update_agent_message_text("word "))
        return PromptResponse(stop_reason="end_turn")


if __name__ == "__main__":
    asyncio.run(run_agent(Peer()))
