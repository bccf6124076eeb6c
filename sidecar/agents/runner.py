"""Runs an agent once: middleware, providers, the loop of model and tools, providers again. Knows no store, no wire.

run middleware ─ providers before ─ [ model middleware ─ model ] ─ [ tool middleware ─ tool ] ─ … ─ providers after
"""

from collections.abc import Sequence

from protocol.base import JsonObject
from protocol.messages import Message, Source
from providers.api.agent import AgentRequest, CustomAgent
from providers.api.context import Instruction, OfferedTool, Response, SessionContext
from providers.api.history import HistoryProvider
from providers.api.invocation import ToolChanges
from providers.api.memory import MemoryRecord
from providers.api.middleware import AgentContext, processor_of
from providers.api.ports import ChatClient, ChatRequest
from providers.api.run_context import RunContext, enter_run
from providers.api.session import Session

from .binding import BoundProvider
from .consent import ConsentGate
from .conversation import RunConversation
from .custom_agent import CustomRun, UnnamedModel
from .explain import BY_THE_RUN, Sight, maker_now
from .guards import through_guards
from .loop import ModelLoop, completed_draft
from .metering import MeteredClient
from .middleware_answer import messages_of
from .model_call import ModelCaller
from .output import Progress
from .parts import BoundMiddleware
from .pipeline import HookStats, Pipeline
from .plan import AgentPlan
from .run_request import ModelSource, RunRequest
from .sink import RunSink
from .steering import Steering
from .structured import parse_value
from .tool_batch import ToolBatches


