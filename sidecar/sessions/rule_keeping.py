"""Standing rules from a person's answers: for the session, or for its agent and folder always. Keeps none itself."""

from protocol.approvals import ApprovalRuleInfo
from sidecar.agents.standing_rules import StandingRule

from .approval_options import Answer
from .approvals import Question
from .ids import new_id, now
from .record import SessionRecord

SESSION_OPTIONS = frozenset({"allowSession", "allowSessionExactly"})
ALWAYS_OPTIONS = frozenset({"allowAlways", "allowAlwaysExactly", "rejectAlways"})


def rule_of(question: Question, answer: Answer, record: SessionRecord, agent: str) -> StandingRule | None:
    """The rule that an answer makes; `None` for one that is about this call alone."""
    option = answer.option
    if option not in SESSION_OPTIONS | ALWAYS_OPTIONS:
        return None
    is_always = option in ALWAYS_OPTIONS
    return StandingRule(
        rule_id=new_id("rule"),
        decision="deny" if option == "rejectAlways" else "allow",
        tool=question.tool,
        schema_hash=question.schema_hash,
        source=question.source,
        arguments=question.arguments if option.endswith("Exactly") else None,
        agent=agent if is_always else None,
        cwd=record.cwd if is_always else None,
        created_at=now(),
    )


def rule_info(rule: StandingRule) -> ApprovalRuleInfo:
    """A rule as lists show it."""
    return ApprovalRuleInfo(
        rule_id=rule.rule_id,
        decision="deny" if rule.decision == "deny" else "allow",
        tool=rule.tool,
        arguments=rule.arguments,
        scope="always" if rule.agent is not None else "session",
        created_at=rule.created_at,
    )
