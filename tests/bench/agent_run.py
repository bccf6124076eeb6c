"""Runs one agent in this process: fake model, fake sink, providers of the test's own. Tests only."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from protocol.agents import AgentSpec, ProviderEntry, RunOptions
from protocol.messages import Message, Source, text_message
from providers.api.context import OfferedTool
from providers.api.middleware import Middleware, kind_of, name_of
from providers.api.provider import ContextProvider, Surroundings
from providers.api.session import Session
from providers.api.tool import FunctionTool
from sidecar.agents.binding import BoundProvider
from sidecar.agents.catalog import ResolvedAgent
from sidecar.agents.parts import BoundMiddleware, Parts
from sidecar.agents.pipeline import HookStats
from sidecar.agents.plan import DEFAULT_LIMITS, AgentPlan, SessionSettings, make_plan
from sidecar.agents.run_request import RunRequest
from sidecar.agents.runner import Execution
from sidecar.config.limits import Limits
from tests.bench.fake_client import FakeClient, FakeModels
from tests.bench.fake_sink import FakeSink


def user(text: str, *, source: str = "external", role: Literal["user", "assistant"] = "user") -> Message:
    """An input message, stamped as a run stamps it."""
    return text_message(role, text, source=Source(type=source))


def bound(provider: ContextProvider, **fields: Any) -> BoundProvider:
    """A provider in its place."""
    whole = BoundProvider(
        type="test",
        source_id=provider.source_id,
        state_key=provider.source_id,
        provider=provider,
        on_error=provider.on_error,
        timeout_ms=10_000,
        independent=False,
        position=provider.position,
    )
    return replace(whole, **fields)


def plan_of(
    *entries: dict[str, Any],
    session: Sequence[dict[str, Any]] = (),
    limits: Limits = DEFAULT_LIMITS,
    tools: Sequence[FunctionTool] = (),
    middleware: Sequence[Middleware] = (),
    **spec: Any,
) -> AgentPlan:
    """An agent's plan from entries as a host writes them; no history is added."""
    agent = AgentSpec.model_validate({"contextProviders": list(entries), **spec})
    added = tuple(ProviderEntry.model_validate(entry) for entry in session)
    settings = SessionSettings(context_providers=added)
    parts = Parts(
        tools=tuple(OfferedTool(tool, Source(type="agent", source_id="tester")) for tool in tools),
        middleware=tuple(BoundMiddleware(name_of(each), kind_of(each), each) for each in middleware),
    )
    return make_plan(
        ResolvedAgent("tester", agent), settings, Surroundings(), with_history=False, limits=limits, parts=parts
    )


@dataclass
class AgentRun:
    """One agent and its session. `say` runs it."""

    client: FakeClient
    providers: Sequence[ContextProvider | BoundProvider] = ()
    plan: AgentPlan = field(default_factory=plan_of)
    session: Session = field(default_factory=lambda: Session("s"))
    others: Sequence[FakeClient] = ()
    """Further models, found by their names."""
    stats: dict[str, HookStats] = field(default_factory=dict)
    sink: FakeSink = field(default_factory=FakeSink)

    def __post_init__(self) -> None:
        own = tuple(p if isinstance(p, BoundProvider) else bound(p) for p in self.providers)
        self.plan = replace(self.plan, providers=(*self.plan.providers, *own))

    def execution(self, *inputs: str | Message, **request: Any) -> Execution:
        """A run that is not started yet; it has a sink of its own."""
        self.sink = FakeSink()
        messages = tuple(user(item) if isinstance(item, str) else item for item in inputs)
        whole = RunRequest("run-1", messages, request.pop("options", RunOptions()), **request)
        models = FakeModels(self.client, *self.others)
        return Execution(self.plan, whole, self.session, "s", models, self.sink, self.stats)

    async def say(self, *inputs: str | Message, **request: Any) -> Execution:
        """Run to the end, as a turn does: a failure is told to the providers, and raised."""
        execution = self.execution(*inputs, **request)
        try:
            await execution.run()
        except Exception as error:
            await execution.failed(error)
            raise
        finally:
            await self.sink.commit()
        return execution