class Execution:
    """One run of one agent. `run` does the work; `failed` tells the providers when it could not be done."""

    def __init__(
        self,
        plan: AgentPlan,
        request: RunRequest,
        session: Session,
        context_session_id: str | None,
        models: ModelSource,
        sink: RunSink,
        stats: dict[str, HookStats],
    ) -> None:
        self.progress = Progress(meter=request.meter)
        self.steering = Steering()
        self._plan = plan
        self._request = request
        self._session = session
        self._has_session = context_session_id is not None
        self._models = models
        self._sink = sink
        self._client: ChatClient | None = None
        self._middleware = (*plan.middleware, *request.middleware)
        self._context = SessionContext(
            session_id=context_session_id,
            input_messages=request.input_messages,
            options=request.options,
            service_session_id=session.service_session_id,
            properties=request.properties,
        )
        self._context.run_messages = request.context_messages
        self._context.tools.extend(plan.tools)
        self._pipeline = Pipeline(plan, self, session, self._context, sink, stats, shares_state=request.shares_state)
        self.progress.meter.calls.phases = self._pipeline.phases
        self.progress.meter.calls.sight = self._sight()

    @property
    def name(self) -> str:
        """The agent's name."""
        return self._plan.name

    @property
    def instructions(self) -> str:
        """The agent's own instructions."""
        return "\n".join(self._plan.instructions)

    def chat_client(self, model: str | None = None) -> ChatClient:
        """A client for a provider's own calls; they count in this run's usage."""
        return self._metered(model, maker_now())

    def _metered(self, model: str | None, maker: Source) -> ChatClient:
        client = self._models.get(model) if model is not None else self._client
        if client is None:
            raise RuntimeError("the run has no model yet")
        return MeteredClient(client, self.progress.meter, maker)

    @property
    def memories(self) -> Sequence[MemoryRecord]:
        """What providers want remembered of this run."""
        return self._context.memories

    async def run(self) -> None:
        """Do the run; what came of it stands in `progress`.

        Raises:
            SidecarError: a provider, the model or middleware failed.
        """
        self._client = await self._find_model()
        around = [bound for bound in self._middleware if bound.kind == "agent"]
        if around:
            await self._within(around)
        else:
            await self._answer(self._run_context(self._request.kwargs, self._request.client_kwargs))
        self.progress.answered = True
        self.progress.stage = "ending"

    async def _find_model(self) -> ChatClient:
        model = self._request.options.model or self._plan.model
        if model is None and self._plan.implementation is not None:
            return UnnamedModel(self._models)
        return await self._models.ready(model if model is not None else await self._models.default())

    async def failed(self, error: Exception) -> None:
        """Give every provider that had begun the error and the partial text."""
        await self._pipeline.failed(error, self.progress.partial_text)

    async def _within(self, around: Sequence[BoundMiddleware]) -> None:
        """The run, with its middleware around it."""
        request = self._request
        context = AgentContext(
            agent=self,
            session=self._session if self._has_session else None,
            messages=list(request.input_messages),
            options=request.options,
            properties=request.properties,
            kwargs=dict(request.kwargs),
            client_kwargs=dict(request.client_kwargs),
            is_streaming=request.is_streaming,
        )
        own: list[Response] = []

        async def inside() -> None:
            self._context.input_messages = tuple(context.messages)
            self._context.options = context.options
            await self._answer(self._run_context(context.kwargs, context.client_kwargs))
            own.append(self._response())
            context.result = own[0]

        enter_run(self._run_context(context.kwargs, context.client_kwargs))
        layers = [processor_of(bound.middleware) for bound in around]
        limit_s = self._plan.limits.middleware_timeout_ms / 1000
        await through_guards(layers, context, inside, kind="agent", limit_s=limit_s)
        if not own:
            await self._answer_instead(messages_of(context.result, around, request.run_id))
        elif context.result is not own[0]:
            await self._answer_otherwise(messages_of(context.result, around, request.run_id))

    async def _answer_instead(self, messages: Sequence[Message]) -> None:
        """Middleware left the run out: what it says is the answer."""
        if not messages:
            self._sink.warn("runLeftOut", "middleware left the run out, and gave no answer")
        for message in messages:
            self.progress.add(message)
        await self._sink.commit(*map(completed_draft, messages))
        if self._request.response_schema is not None:
            await self._parse(self._request.response_schema)

    async def _answer_otherwise(self, messages: tuple[Message, ...]) -> None:
        """Middleware answers something else than the agent did: the host is told that, the transcript keeps both."""
        self.progress.override = messages
        await self._sink.commit(*(completed_draft(message, in_history=False) for message in messages))
        if self._request.response_schema is not None:
            await self._parse(self._request.response_schema)

    async def _answer(self, run: RunContext) -> None:
        """Providers, the loop, providers."""
        request, progress = self._request, self.progress
        enter_run(run)
        client = self._metered(None, Source(type="agent", source_id=self.name))
        progress.stage = "beforeRun"
        histories, is_at_service = self._decide_history(client)
        progress.conversation_id = self._session.service_session_id if is_at_service else None
        try:
            await self._pipeline.before()
        finally:
            await self._sink.commit()
        progress.stage = "model"
        conversation = self._conversation(histories, is_at_service=is_at_service)
        if self._plan.implementation is not None:
            await self._own_run(self._plan.implementation, run, client, conversation).run()
        else:
            await self._loop(run, client, conversation).run()
        if is_at_service and progress.conversation_id is None:
            self._sink.warn("serviceKeptNothing", "the model's service kept no conversation: the next run begins anew")
        progress.answered = not any(bound.kind == "agent" for bound in self._middleware)
        if request.response_schema is not None:
            await self._parse(request.response_schema)
        if progress.is_parked:
            return  # its providers hear of it from the run that goes on from here
        progress.stage = "afterRun"
        self._context.response = self._response()
        await self._pipeline.after()

    def _decide_history(self, client: ChatClient) -> tuple[list[BoundProvider], bool]:
        """Who keeps the conversation in this run; the agent itself is never changed by it.

        Returns:
            The histories that are fed and saved around each model call, and whether the model's service keeps it.
        """
        is_at_service = self._is_at_service(client)
        per_call: list[BoundProvider] = []
        left_out: set[str] = set()
        for bound in self._plan.providers:
            history = bound.provider
            if not isinstance(history, HistoryProvider):
                continue
            if self._plan.per_service_call_history and not history.is_transcript:
                per_call.append(bound)
                left_out.add(bound.source_id)
                if is_at_service and bound.loads_history:
                    self._warn_not_loaded(bound)
            elif is_at_service and self._session.resends_history and bound.loads_history:
                continue
            elif is_at_service and (bound.is_added or history.is_transcript):
                left_out.add(bound.source_id)
            elif is_at_service and bound.loads_history:
                self._pipeline.store_only(bound.source_id)
                self._warn_not_loaded(bound)
        self._pipeline.leave_out(left_out)
        return per_call, is_at_service

    def _warn_not_loaded(self, bound: BoundProvider) -> None:
        message = f"{bound.source_id!r} was not loaded: the model's service keeps this conversation"
        self._sink.warn("historyNotLoaded", message, source_id=bound.source_id)

    def _is_at_service(self, client: ChatClient) -> bool:
        """Whether the model's service keeps the conversation of this run."""
        traits = client.traits
        if self._session.service_session_id is not None:
            if not traits.keeps_conversations:
                self.progress.left_service = True
                message = (
                    f"{client.name} cannot go on from the conversation that a service keeps: it gets the transcript"
                )
                self._sink.warn("conversationLeft", message)
            return traits.keeps_conversations
        store = self._context.options.store
        return traits.keeps_conversations and (traits.stores_by_default if store is None else store)

    def _conversation(self, histories: Sequence[BoundProvider], *, is_at_service: bool) -> RunConversation:
        plan = self._plan
        behind = (plan.options.instructions, self._request.run_instructions)
        return RunConversation(
            self._pipeline,
            self._context,
            self._session,
            self.progress,
            (plan.instructions, behind),
            histories,
            is_at_service=is_at_service,
            parked=self._request.parked_messages if self._request.parked is not None else None,
        )

    def _own_run(
        self, agent: CustomAgent, run: RunContext, client: ChatClient, conversation: RunConversation
    ) -> CustomRun:
        added = [item.kind for item in self._context.middleware]
        if any(kind != "agent" for kind in (*(bound.kind for bound in self._middleware), *added)):
            why = "an agent with an implementation makes its own calls: chat and function middleware is left out"
            self._sink.warn("middlewareNotUsed", why)
        request = AgentRequest(
            run=run,
            messages=(),
            input_messages=self._context.input_messages,
            options=self._context.options,
            tools=[offered.tool for offered in self._offered(client)],
            response_schema=self._request.response_schema,
            client_kwargs=run.client_kwargs,
            is_streaming=self._request.is_streaming,
        )
        return CustomRun(agent, request, conversation, self.progress, self.steering, self._sink)

    def _loop(self, run: RunContext, client: ChatClient, conversation: RunConversation) -> ModelLoop:
        request, plan, context = self._request, self._plan, self._context
        offered = self._offered(client)
        limit_s = plan.limits.middleware_timeout_ms / 1000
        added = [BoundMiddleware(str(item.source.source_id), item.kind, item.middleware) for item in context.middleware]
        middleware = (*self._middleware, *added)
        rules = plan.approvals.rules or ()
        gate = ConsentGate(run, request.consent, rules, context.approval_rules, limit_s=limit_s)
        template = ChatRequest(
            messages=(),
            options=context.options,
            response_schema=request.response_schema,
            client_kwargs=run.client_kwargs,
        )
        return ModelLoop(
            plan,
            request.run_id,
            template,
            conversation,
            ModelCaller(client, self.progress, self._sink, run, [m for m in middleware if m.kind == "chat"], limit_s),
            ToolBatches(
                run,
                self.progress,
                self._sink,
                [m for m in middleware if m.kind == "function"],
                plan.limits,
                gate,
                offered,
                detailed_errors=plan.detailed_tool_errors,
            ),
            ToolChanges([one.tool for one in offered]),
            self.progress,
            self.steering,
            self._sink,
            request.parked,
            request.joining,
            request.open_call_ids,
        )

    def _offered(self, client: ChatClient) -> list[OfferedTool]:
        """The tools of this run."""
        kept: list[OfferedTool] = []
        for offered in self._context.tools:
            tool = offered.tool
            if tool.hosted is not None and tool.hosted not in client.traits.hosted_tools:
                self._sink.warn("toolNotOffered", f"{client.name} has no {tool.hosted}: tool {tool.name!r} is left out")
                continue
            kept.append(offered)
        return kept

    def _run_context(self, kwargs: JsonObject, client_kwargs: JsonObject) -> RunContext:
        request = self._request
        return RunContext(
            run_id=request.run_id,
            agent=self,
            session=self._session if self._has_session else None,
            input_messages=self._context.input_messages,
            options=self._context.options,
            kwargs=kwargs,
            client_kwargs=client_kwargs,
            properties=request.properties,
            parent_run_id=request.parent_run_id,
            depth=request.depth,
            delegate=request.delegate,
            host=request.host,
        )

    def _sight(self) -> Sight:
        """Who says what the providers do not."""
        plan, agent = self._plan, Source(type="agent", source_id=self.name)
        session = Source(type="agent", source_id=self.name, source_type="session")
        own = [Instruction(text, session if text == plan.session_instructions else agent) for text in plan.instructions]
        behind = [
            Instruction(text, source)
            for text, source in ((plan.options.instructions, agent), (self._request.run_instructions, BY_THE_RUN))
            if text
        ]
        histories = [bound for bound in plan.providers if isinstance(bound.provider, HistoryProvider)]
        histories.sort(key=lambda bound: not bound.loads_history)
        return Sight(self._request.run_id, self._context, own, behind, [bound.source_id for bound in histories])

    def _response(self) -> Response:
        return Response(
            (*self._request.parked_messages, *self.progress.messages), self.progress.text, self.progress.meter.usage
        )

    async def _parse(self, schema: JsonObject) -> None:
        """Read the last text as a value."""
        progress = self.progress
        said = (message.text for message in reversed(progress.answer) if message.role == "assistant")
        last = next((text for text in said if text.strip()), "")
        progress.value_error = "the run was stopped before its answer was read"
        progress.value, progress.value_error = await parse_value(last, schema)
