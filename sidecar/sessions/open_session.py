"""A session that this process owns: its record, its committed state, its agent and its event log."""

import asyncio
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Literal

from pydantic_core import from_json

from protocol.base import JsonObject
from protocol.sessions import ConfigChoice, ConfigOption, PendingRequest, ProviderStatus, SessionInfo
from providers.api.session import Session
from sidecar.agents.pipeline import HookStats
from sidecar.agents.plan import AgentPlan, check_state
from sidecar.agents.sink import Draft
from sidecar.agents.standing_rules import StandingRule
from sidecar.agents.workspaces import Workspace
from sidecar.errors import InvalidParams
from sidecar.stores.base import Put, PutState, SessionStore, StoreError, Unknown
from sidecar.telemetry import LOGGER

from .always_rules import AlwaysRules
from .approvals import Dropped, SessionApprovals
from .event_log import EventLog, is_lost
from .host_requests import HostRequests
from .merge_patch import carry_over
from .modes import has_modes, mode_option
from .provider_lifetimes import ProviderLifetimes
from .record import SessionRecord
from .slot import RunSlot
from .state_bytes import state_bytes
from .supplied import NOTHING, Supplied
from .transcript import Transcript

if TYPE_CHECKING:
    from .turn import Turn

Rules = tuple[StandingRule, ...]


