"""What a host brings along for its sidecar: tools, context providers, and whom to ask. Answers nothing itself."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol, TypeAlias

from .calling import MaybeAwaitable
from .consent import ApprovalHandler, ElicitHandler
from .host_tools import AnyTool
from .types import AfterRunParams, AfterRunResult, BeforeRunParams, BeforeRunResult


class BeforeRun(Protocol):
    """Adds context before the model is called."""

    def before_run(self, params: BeforeRunParams, /) -> MaybeAwaitable[BeforeRunResult | None]:
        """What is to be added, put in place of what is there, or remembered; None: nothing."""
        ...


class AfterRun(Protocol):
    """Learns from a run."""

    def after_run(self, params: AfterRunParams, /) -> MaybeAwaitable[AfterRunResult | None]:
        """What is to be remembered of the run's `response`, or of its `error`; None: what is remembered stays."""
        ...


HostProvider: TypeAlias = BeforeRun | AfterRun
"""An object with one of the two methods, or both; asynchronous or not."""


@dataclass(frozen=True)
class Host:
    """Everything that the sidecar may ask of this process. What is left out, the sidecar is told not to ask for."""

    tools: Sequence[AnyTool] | None = None
    """Tools that answer in every session, also where an agent or a provider of the host's names them. A session's own
    are given to `create_session`; where there are only those, give `()` here."""

    providers: Mapping[str, HostProvider] = field(default_factory=dict[str, HostProvider])
    """`sourceId` → the provider. A session has it by an entry `{"type": "host", "sourceId": …}`."""

    approve: ApprovalHandler | None = None
    """Asked before a call that needs consent. If it fails, the call is denied."""

    elicit: ElicitHandler | None = None
    """Asked where a tool or a provider has a question for the user."""

    elicit_modes: Sequence[Literal["form", "url"]] = ("form", "url")
    """The kinds of question that `elicit` knows how to ask."""
