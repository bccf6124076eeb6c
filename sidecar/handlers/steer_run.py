"""`steerRun`: add input to a run under way; it joins the run's next model call."""

from protocol.runs import SteerRunParams, SteerRunResult
from sidecar.errors import RunNotFound

from .run_input import input_messages, new_messages
from .services import Call, Services


async def steer_run(params: SteerRunParams, call: Call, services: Services) -> SteerRunResult:
    """Answered when the input is stored."""
    session = await services.sessions.get_open(params.session_id)
    turn = session.turn
    if turn is None or turn.run_id != params.expected_run_id:
        raise RunNotFound(params.expected_run_id, params.session_id)
    stored = await session.transcript.load(session.session_id)
    messages = new_messages(input_messages(params.input), stored, session.approvals.holding)
    return SteerRunResult(run_id=turn.run_id, accepted=await turn.steer(messages))
