"""Answers what a sidecar asks its host while the command line runs it: by a person on the terminal, or with a no."""

import argparse
import asyncio
from typing import Final, cast

from sidecar_client import Host, SidecarClient
from sidecar_client.types import (
    ApprovalOutcome,
    ApprovalResponseBlock,
    ElicitParams,
    ElicitResult,
    Message,
    PendingRequest,
    RequestApprovalParams,
)

from .approval_prompt import ask_approval, rejection
from .asker import Asker, can_ask
from .form_prompt import ask_question
from .output import stderr
from .screen import Screen
from .visible import shortened, visible

NOBODY: Final = "nobody can be asked (no terminal, or --no-input)"
_TITLE_LENGTH: Final = 200
_LATE: Final = ("allowOnce", "rejectOnce")
"""The options of a call that waits in the store: its answer is a yes or a no."""


def no_input_option(parser: argparse.ArgumentParser) -> None:
    """Add `--no-input`."""
    parser.add_argument(
        "--no-input", action="store_true", help="never ask on the terminal: deny what needs consent, decline questions"
    )


class Asking:
    """Whom a command asks. Questions wait for each other.

    Attributes:
        host: For `SidecarClient.start`.
    """

    def __init__(self, screen: Screen, *, no_input: bool) -> None:
        self.host = Host(approve=self._approve, elicit=self._elicit)
        self._screen = screen
        self._asker = None if no_input or not can_ask() else Asker()
        self._turn = asyncio.Lock()

    async def parked(self, client: SidecarClient, session_id: str) -> list[Message] | None:
        """The input that goes on with a run which waits for consent; None where none does, or nobody can be asked.

        Where several runs wait, it is the first one's: each goes on in a run of its own.
        """
        if self._asker is None:
            return None
        state = await client.request("getState", {"sessionId": session_id, "include": ["pending"]})
        pending: list[PendingRequest] = sorted(state.get("pendingRequests", []), key=lambda one: one["openedAt"])
        approvals = [request for request in pending if request["kind"] == "approval"]
        if not approvals:
            return None
        answers: list[ApprovalResponseBlock] = []
        for request in (one for one in approvals if one["runId"] == approvals[0]["runId"]):
            call = cast("RequestApprovalParams", request["payload"])
            options = [option for option in call["options"] if option["kind"] in _LATE]
            outcome = await self._ask(self._asker, {**call, "options": options})
            answers.append(
                _response(request, outcome, allowed={o["optionId"] for o in options if o["kind"] == _LATE[0]})
            )
        return [{"role": "user", "content": [*answers]}]

    async def _approve(self, request: RequestApprovalParams) -> ApprovalOutcome:
        if self._asker is not None:
            return await self._ask(self._asker, request)
        self._tell(f"denied: {NOBODY}: {shortened(visible(request['title']), _TITLE_LENGTH)}")
        return rejection(request["options"], NOBODY)

    async def _ask(self, asker: Asker, request: RequestApprovalParams) -> ApprovalOutcome:
        async with self._turn:
            self._screen.pause()
            return await ask_approval(asker, request)

    async def _elicit(self, question: ElicitParams) -> ElicitResult:
        if self._asker is None:
            self._tell(f"declined: {NOBODY}: {shortened(visible(question['message']), _TITLE_LENGTH)}")
            return {"action": "decline"}
        async with self._turn:
            self._screen.pause()
            return await ask_question(self._asker, question)

    def _tell(self, text: str) -> None:
        self._screen.pause()
        stderr().line(f"agent-sidecar: {text}", "yellow")


def _response(request: PendingRequest, outcome: ApprovalOutcome, allowed: set[str]) -> ApprovalResponseBlock:
    response = ApprovalResponseBlock(
        type="approvalResponse", requestId=request["requestId"], approved=outcome.get("optionId") in allowed
    )
    return {**response, "message": outcome["message"]} if "message" in outcome else response
