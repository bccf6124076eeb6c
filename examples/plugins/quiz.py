"""An agent of one's own: it asks questions in turn, and lets a model do the praising."""

from collections.abc import AsyncIterator
from dataclasses import replace
from typing import cast

from protocol.messages import text_message
from providers.api.agent import AgentError, AgentRequest, CustomAgent
from providers.api.ports import ask
from providers.api.provider import ProviderConfig


class QuizConfig(ProviderConfig):
    """What is asked."""

    questions: dict[str, str]
    """Question → answer."""


class QuizAgent(CustomAgent):
    """Goes through its questions, one a run. How far it has come stands in the session's state."""

    config_type = QuizConfig

    async def run(self, request: AgentRequest) -> AsyncIterator[str]:
        """Judge the last answer, and ask the next question."""
        session = request.run.session
        if session is None:
            raise AgentError("a quiz needs a session")
        questions = list(cast("QuizConfig", self.config).questions.items())
        asked: int = session.state.get("asked", 0)
        if asked:
            yield await self._verdict(request, questions[asked - 1][1])
        if asked < len(questions):
            session.state["asked"] = asked + 1
            yield questions[asked][0]
        else:
            session.state["asked"] = 0
            yield "That was all."

    async def _verdict(self, request: AgentRequest, right: str) -> str:
        if right.casefold() not in request.input_text.casefold():
            return f"It is {right}. "
        praise = replace(request.chat_request(), messages=[text_message("user", "Praise me.")], tools=())
        answer = await ask(request.run.agent.chat_client(), praise)
        return f"{answer.text} "
