"""The rules for a client: how it begins and ends, what it asks, and that it answers. Not what the sidecar owes."""

import json
from collections import Counter
from dataclasses import dataclass
from typing import Final, cast

from protocol.base import JsonObject
from protocol.methods import CANCEL_REQUEST, EXIT, HOST_METHODS, INITIALIZE, SHUTDOWN

from .conversations import Line
from .findings import Finding
from .messages import is_id, short
from .placeholders import ANY
from .shapes import members, number

METHOD_NOT_FOUND: Final = -32601
_MALFORMED: Final = frozenset({-32700, -32600, METHOD_NOT_FOUND, -32602})
_SIGNALLED: Final = 128
"""Exit codes above it: a signal asked the sidecar to end, as it may."""
_KNOWN: Final = frozenset(method.name for method in HOST_METHODS)
_OF_LSP: Final = ("window/", "workspace/", "client/")


@dataclass
class _Asked:
    """A request of the sidecar's."""

    method: str
    line: int
    answered: bool = False
    cancelled: bool = False

    @property
    def known(self) -> bool:
        """Whether a client may know the method."""
        return self.method in _KNOWN or self.method.startswith(_OF_LSP)


class ClientRules:
    """Reads a log line by line.

    Attributes:
        findings: What the client did wrong so far.
    """

    def __init__(self, excused: Counter[tuple[str, int]]) -> None:
        """`excused`: how often a request of a method may be refused with a code."""
        self.findings: list[Finding] = []
        self._excused = excused.copy()
        self.begin()

    def begin(self) -> None:
        """A new process: nothing has been said to it."""
        self._first, self._greeted = True, False
        self._shut_down = self._exit_sent = self._eof = False
        self._methods: dict[str | int, str] = {}
        """The client's own requests under way."""
        self._asked: dict[str | int, _Asked] = {}
        self._lost = False

    def lose(self) -> None:
        """From here on, messages of this process are not known: nobody is blamed for what may be in them."""
        self._lost = True
        self._first = False

    # ---- what the client sends ------------------------------------------------------------------------------------

    def sent(self, line: Line) -> None:
        """A message of the client's."""
        if not isinstance(line.value, dict):
            self._blame(line, f'this is no JSON-RPC 2.0 message (an object with "jsonrpc": "2.0"): {short(line.value)}')
            self._first = False
            return
        message = cast("JsonObject", line.value)
        if isinstance(message.get("method"), str):
            self._check_call(line, message)
        elif "method" not in message and len(message.keys() & {"result", "error"}) == 1:
            self._check_answer(line, message)
        else:
            self._blame(line, f"a message has a method, or either a result or an error: {short(message)}")

    def _check_call(self, line: Line, message: JsonObject) -> None:
        method: str = message["method"]
        self._check_turn(line, method)
        if not isinstance(message.get("params"), dict | None) and message["params"] != ANY:
            self._blame(line, f"the params of {method!r} are no object: {short(message['params'])}")
        if "id" not in message:
            self._exit_sent |= method == EXIT.name
            return
        request_id = message["id"]
        if not is_id(request_id):
            self._blame(line, f"the id of {method!r} is neither a string nor an integer: {short(request_id)}")
            return
        if request_id in self._methods and not self._lost:
            self._blame(line, f"the id {request_id!r} is in use: {self._methods[request_id]!r} has not been answered")
        self._methods[request_id] = method

    def _check_turn(self, line: Line, method: str) -> None:
        """Whether this may be said now."""
        if self._shut_down and method != EXIT.name and not method.startswith("$/"):
            self._blame(line, f"{method!r} comes after 'shutdown'; only 'exit' may")
        if method == EXIT.name:
            if not self._shut_down and not self._first and not self._lost:
                self._blame(line, "'exit' comes without 'shutdown' before it")
        elif self._first and method != INITIALIZE.name:
            self._blame(line, f"'initialize' has to be the first message; this is {method!r}")
        elif self._greeted and method == INITIALIZE.name:
            self._blame(line, "'initialize' is sent once only")
        self._first = False
        self._greeted |= method == INITIALIZE.name
        self._shut_down |= method == SHUTDOWN.name

    def _check_answer(self, line: Line, message: JsonObject) -> None:
        asked = self._asked.get(message["id"]) if is_id(message.get("id")) else None
        if asked is None and self._lost:
            return
        if asked is None:
            self._blame(line, f"this answers nothing that was asked: {short(message)}{self._likeness(message)}")
        elif asked.answered:
            self._blame(line, f"{asked.method!r} of line {asked.line} is answered a second time")
        elif not asked.known and not _is_not_found(message):
            self._blame(
                line,
                f"the unknown method {asked.method!r} has to be answered with {METHOD_NOT_FOUND}: {short(message)}",
            )
        if asked is not None:
            asked.answered = True

    def _likeness(self, message: JsonObject) -> str:
        """The id that may be meant."""
        meant = next((asked for asked in self._asked if str(asked) == str(message.get("id"))), None)
        return "" if meant is None else f"; the id was {json.dumps(meant)}, and has to come back as it is"

    # ---- what it receives -----------------------------------------------------------------------------------------

    def received(self, line: Line) -> None:
        """A message of the sidecar's."""
        message: JsonObject = line.value
        if "method" not in message:
            self._take_answer(line, message)
        elif "id" in message:
            self._asked[message["id"]] = _Asked(message["method"], line.number)
        elif message["method"] == CANCEL_REQUEST.name and message["params"]["id"] in self._asked:
            self._asked[message["params"]["id"]].cancelled = True

    def _take_answer(self, line: Line, message: JsonObject) -> None:
        method = self._methods.pop(message["id"], "") if message["id"] is not None else ""
        error = members(message.get("error"))
        if error.get("code") not in _MALFORMED or self._shut_down:
            return
        if self._excused[method, error["code"]]:
            self._excused[method, error["code"]] -= 1
            return
        what = repr(method) if method else "a message"
        self._blame(line, f"{what} was refused as malformed: {error['code']}, {error.get('message')}")

    # ---- ends -----------------------------------------------------------------------------------------------------

    def closed(self) -> None:
        """The client closed the sidecar's stdin."""
        self._eof = True

    def exited(self, line: Line) -> None:
        """The sidecar ended."""
        code = number(line.value) or 0
        signalled = code > _SIGNALLED
        if code <= 0:
            self._check_end(line)
        for asked in () if signalled or self._lost else self._asked.values():
            owed = not asked.known or not self._eof or self._shut_down
            if owed and not asked.answered and not asked.cancelled:
                self._blame(None, f"{asked.method!r} is never answered", asked.line)
        self.begin()

    def _check_end(self, line: Line) -> None:
        if not self._eof and not self._lost and not (self._shut_down and self._exit_sent):
            self._blame(line, "the conversation ends neither with 'shutdown' and 'exit' nor with the end of stdin")

    def _blame(self, line: Line | None, text: str, number: int | None = None) -> None:
        self.findings.append(Finding("client", text, line.number if line else number))


def _is_not_found(message: JsonObject) -> bool:
    error = message.get("error")
    return error == ANY or members(error).get("code") == METHOD_NOT_FOUND
