"""A process that speaks NDJSON like a sidecar and does what each request's name says. For the client's tests only."""

import json
import os
import sys
import time

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


def event(run_id: str, number: int, kind: str, **more: object) -> None:
    params = {"sessionId": "s", "runId": run_id, "seq": number, "epoch": "e", "time": "t", "type": kind, "data": {}}
    send(method="run/event", params={**params, **more})


def run(request_id: int, params: dict) -> None:
    """Three events and the answer; the input chooses how it goes."""
    run_id, text = params["runId"], params["input"]
    event(run_id, 1, "run.started")
    if text == "stall":
        cancel = receive()
        assert cancel["method"] == "$/cancelRequest", cancel
        assert cancel["params"] == {"id": request_id}, cancel
        event(run_id, 2, "run.completed")
        send(id=request_id, result={"runId": run_id, "status": "cancelled", "text": ""})
        return
    if text == "delegate":
        event("child", 2, "run.started", parentRunId=run_id)
        event("grandchild", 3, "run.started", parentRunId="child")
        event("someone else's", 4, "run.started")
    if text == "flood":
        for number in range(1, FLOOD + 1):
            event(run_id, 1, "provider.progress", sub=number, ephemeral=True, padding="x" * 1_000)
    event(run_id, 5, "message.completed")
    event(run_id, 6, "run.completed")
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


def tell(request_id: int, params: dict) -> None:
    """Send the host a notification first."""
    send(**params)
    send(id=request_id, result=None)


METHODS = {
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
