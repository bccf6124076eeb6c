"""Drivers of clients that are wrong, each in one way: `python wrong_driver.py FAULT`."""

import json
import os
import signal
import sys
from typing import Any

from plain_driver import Client, drive, say


class AnswersTwice(Client):
    """Answers each request of the sidecar's once more."""

    def do(self, todo: Any) -> None:
        super().do(todo)
        if "reply" in todo:
            super().do(todo)


class Silent(Client):
    """Says nothing to requests that it does not know."""

    def take_request(self, message: Any) -> None:
        if not message["method"].startswith("x-"):
            super().take_request(message)


class Agreeable(Client):
    """Answers what it does not know with a result."""

    def take_request(self, message: Any) -> None:
        if message["method"].startswith("x-"):
            self.send(id=message["id"], result={})
        else:
            super().take_request(message)


class TurnsIdsIntoNumbers(Client):
    """Answers under an id that only looks the same."""

    def send(self, **message: Any) -> None:
        if "method" not in message and message["id"].isdigit():
            message["id"] = int(message["id"])
        super().send(**message)


class ReusesIds(Client):
    """Has one id for everything; the answers come in the order of the calls."""

    numbers: tuple[int, ...] = ()

    def call(self, number: int, method: str, params: Any) -> None:
        self.numbers += (number,)
        self.send(id=5, method=method, params=params)

    def take_answer(self, message: Any) -> None:
        if message["id"] == 5:
            message["id"], *rest = self.numbers
            self.numbers = tuple(rest)
        super().take_answer(message)


class AsksOnAfterShutdown(Client):
    """Does not know when to stop."""

    def take_answer(self, message: Any) -> None:
        if message["id"] == "end":
            self.send(id="more", method="getState", params={})
        if message["id"] != "more":
            super().take_answer(message)


class Swallows(Client):
    """Loses an event."""

    def take(self, message: Any) -> None:
        if message.get("params", {}).get("type") != "usage.updated":
            super().take(message)


class Reorders(Client):
    """Hands an event on after the one that follows it."""

    held: Any = None

    def take(self, message: Any) -> None:
        held, self.held = self.held, None
        if message.get("params", {}).get("type") == "run.started":
            self.held = message
            return
        super().take(message)
        if held is not None:
            super().take(held)


class AnswersEarly(Client):
    """Hands the answer to a run on before the run's last event."""

    held: Any = None

    def take(self, message: Any) -> None:
        if message.get("params", {}).get("type") == "run.completed":
            self.held = message
            return
        super().take(message)
        if "method" not in message and self.held is not None:
            super().take(self.held)


class Repeats(Client):
    """Hands the last event on once more."""

    def take(self, message: Any) -> None:
        super().take(message)
        if message.get("params", {}).get("type") == "run.completed":
            super().take(message)


class SaysAnAnswerTwice(Client):
    """Calls back twice."""

    def take_answer(self, message: Any) -> None:
        if message["id"] != "end":
            super().take_answer(message)
        super().take_answer(message)


class ChangesReplays(Client):
    """Cannot say what it has said before."""

    seen: frozenset[int] = frozenset()

    def take(self, message: Any) -> None:
        event = message.get("params", {})
        if "seq" in event and not event.get("ephemeral"):
            if event["seq"] in self.seen:
                event["time"] = "now"
            self.seen |= {event["seq"]}
        super().take(message)


class Chats(Client):
    """Prints what nobody asked for."""

    def call(self, number: int, method: str, params: Any) -> None:
        if method == "run":
            sys.stdout.write("here we go\n")
        super().call(number, method, params)


class DoesNotInitialize(Client):
    """Thinks that a sidecar needs no greeting."""

    def call(self, number: int, method: str, params: Any) -> None:
        if method == "initialize":
            say(answer=number, result={})
        else:
            super().call(number, method, params)


class SendsArrays(Client):
    """Sends params by position."""

    def call(self, number: int, method: str, params: Any) -> None:
        super().call(number, method, params if method == "initialize" else [params])


class ForgetsTheVersion(Client):
    """Sends no `"jsonrpc": "2.0"`."""

    def send(self, **message: Any) -> None:
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()


class DiesOfAnUnknownEvent(Client):
    """Knows a list of events, and no way out."""

    def take(self, message: Any) -> None:
        if str(message.get("params", {}).get("type")).startswith("x-"):
            os._exit(3)
        super().take(message)


class RefusesUnknownFields(Client):
    """Takes an answer only if it knows all that is in it."""

    def take_answer(self, message: Any) -> None:
        if message.keys() <= {"jsonrpc", "id", "result", "error"}:
            super().take_answer(message)


class TrustsInReads(Client):
    """Takes what one read brings for whole lines."""

    def read(self) -> None:
        while data := os.read(self.process.stdout.fileno(), 1 << 16):
            try:
                messages = [json.loads(line) for line in data.splitlines()]
            except ValueError:
                os._exit(4)
            for message in messages:
                self.take(message)
        say(ended=self.process.wait())


class Kills(Client):
    """Ends the sidecar by a signal."""

    def end(self) -> None:
        os.kill(self.process.pid, signal.SIGTERM)


class Vanishes(Client):
    """Does not say how the sidecar ended, and does not stay."""

    def end(self) -> None:
        os._exit(0)


class SaysDeepThings(Client):
    """Writes JSON that nobody can read."""

    def take_answer(self, message: Any) -> None:
        sys.stdout.write("[" * 100_000 + "\n")
        super().take_answer(message)


class Floods(Client):
    """Does not stop talking."""

    def take_answer(self, message: Any) -> None:
        while True:
            say(notified="more")


class SaysNonsenseOfASession(Client):
    """Hands on the list of sessions as if it were empty inside."""

    def take_answer(self, message: Any) -> None:
        if "sessions" in (message.get("result") or {}):
            message["result"] = {"sessions": [5]}
        super().take_answer(message)


drive(globals()[sys.argv[1]])