class OpenSession:
    """One session, open here. At most one turn at a time."""

    def __init__(
        self,
        record: SessionRecord,
        workspace: Workspace,
        plan: AgentPlan,
        store: SessionStore,
        log: EventLog,
        transcript: Transcript,
        state: dict[str, bytes],
        *,
        one_off: bool = False,
        remembered: Callable[[], None] | None = None,
        supplied: Supplied = NOTHING,
        always_rules: AlwaysRules | None = None,
    ) -> None:
        self.record = record
        self.workspace = workspace
        """The configuration that its agent is of."""
        self.plan = plan
        self.store = store
        self.log = log
        self.transcript = transcript
        self.one_off = one_off
        self.supplied = supplied
        """What the host carries out itself."""
        self.approvals = SessionApprovals()
        """Questions about its calls that are open, or decided and not acted on."""
        self.always_rules = always_rules or AlwaysRules()
        self.requests = HostRequests()
        """What the host was asked and has not answered."""
        self.remembered = remembered
        """Called when something of it has become long-term memory; `None`: nothing does, as it is to leave nothing."""
        self.stats: dict[str, HookStats] = {}
        self.lifetimes = ProviderLifetimes()
        self.slot = RunSlot()
        self.changing = asyncio.Lock()
        """Held from reading record or state to having stored what was made of it: no change undoes another."""
        self.turn: Turn | None = None
        """The run that has the slot, once it has begun."""
        self.lost = False
        """Another process took it over, or it failed: nothing more can be written."""
        self._state = dict(state)

    @property
    def session_id(self) -> str:
        """Its id."""
        return self.record.session_id

    @property
    def is_ephemeral(self) -> bool:
        """Whether it goes away with the process."""
        return self.remembered is None

    def state(self) -> JsonObject:
        """The committed state, as a copy."""
        return {key: from_json(value) for key, value in self._state.items()}

    def working_session(self) -> Session:
        """The state that a run works on: a copy, so that it can be dropped."""
        return Session(
            self.session_id,
            state=self.state(),
            service_session_id=self.record.service_session_id,
            resends_history=self.record.resends_history,
        )

    def changes(self, state: JsonObject, base: JsonObject) -> list[PutState]:
        """The writes that carry over what has changed from `base` to `state`; all else stays as it is by now.

        An empty object is no news: a provider's corner is made when it is first looked at.

        Raises:
            ValueError: a value is no JSON.
        """
        puts: list[PutState] = []
        for key, value in state.items():
            body = state_bytes(key, value)
            is_new = key not in base
            if (is_new and value != {}) or (not is_new and body != state_bytes(key, base[key])):
                by_now = self._state.get(key)
                merged = value if by_now is None else carry_over(base.get(key, {}), value, from_json(by_now))
                puts.append(PutState(key, state_bytes(key, merged)))
        puts.extend(PutState(key, None) for key in base if key not in state)
        return puts

    def replacement(self, state: JsonObject) -> list[PutState]:
        """The writes that make this the state.

        Raises:
            ValueError: a value is no JSON.
        """
        bodies = {key: state_bytes(key, value) for key, value in state.items()}
        puts = [PutState(key, body) for key, body in bodies.items() if body != self._state.get(key)]
        return [*puts, *(PutState(key, None) for key in self._state if key not in state)]

    def committed(self, puts: list[PutState]) -> None:
        """These writes are stored."""
        for put in puts:
            if put.value is None:
                self._state.pop(put.key, None)
            else:
                self._state[put.key] = put.value

    async def store_now(self, drafts: Sequence[Draft], puts: Sequence[Put] = (), *, send: bool = True) -> None:
        """Store a change now or not at all. Whoever is cancelled meanwhile would not know: shield what waits for it.

        Args:
            drafts: Events, of no run.
            puts: Further writes.
            send: False: they come in replays only.

        Raises:
            StoreError: it is not stored; or that is not known: then the session is lost, and resuming it settles it.
        """
        try:
            await self.log.append(drafts, puts, keep=False, send=send)
        except StoreError as error:
            self.lost = self.lost or is_lost(error) or isinstance(error, Unknown)
            raise

    def pending_requests(self) -> Sequence[PendingRequest]:
        """What its host was asked and has not answered, the oldest first."""
        others = (one for one in self.requests.pending() if one.kind != "approval")
        return sorted([*self.approvals.pending(), *others], key=lambda one: one.opened_at)

    def drop_questions(self, run_id: str, by: Literal["cancel", "disconnect"]) -> Dropped:
        """A run has ended otherwise than with its questions open: what tells of that, and drops their records."""
        dropped = self.approvals.end_of(run_id, by)
        for draft in dropped.drafts:  # one whose decision is being stored is closed by that
            self.requests.close(draft.data["requestId"])
        return dropped

    def rule_agent(self, agent: str) -> str:
        """What rules that count always call an agent: one that came over the wire is not the configured one."""
        return agent if self.record.agent_spec is None else f"inline {agent}"

    def lasting_rules(self, agent: str) -> list[StandingRule]:
        """Rules that count for an agent in this session's folder, whatever the session."""
        return [
            rule
            for rule in self.always_rules.read()
            if rule.agent == self.rule_agent(agent) and rule.cwd == self.record.cwd
        ]

    async def keep_rule(self, rule: StandingRule) -> None:
        """Keep a rule that a person has made. One that cannot be kept is logged: the next call is asked about again."""
        try:
            if rule.agent is not None:
                await asyncio.to_thread(self.always_rules.add, rule)
            else:
                await asyncio.shield(self._change_rules(lambda rules: (*rules, rule)))
        except (OSError, ValueError, StoreError) as error:
            LOGGER.warning("an approval rule could not be kept: %s", error)

    async def revoke_rule(self, rule_id: str) -> bool:
        """Forget a rule of this session; whether it was there.

        Raises:
            StoreError: it could not be stored.
        """

        def without(rules: Rules) -> Rules:
            return tuple(rule for rule in rules if rule.rule_id != rule_id)

        return await asyncio.shield(self._change_rules(without))

    async def _change_rules(self, change: Callable[[Rules], Rules]) -> bool:
        """Store what a change makes of the rules as they are once it is its turn; whether it changes anything."""
        async with self.changing:
            rules = change(self.record.approval_rules)
            if rules == self.record.approval_rules:
                return False
            record = self.record.model_copy(update={"approval_rules": rules})
            await self.store_now([], [record.put()])
            self.record = record
            return True

    def info(self) -> SessionInfo:
        """The session in a few lines."""
        return session_info(
            self.record,
            last_seq=self.log.seq,
            status="running" if self.slot.holder is not None else "inputRequired" if self.approvals else "idle",
            is_open=True,
            model=self.record.model or self.plan.model,
        )

    def provider_statuses(self) -> tuple[ProviderStatus, ...]:
        """Whether its providers can work."""
        return tuple(
            ProviderStatus(source_id=bound.source_id, type=bound.type, status="ready", detail=bound.provider.detail)
            for bound in self.plan.providers
        )

    def config_options(self, models: Sequence[str]) -> tuple[ConfigOption, ...]:
        """What the host may show as settings."""
        value = self.record.model or self.plan.model
        choices: list[str] = list(dict.fromkeys([*([value] if value else []), *models]))
        mode = mode_option(self.plan, self.state()) if has_modes(self.plan) else None
        return (
            ConfigOption(
                id="model",
                name="Model",
                value=value,
                choices=tuple(ConfigChoice(value=model, name=model) for model in choices),
            ),
            ConfigOption(
                id="reasoningEffort",
                name="Reasoning effort",
                value=self.record.reasoning_effort or self.plan.options.reasoning_effort,
            ),
            *((mode,) if mode is not None else ()),
        )


def initial_state(state: JsonObject, plan: AgentPlan) -> dict[str, bytes]:
    """The state that a session begins with, as it is stored.

    Raises:
        ConfigInvalid: a provider's part of it is no object.
        InvalidParams: a value cannot be stored.
    """
    check_state(state, plan)
    try:
        return {key: state_bytes(key, value) for key, value in state.items()}
    except ValueError as error:
        raise InvalidParams(str(error), [{"path": "state", "message": str(error)}]) from None


def session_info(record: SessionRecord, *, last_seq: int, status: str, is_open: bool, model: str | None) -> SessionInfo:
    """A session in a few lines, from its record."""
    return SessionInfo.model_validate(
        {
            "session_id": record.session_id,
            "agent": record.agent,
            "model": model,
            "title": record.title,
            "cwd": record.cwd,
            "created_at": record.created_at,
            "updated_at": record.updated_at,
            "revision": record.revision,
            "last_seq": last_seq,
            "epoch": record.epoch,
            "status": status,
            "archived": record.archived or None,
            "open": is_open,
            "parent_session_id": record.parent_session_id,
            "service_session_id": record.service_session_id,
            "usage": record.usage,
            "metadata": record.metadata,
        }
    )
