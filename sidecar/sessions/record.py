"""What is stored of a session besides messages, state and events, and what is stored of a run."""

from pathlib import PurePath

from pydantic import Field, ValidationError

from protocol.agents import AgentSpec, ProviderEntry
from protocol.base import JsonObject, WireModel
from protocol.errors import WireError
from protocol.messages import Message, Usage
from protocol.sessions import CreateSessionParams, WireWarning
from sidecar.agents.standing_rules import StandingRule
from sidecar.stores.base import Damaged, PutRun, PutSession, SessionRow, Snapshot

from .explanations import Explanation
from .ids import new_id, now
from .stored_json import stored_json


class SessionRecord(WireModel):
    """A session's own record: who it is, and how it was set up."""

    session_id: str
    agent: str
    agent_spec: AgentSpec | None = None
    """The inline agent; a named one is looked up again at each resume."""
    model: str | None = None
    reasoning_effort: str | None = None
    instructions: str | None = None
    context_providers: tuple[ProviderEntry, ...] = ()
    host_tools: tuple[str, ...] = ()
    """Names of the tools that a host has supplied; the tools themselves are supplied again."""
    host_providers: tuple[str, ...] = ()
    """Source ids of its providers, likewise."""
    settled: dict[str, JsonObject] = Field(default_factory=dict)
    """By source id: what a provider has decided for good when the session began, whose memory it uses for example."""
    title: str | None = None
    cwd: str | None = None
    created_at: str
    updated_at: str
    revision: int = 0
    epoch: str
    archived: bool = False
    parent_session_id: str | None = None
    service_session_id: str | None = None
    resends_history: bool = False
    """Its turns were kept at a service, but in another session's conversation: the next run tells them anew."""
    usage: Usage = Usage()
    metadata: JsonObject | None = None
    approval_rules: tuple[StandingRule, ...] = ()
    """What a person has decided for the whole session."""
    run_starts: tuple[int, ...] = ()
    """Seq of the first event of each run whose events are kept, oldest first."""

    @property
    def agent_wanted(self) -> str | AgentSpec:
        """The name to look up, or the whole agent."""
        return self.agent_spec if self.agent_spec is not None else self.agent

    def put(self) -> PutSession:
        """The write that stores this record."""
        return PutSession(
            body=stored_json(self),
            updated_at=self.updated_at,
            title=self.title,
            cwd=self.cwd,
            archived=self.archived,
        )


class RunRecord(WireModel):
    """A run: how it was asked for, and how it ended."""

    run_id: str
    payload_hash: str
    started_at: str
    input_ids: tuple[str, ...] = ()
    steered: tuple[Message, ...] = ()
    """Input that was accepted while the run was under way, and may not be in the transcript yet."""
    alias_of: str | None = None
    """Another run's id: this one was taken into that run as steering."""
    parent_run_id: str | None = None
    """The run that this one is delegated by."""
    parent_call_id: str | None = None
    """The tool call of that run."""
    resumes: JsonObject | None = None
    """`runId` and `messageId` of the answer whose calls it goes on with."""
    status: str = "running"
    stop_reason: str | None = None
    ended_at: str | None = None
    message_ids: tuple[str, ...] = ()
    """Messages of the output."""
    partial: Message | None = None
    """Text of a run that was cut."""
    value: JsonObject | None = None
    """`{"value": …}` where the run has one: any JSON value, `null` too."""
    value_error: str | None = None
    usage: Usage = Usage()
    last_seq: int = 0
    duration_ms: int = 0
    error: WireError | None = None
    warnings: tuple[WireWarning, ...] = ()
    explanation: Explanation | None = None
    """What its model calls saw; absent where it made none, and until it has ended."""

    @property
    def ended(self) -> bool:
        """Whether the run has come to its end."""
        return self.status not in ("running", "queued")

    def put(self) -> PutRun:
        """The write that stores this record."""
        return PutRun(run_id=self.run_id, body=stored_json(self), ended=self.ended)


def plain_folder(path: str | None) -> str | None:
    """One way to write a folder: `/a/b/` and `/a//b` are `/a/b`. Links and `..` stay, as they may lead elsewhere."""
    return str(PurePath(path)) if path else None


def new_record(
    params: CreateSessionParams, agent: str, default_cwd: str | None, providers: tuple[ProviderEntry, ...] = ()
) -> SessionRecord:
    """The record of a session that begins empty. `providers` are those of its own that are stored with it."""
    created = now()
    return SessionRecord(
        session_id=params.session_id or new_id("ses"),
        agent=agent,
        agent_spec=params.agent if isinstance(params.agent, AgentSpec) else None,
        model=params.model,
        instructions=params.instructions,
        context_providers=providers,
        title=params.title,
        cwd=plain_folder(params.cwd or default_cwd),
        created_at=created,
        updated_at=created,
        epoch=new_id("ep"),
        service_session_id=params.service_session_id,
        metadata=params.metadata,
    )


def copied_record(source: SessionRecord, session_id: str | None, parent: str | None) -> SessionRecord:
    """The record of a session that begins with what another one held: its events and its revision begin anew."""
    created = now()
    return source.model_copy(
        update={
            "session_id": session_id or new_id("ses"),
            "parent_session_id": parent,
            "created_at": created,
            "updated_at": created,
            "revision": 0,
            "epoch": new_id("ep"),
            "run_starts": (),
            "settled": {},
            "approval_rules": (),
            "service_session_id": None,
            "resends_history": source.service_session_id is not None or source.resends_history,
        }
    )


def read_record(stored: Snapshot | SessionRow) -> SessionRecord:
    """A session's record as it was stored.

    Raises:
        Damaged: it does not read back.
    """
    try:
        return SessionRecord.model_validate_json(stored.body)
    except ValidationError:
        raise Damaged(stored.session, "its record does not read back", {}) from None
