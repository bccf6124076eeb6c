"""Checks on params that types alone cannot say. Each raises what the host is told."""

from collections.abc import Container, Sequence
from pathlib import PurePath

from protocol.messages import Block, Message, text_message
from protocol.runs import RunInput, RunParams
from sidecar.errors import CapabilityRequired, InvalidParams

_RUN_NOT_YET = {
    "middleware": "middleware",
    "context": "editorContext",
    "properties": "runProperties",
    "function_invocation_kwargs": "tools",
    "client_kwargs": "clientKwargs",
    "work_done_token": "workDoneProgress",
    "partial_result_token": "partialResults",
}
"""Fields of `run` that this build does not have: field → feature."""

_NEVER_INPUT = frozenset({"functionCall", "functionResult", "approvalRequest", "approvalResponse"})


def refuse_what_is_not_there(params: RunParams) -> None:
    """Refuse fields and values of `run` whose feature this build lacks.

    Raises:
        CapabilityRequired: naming the feature.
    """
    for field, feature in _RUN_NOT_YET.items():
        if getattr(params, field) is not None:
            raise CapabilityRequired(feature, f"run with {field!r}")
    if params.wait != "completed":
        raise CapabilityRequired("wait", f"run with wait {params.wait!r}")
    if params.when_busy != "reject":
        raise CapabilityRequired("queue" if params.when_busy == "queue" else "steering", "run with whenBusy")
    options = params.options
    if options is not None:
        if options.store:
            raise CapabilityRequired("serviceHistory", "option 'store'")
        if options.tool_choice not in (None, "auto", "none"):
            raise CapabilityRequired("tools", "option 'toolChoice'")


def check_cwd(cwd: str | None) -> None:
    """A session's folder is an absolute path.

    Raises:
        InvalidParams: it is not.
    """
    if cwd is not None and not PurePath(cwd).is_absolute():
        raise InvalidParams("cwd must be an absolute path", [{"path": "cwd", "message": "not absolute"}])


def input_messages(given: RunInput) -> tuple[Message, ...]:
    """A run's input as messages.

    Raises:
        InvalidParams: a message or a block that only the sidecar makes; a host cannot put words into a model's mouth,
            nor answer a call that was not made.
    """
    if isinstance(given, str):
        return (text_message("user", given),)
    if not given:
        return ()
    if isinstance(given[0], Message):
        messages = tuple(message for message in given if isinstance(message, Message))
    else:
        messages = (Message(role="user", content=tuple(block for block in given if not isinstance(block, Message))),)
    for index, message in enumerate(messages):
        _check_message(message, f"input.{index}")
    return messages


def new_messages(messages: Sequence[Message], known: Container[str | None]) -> tuple[Message, ...]:
    """The messages that are not in the transcript yet: a host may send what it sent before, under the same ids."""
    seen: set[str] = set()
    found: list[Message] = []
    for message in messages:
        if message.message_id is None:
            found.append(message)
        elif message.message_id not in known and message.message_id not in seen:
            seen.add(message.message_id)
            found.append(message)
    return tuple(found)


def _check_message(message: Message, path: str) -> None:
    if message.role in ("assistant", "tool"):
        fault = {"path": f"{path}.role", "message": f"no {message.role} message can be given here"}
        raise InvalidParams("run.input takes user and system messages; the transcript is kept by the session", [fault])
    for place, block in enumerate(message.content):
        if _is_ours(block):
            fault = {"path": f"{path}.content.{place}", "message": f"no recorded call or request for {block.type!r}"}
            raise InvalidParams("run.input holds a call, a result or an approval that nothing asked for", [fault])


def _is_ours(block: Block) -> bool:
    return block.type in _NEVER_INPUT
