"""`listApprovalRules`, `revokeApprovalRule`: what people have decided for more than one call."""

import asyncio

from protocol.approvals import ListApprovalRulesResult, RevokeApprovalRuleParams, SessionOrNone
from protocol.base import Empty
from sidecar.errors import StorageFailed
from sidecar.sessions.rule_keeping import rule_info

from .services import Call, Services


async def list_approval_rules(params: SessionOrNone, call: Call, services: Services) -> ListApprovalRulesResult:
    """The rules of a session, where one is named, and all that count always."""
    rules = list(services.sessions.always_rules.read())
    if params.session_id is not None:
        rules = [*(await services.sessions.get_open(params.session_id)).record.approval_rules, *rules]
    return ListApprovalRulesResult(items=tuple(map(rule_info, rules)))


async def revoke_approval_rule(params: RevokeApprovalRuleParams, call: Call, services: Services) -> Empty:
    """Forget a rule: of the session that is named, of any open one, or one that counts always."""
    if params.session_id is not None:
        sessions = [await services.sessions.get_open(params.session_id)]
    else:
        sessions = services.sessions.open_sessions
    for session in sessions:
        if await session.revoke_rule(params.rule_id):
            return Empty()
    try:
        await asyncio.to_thread(services.sessions.always_rules.revoke, params.rule_id)
    except OSError as error:
        raise StorageFailed(f"the rule cannot be revoked: {error.strerror or type(error).__name__}") from error
    return Empty()
