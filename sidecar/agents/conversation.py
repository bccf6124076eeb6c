"""What each model call of a run sees: context, input and what was said; or only what a service does not have yet.

Three ways, by who keeps the conversation: the run itself (the default), the model's service (only new messages are
sent), or a history that is fed and saved around every single call (`perServiceCallHistory`).
"""

from collections.abc import Sequence

from protocol.messages import Message
from providers.api.context import SessionContext
from providers.api.history import HistoryProvider
from providers.api.session import Session
from sidecar.errors import ConfigInvalid

from .binding import BoundProvider
from .output import Progress
from .pipeline import Pipeline, hook_failure


class RunConversation:
    """The conversation of one run."""

    def __init__(
        self,
        pipeline: Pipeline,
        context: SessionContext,
        session: Session,
        progress: Progress,
        instructions: tuple[Sequence[str], Sequence[str | None]],
        histories: Sequence[BoundProvider],
        *,
        is_at_service: bool,
        parked: Sequence[Message] | None = None,
    ) -> None:
        """Nothing is loaded yet.

        Args:
            pipeline: Puts context around the input.
            context: What providers have added.
            session: Where histories keep their state.
            progress: What was said so far.
            instructions: What stands before and behind the providers' instructions.
            histories: Those that are fed and saved around each call.
            is_at_service: The model's service is asked to keep the conversation.
            parked: What an earlier run has said to this input, where this one goes on from there.
        """
        self._pipeline = pipeline
        self._context = context
        self._session = session
        self._progress = progress
        self._before, self._behind = instructions
        self._histories = histories
        self._is_at_service = is_at_service
        self._input = context.input_messages
        """Without what joins under way: that stands in what was said."""
        self._parked = parked or ()
        self._goes_on = parked is not None
        self._is_input_saved = self._goes_on
        self._known_at_service = is_at_service and self._goes_on
        self._known = 0
        """How much of what was said the histories, or the service, have."""

    def instructions(self) -> str:
        """The agent's, the providers' and the run's, one below the other."""
        texts = (*self._before, *(instruction.text for instruction in self._context.instructions), *self._behind)
        return "\n".join(text for text in texts if text)

    async def messages(self) -> Sequence[Message]:
        """What the next call sees.

        Raises:
            ProviderFailed: a history could not be loaded.
        """
        said = self._progress.transcript
        if self._known_at_service:
            return said[self._known :]
        for bound in self._histories:
            await self._load(bound)
        if not any(map(self._loads, self._histories)):
            if self._goes_on:
                return self._gone_on(said)
            return [*self._pipeline.messages(self._input), *said]
        # Once saved with an earlier call, the input and what was said come out of the history.
        return [*self._pipeline.messages(() if self._is_input_saved else self._input), *said[self._known :]]

    def _gone_on(self, said: Sequence[Message]) -> list[Message]:
        """The same, where an earlier run's input and answer may stand in the history, or may not."""
        known = {message.message_id for message in self._pipeline.messages(())}
        inputs = [message for message in self._input if message.message_id not in known]
        earlier = [message for message in self._parked if message.message_id not in known]
        return [*self._pipeline.messages(inputs), *earlier, *said]

    def join(self, messages: Sequence[Message]) -> None:
        """Input of the host's came meanwhile."""
        self._context.input_messages += tuple(messages)

    async def answered(self, answer: Message | None, conversation_id: str | None) -> None:
        """A call has its answer: save it, or note that the service has it.

        Raises:
            ConfigInvalid: the service keeps the conversation, although the histories here were to.
            ProviderFailed: a history could not be saved.
        """
        said = self._progress.transcript
        news = [message for message in said[self._known :] if message is not answer]
        if conversation_id is not None:
            if self._histories and not self._is_at_service:
                raise ConfigInvalid(
                    "perServiceCallHistory keeps the history here, but the model's service has kept the conversation"
                    " too; set options.store to false, or leave out perServiceCallHistory",
                    key="perServiceCallHistory",
                )
            self._known_at_service, self._known = True, len(said)
        if self._histories:
            outputs = (answer,) if answer is not None else ()
            inputs = (*(() if self._is_input_saved else self._input), *news)
            for bound in self._histories:
                await self._save(bound, inputs, outputs)
            self._known, self._is_input_saved = len(said), True

    def _loads(self, bound: BoundProvider) -> bool:
        return bound.loads_history and not self._is_at_service

    async def _load(self, bound: BoundProvider) -> None:
        history = bound.provider
        if not isinstance(history, HistoryProvider) or not self._loads(bound):
            return
        try:
            await history.load(self._context, self._session.state_of(bound.state_key))
        except Exception as error:
            raise hook_failure(bound, "beforeRun", error) from error

    async def _save(self, bound: BoundProvider, inputs: Sequence[Message], outputs: Sequence[Message]) -> None:
        history = bound.provider
        if not isinstance(history, HistoryProvider):
            return
        try:
            await history.store(self._context, inputs, outputs, self._session.state_of(bound.state_key))
        except Exception as error:
            raise hook_failure(bound, "afterRun", error) from error
