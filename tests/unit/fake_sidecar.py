"""A process that speaks NDJSON like a sidecar and does what each request's name says. For the client's tests only."""

import json
import os
import sys
import time
from functools import partial
from pathlib import Path

FLOOD = 20_000
"""Events of the run whose input is `flood`: far more than a pipe holds."""


def send(**message: object) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def receive() -> dict:
    line = sys.stdin.readline()
    if not line:
        raise SystemExit(0)
    return json.loads(line)


def event(session_id: str, run_id: str, number: int, kind: str, **more: object) -> None:
    where = {"sessionId": session_id, "runId": run_id, "seq": number, "epoch": "e"}
    params = {**where, "time": "t", "type": kind, "data": {}}
    send(method="run/event", params={**params, **more})


def run(request_id: int, params: dict) -> None:
    """Three events and the answer; the input chooses how it goes."""
    run_id, text = params["runId"], params["input"]
    tell_of = partial(event, params.get("sessionId", "s"), run_id)
    tell_of(1, "run.started")
    if text == "die":
        os._exit(7)
    if text.startswith("end once ") and not (ended := Path(text.removeprefix("end once "))).exists():
        ended.touch()
        send(id=request_id, error={"code": -32802, "message": "ending", "data": {"kind": "serverCancelled"}})
        sys.exit(143)
    if text == "stall":
        cancel = receive()
        assert cancel["method"] == "$/cancelRequest", cancel
        assert cancel["params"] == {"id": request_id}, cancel
        tell_of(2, "run.completed")
        send(id=request_id, result={"runId": run_id, "status": "cancelled", "text": ""})
        return
    if text == "delegate":
        event("s", "child", 2, "run.started", parentRunId=run_id)
        event("s", "grandchild", 3, "run.started", parentRunId="child")
        event("s", "someone else's", 4, "run.started")
    if text == "flood":
        for number in range(1, FLOOD + 1):
            tell_of(1, "provider.progress", sub=number, ephemeral=True, padding="x" * 1_000)
    tell_of(5, "message.completed")
    tell_of(6, "run.completed")
    if text == "fail":
        error = {"code": 4036, "message": "no such host", "data": {"kind": "modelUnavailable", "retryable": True}}
        send(id=request_id, error=error)
    else:
        send(id=request_id, result={"runId": run_id, "status": "completed", "text": text, "echo": params})


def ask_host(request_id: int, params: dict) -> None:
    """Send the host a request, and give its whole answer back as the result.

    `thenHear`: wait for a message of the host's first. `thenCancel`: take the request back. `thenTell`: notify.
    """
    send(id="s1", method=params["method"], params=params.get("params"))
    if params.get("thenHear"):
        receive()
    if params.get("thenCancel"):
        send(method="$/cancelRequest", params={"id": "s1"})
    if told := params.get("thenTell"):
        send(**told)
    while "method" in (reply := receive()):
        pass
    send(id=request_id, result=reply)


def swap(request_id: int, params: dict) -> None:
    """Answer the next request before this one."""
    send(id=receive()["id"], result="second")
    send(id=request_id, result="first")


def noise(request_id: int, params: dict) -> None:
    sys.stdout.write("this is no JSON\n\n[1]\n")
    send(id=request_id, result="after the noise")


def die(request_id: int, params: dict) -> None:
    sys.stderr.write("out of luck\n")
    sys.stderr.flush()
    os._exit(7)


def session(request_id: int, params: dict) -> None:
    if params.get("contextProviders") == [{"type": "refused"}]:
        send(id=request_id, error={"code": 4015, "message": "no such provider", "data": {"kind": "configInvalid"}})
        return
    info = {"sessionId": params.get("sessionId", "s"), "epoch": "e"}
    send(id=request_id, result={"session": info, "lastSeq": 0, "given": params})


def initialize(request_id: int, params: dict) -> None:
    """Say like a sidecar what it is, unless the environment has another answer, and what it was told."""
    answer = {
        "serverInfo": {"name": "agent-sidecar", "version": "0.1.0"},
        "capabilities": {"experimental": {"sidecar": {"protocolVersion": 1}}},
    }
    if "FAKE_ANSWER" in os.environ:
        answer = json.loads(os.environ["FAKE_ANSWER"])
    send(id=request_id, result={**answer, "method": "initialize", "params": params})


def tell(request_id: int, params: dict) -> None:
    """Send the host a notification first."""
    send(**params)
    send(id=request_id, result=None)


METHODS = {
    "initialize": initialize,
    "tell": tell,
    "run": run,
    "askHost": ask_host,
    "createSession": session,
    "resumeSession": session,
    "swap": swap,
    "noise": noise,
    "die": die,
    "big": lambda request_id, params: send(id=request_id, result="x" * params["size"]),
    "environment": lambda request_id, _: send(id=request_id, result={**os.environ, "group": str(os.getpgid(0))}),
    "hang": lambda *_: time.sleep(3600),
    "shutdown": lambda request_id, _: send(id=request_id, result=None),
}


def main() -> None:
    while (message := receive())["method"] != "exit":
        if "id" not in message:
            continue
        method, params = message["method"], message["params"]
        if method in METHODS:
            METHODS[method](message["id"], params)
        else:
            send(id=message["id"], result={"method": method, "params": params})


if __name__ == "__main__":
    main()
