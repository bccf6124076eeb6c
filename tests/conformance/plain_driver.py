"""A driver of a client that is nothing but this file: the standard library, and one JSON object a line.

agent-sidecar conformance -- python tests/conformance/plain_driver.py
"""

import json
import os
import subprocess
import sys
import threading
from typing import Any

KNOWN = ("host/callTool", "host/beforeRun", "host/afterRun", "host/requestApproval", "host/elicit")
"""What this host can be asked."""
LOCK = threading.Lock()


def say(**line: Any) -> None:
    """Tell the examiner what has come."""
    with LOCK:
        sys.stdout.write(json.dumps(line) + "\n")
        sys.stdout.flush()


class Client:
    """One sidecar process, and where what it says goes."""

    def __init__(self, asked: list[Any]) -> None:
        """`asked`: the ids of what was asked so far, each as it came: a string stays a string."""
        command = [os.environ["AGENT_SIDECAR"], "serve"]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.asked = asked
        threading.Thread(target=self.read).start()

    def send(self, **message: Any) -> None:
        """One message, one line."""
        text = json.dumps({"jsonrpc": "2.0", **message}, ensure_ascii=False)
        try:
            self.process.stdin.write(text.encode() + b"\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            pass  # it has died, and `read` says so

    def read(self) -> None:
        """Whatever comes, until the end."""
        for line in self.process.stdout:
            self.take(json.loads(line))
        say(ended=self.process.wait())

    def take(self, message: Any) -> None:
        """One message."""
        if "method" not in message:
            self.take_answer(message)
        elif "id" in message:
            self.take_request(message)
        elif message["method"] == "run/event":
            say(event=message["params"])
        else:
            say(notified=message["method"], params=message.get("params"))

    def take_answer(self, message: Any) -> None:
        """An answer: to a call, or to the `shutdown` of `end`."""
        if message["id"] == "end":
            self.send(method="exit")
            self.process.stdin.close()
        else:
            part = "error" if "error" in message else "result"
            say(answer=message["id"], **{part: message[part]})

    def take_request(self, message: Any) -> None:
        """A request of the sidecar's. What this host does not know, it has to say so."""
        if message["method"] not in KNOWN:
            self.send(id=message["id"], error={"code": -32601, "message": "this host has no such method"})
            return
        self.asked.append(message["id"])
        say(asked=len(self.asked), method=message["method"], params=message["params"])

    def do(self, todo: Any) -> None:
        """One line of stdin."""
        if "call" in todo:
            self.call(todo["call"], todo["method"], todo.get("params", {}))
        elif "notify" in todo:
            self.send(method=todo["notify"], params=todo.get("params", {}))
        elif "reply" in todo:
            part = "error" if "error" in todo else "result"
            self.send(id=self.asked[todo["reply"] - 1], **{part: todo[part]})
        elif "cancel" in todo:
            self.send(method="$/cancelRequest", params={"id": todo["cancel"]})
        elif "end" in todo:
            self.end()

    def call(self, number: int, method: str, params: Any) -> None:
        """A request."""
        self.send(id=number, method=method, params=params)

    def end(self) -> None:
        """Let the sidecar end in order; the rest is in `take_answer`."""
        self.send(id="end", method="shutdown")


def drive(client_type: type[Client]) -> None:
    """Do what stdin says, until it ends."""
    asked: list[Any] = []
    client = None
    for line in sys.stdin:
        todo = json.loads(line)
        if "start" in todo:
            client = client_type(asked)
        else:
            client.do(todo)


if __name__ == "__main__":
    drive(Client)
