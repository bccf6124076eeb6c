"""The rules of `agent-sidecar conformance`: each finds its fault, on its side and in its line; a good log has none."""

from collections import Counter
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sidecar.cli.conformance.conversations import Kind, Line, conversations
from sidecar.cli.conformance.rules import check
from tests.conftest import scaled

Json = dict[str, Any]
Step = tuple[Kind, Any]


def log(*steps: Step) -> list[Line]:
    return [Line(kind, value, number) for number, (kind, value) in enumerate(steps, 1)]


def call(request_id: Any, method: str, **params: Any) -> Step:
    return "→", {"id": request_id, "method": method, "params": params}


def tell(method: str, **params: Any) -> Step:
    return "→", {"method": method, "params": params}


def answer(request_id: Any, **result: Any) -> Step:
    return "←", {"id": request_id, "result": result}


def refused(request_id: Any, code: int, **data: Any) -> Step:
    return "←", {"id": request_id, "error": {"code": code, "message": "no", "data": data}}


def asks(request_id: Any, method: str = "host/callTool") -> Step:
    return "←", {"id": request_id, "method": method, "params": {}}


def event(seq: int, kind: str = "x", prev: int | None = None, run: str = "r", **fields: Any) -> Step:
    params = {"sessionId": "s", "runId": run, "seq": seq, "type": kind, "data": {}, **fields}
    if "ephemeral" not in fields:
        params["prevSeq"] = seq - 1 if prev is None else prev
    return "←", {"method": "run/event", "params": params}


def opened(request_id: Any, last: int = 0, **fields: Any) -> Step:
    return answer(request_id, session={"sessionId": "s", "lastSeq": last}, lastSeq=last, configOptions=[], **fields)


BEGIN = (call(1, "initialize"), answer(1))
CREATED = (*BEGIN, call(2, "createSession", sessionId="s"), opened(2))
RUN = (call(3, "run", sessionId="s", runId="r"), event(1, "run.started"), event(2, "run.completed"))
RAN = answer(3, runId="r", sessionId="s", status="completed", lastSeq=2)
END = (call("end", "shutdown"), ("←", {"id": "end", "result": None}), tell("exit"), ("exit", 0))
MISSING: Step = ("#", "2 messages are missing here: they came faster than they could be written")
EOF: tuple[Step, ...] = (("eof", True), ("exit", 0))


def found(*steps: Step, **options: Any) -> list[str]:
    return [str(finding) for finding in check(log(*steps), **options)]


# ---- nothing is wrong -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "steps",
    [
        (),
        (*CREATED, *RUN, RAN, *END),
        (*CREATED, *RUN, RAN, *EOF),
        (*CREATED, *RUN, ("kill", 9), *BEGIN, *EOF),
        (*BEGIN, asks("s1"), ("→", {"id": "s1", "error": {"code": -32601, "message": "no"}}), *END),
        (*BEGIN, asks("1", "x/y"), ("→", {"id": "1", "error": {"code": -32601, "message": "no"}}), *END),
        (*BEGIN, asks("s1"), ("←", {"method": "$/cancelRequest", "params": {"id": "s1"}}), *END),
        (*BEGIN, asks("s1"), *EOF),
        (*BEGIN, call(2, "getState"), answer(2), call(2, "getState"), answer(2), *END),
        (*BEGIN, ("→", {"id": "2", "method": "getState"}), call(2, "getState"), answer(2), answer("2"), *END),
        (*CREATED, call(3, "run", sessionId="s"), refused(3, 4030, runId="r"), *END),
        (*CREATED, call(3, "run", sessionId="s", runId="r", wait="accepted"), answer(3, runId="r", status="running"),
         event(1, "run.started"), event(2, "run.completed"), *END),
        (*CREATED, event(1), event(1, "x", sub=1, ephemeral=True), event(2), *END),
        (*BEGIN, call(2, "run", input="x"), event(1, "run.started"), event(2, "run.completed"), answer(2), *END),
        (*BEGIN, call(2, "workspace/executeCommand"), event(1), answer(2), *END),
        (*BEGIN, call(2, "run", input="x", wait="accepted"), answer(2, runId="r", status="running"),
         event(1, "run.started"), event(2, "run.completed"), *END),
        (*CREATED, *RUN[:2], event(1, "run.completed", sub=1, ephemeral=True),
         answer(3, runId="r", sessionId="s", status="completed", lastSeq=1), event(4, prev=1, run="q"), *END),
        (*CREATED, *RUN[:2], call(4, "run", sessionId="s", runId="r"), refused(4, 4006, sessionId="s", runId="r"),
         event(2, "run.completed"), RAN, *END),
        (*BEGIN, ("exit", 1)),
        (*BEGIN, call(2, "getState"), asks("s1"), ("exit", 143)),
        BEGIN,
        (*CREATED, *RUN),
        (*BEGIN, call(2, "createSession", sessionId="s"), answer(2, session="<any>", lastSeq=3), event(4), *END),
        (*BEGIN, call(2, "createSession"), answer(2, session="<any>", lastSeq=3), event(4), *END),
        (*BEGIN, call(2, "createSession"), ("←", {"id": 2, "result": "<any>"}), event(4), *END),
        (*CREATED, *RUN, ("←", {"id": 3, "result": "<any>"}), *END),
        (*CREATED, *RUN[:1], ("←", {"id": 3, "error": "<any>"}), *END),
        (*BEGIN, ("→", {"id": 2, "method": "run", "params": "<any>"}), event(1, "run.started"), *END),
        (*CREATED, ("←", {"method": "run/event", "params": "<any>"}), event(2), *END),
        (*BEGIN, *[("→", {"id": "<any>", "method": "x", "params": {}})] * 2, answer("<any>"), *END),
        (*BEGIN, asks("7", "x/y"), ("→", {"id": "7", "error": "<any>"}), *END),
        (*BEGIN, MISSING, opened(2), event(7), asks("s1"), *END),
        (MISSING, call(2, "run"), asks("s1"), ("→", {"id": "s2", "result": {}}), answer(1), tell("exit"), ("exit", 0)),
        (*BEGIN, ("#", "a message is missing here: it could not be recorded"), answer(2), *END),
        (*BEGIN, asks("s1"), call(2, "getState"), ("#", "the client closed its end"), ("exit", 1)),
        (*CREATED, *RUN, RAN, call(4, "deleteSession", sessionId="s"), answer(4), call(5, "createSession"), opened(5),
         *RUN, RAN, *END),
        (*CREATED, *RUN, RAN, call(4, "resumeSession", sessionId="s", replayFrom={"type": "start"}), opened(4, 2),
         event(1, "run.started"), event(2, "run.completed"), *END),
        (*BEGIN, call(2, "resumeSession", sessionId="s", replayFrom={"type": "seq", "seq": 1, "epoch": "e"}),
         opened(2, 8, truncated=True), event(7, prev=1), event(8), *END),
        (call(1, "initialize", initializationOptions={"sidecar": {"optOutEvents": ["usage.updated"]}}), answer(1),
         call(2, "createSession", sessionId="s"), opened(2), event(1), event(4, prev=1), *END),
    ],
)  # fmt: skip
def test_a_log_that_is_right_has_no_findings(steps: tuple[Step, ...]) -> None:
    assert found(*steps) == []


def test_the_golden_conversations_are_right_but_for_what_they_do_on_purpose() -> None:
    for each in conversations():
        findings = check(each.lines, each.refusals())
        if each.name == "bad_messages":
            assert {finding.side for finding in findings} == {"client"}
        else:
            assert findings == [], each.name


# ---- the client's side ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("steps", "finding"),
    [
        ((call(1, "getState"), answer(1), *EOF),
         "line 1: 'initialize' has to be the first message; this is 'getState'"),
        ((*BEGIN, call(2, "initialize"), refused(2, -1), *END), "line 3: 'initialize' is sent once only"),
        ((*BEGIN, ("→", '{"id":2}'), *END), "line 3: this is no JSON-RPC 2.0 message (an object with \"jsonrpc\": "
         "\"2.0\"): \"{\\\"id\\\":2}\""),
        ((*BEGIN, ("→", {"id": 2}), *END), 'line 3: a message has a method, or either a result or an error: {"id": 2}'),
        ((*BEGIN, ("→", {"method": "x", "params": [1]}), *END), "line 3: the params of 'x' are no object: [1]"),
        ((*BEGIN, call(True, "x"), *END), "line 3: the id of 'x' is neither a string nor an integer: true"),
        ((*BEGIN, call(None, "x"), *END), "line 3: the id of 'x' is neither a string nor an integer: null"),
        ((*BEGIN, call([1], "x"), *END), "line 3: the id of 'x' is neither a string nor an integer: "
         "[1]"),
        ((*BEGIN, ("→", {"method": 5}), *END), 'line 3: a message has a method, or either a result or an error: '
         '{"method": 5}'),
        ((*BEGIN, call(1.5, "x"), *END), "line 3: the id of 'x' is neither a string nor an integer: 1.5"),
        ((*BEGIN, call(2, "x"), call(2, "y"), answer(2), *END),
         "line 4: the id 2 is in use: 'x' has not been answered"),
        ((*BEGIN, asks("s1"), *END), "line 3: 'host/callTool' is never answered"),
        ((*BEGIN, asks("7", "x/y"), *EOF), "line 3: 'x/y' is never answered"),
        ((*BEGIN, asks("s1"), *[("→", {"id": "s1", "result": {}})] * 2, *END),
         "line 5: 'host/callTool' of line 3 is answered a second time"),
        ((*BEGIN, asks("7", "x/y"), ("→", {"id": "7", "result": {}}), *END),
         "line 4: the unknown method 'x/y' has to be answered with -32601: {\"id\": \"7\", \"result\": {}}"),
        ((*BEGIN, ("→", {"id": "s9", "result": {}}), *END),
         'line 3: this answers nothing that was asked: {"id": "s9", "result": {}}'),
        ((*BEGIN, call("end", "shutdown"), ("←", {"id": "end", "result": None}), call(9, "getState"),
          refused(9, -32600), tell("exit"), ("exit", 0)), "line 5: 'getState' comes after 'shutdown'; only 'exit' may"),
        ((*BEGIN, tell("exit"), ("eof", True), ("exit", 1)), "line 3: 'exit' comes without 'shutdown' before it"),
        ((*BEGIN, ("exit", -15)), "line 3: the conversation ends neither with 'shutdown' and 'exit' nor with the end "
         "of stdin"),
        ((*BEGIN, call(2, "run", inptu="x"), refused(2, -32602), *END),
         "line 4: 'run' was refused as malformed: -32602, no"),
    ],
)  # fmt: skip
def test_what_a_client_does_wrong_is_found_in_its_line(steps: tuple[Step, ...], finding: str) -> None:
    assert found(*steps) == [f"client: {finding}"]


def test_an_answer_under_an_id_that_only_looks_the_same_says_what_was_meant() -> None:
    told = found(*BEGIN, asks("7", "x/y"), ("→", {"id": 7, "error": {"code": -32601}}), *END)

    assert told[0].startswith("client: line 3: 'x/y' is never answered")
    assert told[1].endswith('; the id was "7", and has to come back as it is')


def test_a_refusal_that_is_meant_is_excused_as_often_as_it_is_meant() -> None:
    once = (*BEGIN, call(2, "run"), refused(2, -32602))

    assert found(*once, *END, excused=Counter({("run", -32602): 1})) == []
    assert len(found(*once, *once[2:], *END, excused=Counter({("run", -32602): 1}))) == 1


def test_the_refusal_of_an_id_in_use_is_no_answer_to_the_request_that_has_it() -> None:
    told = found(*BEGIN, call(2, "run"), call(2, "getState"), refused(2, -32600), answer(2), *END)

    assert [finding.partition(":")[0] for finding in told] == ["client", "client"]


# ---- the sidecar's side ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("steps", "finding"),
    [
        ((*BEGIN, call(2, "getState"), *END), "line 3: 'getState' of line 3 is never answered"),
        ((*BEGIN, answer(1), *END), "line 3: it answers what was not asked, or was answered before: id 1"),
        ((*BEGIN, answer("1"), *END), "line 3: it answers what was not asked, or was answered before: id '1'"),
        ((*BEGIN, refused(None, -1), *END), "line 3: it answers what was not asked, or was answered before: id None"),
        ((*BEGIN, asks("s1"), asks("s1"), ("→", {"id": "s1", "result": {}}), *END),
         "line 4: the id 's1' was used before"),
        ((*CREATED, event(1), event(3, prev=1), *END), "line 6: the event has the number 3 after 1"),
        ((*CREATED, event(1), event(1, prev=1), *END), "line 6: the event has the number 1 after 1"),
        ((*CREATED, event(1), event(3), *END), "line 6: 'prevSeq' is 2, but the event before it has 1"),
        ((*CREATED, event(5), *END), "line 5: 'prevSeq' is 4, but the event before it has 0"),
        ((*BEGIN, call(2, "createSession", sessionId="s"), event(1), opened(2, 1), *END),
         "line 4: an event of the session 's' comes before the answer that opens it"),
        ((*BEGIN, call(2, "updateSession", sessionId="s"), event(1), answer(2), *END),
         "line 4: an event of the session 's' comes before the answer that opens it"),
        ((*CREATED, *RUN, RAN, event(3), *END), "line 9: 'x' comes after the 'run.completed' of its run 'r'"),
        ((*CREATED, *RUN, event(3, "run.completed"), answer(3, runId="r", sessionId="s", status="completed", lastSeq=3),
          *END), "line 8: 'run.completed' comes after the 'run.completed' of its run 'r'"),
        ((*CREATED, *RUN[:2], RAN, event(2, "run.completed"), *END),
         "line 7: the run 'r' is answered before its 'run.completed'"),
        ((*CREATED, *RUN[:2], refused(3, 4030, sessionId="s", runId="r"), event(2, "run.completed"), *END),
         "line 7: the run 'r' is answered before its 'run.completed'"),
        ((*CREATED, *RUN, answer(3, runId="r", sessionId="s", status="completed", lastSeq=7), *END),
         "line 8: 'lastSeq' is 7, but the 'run.completed' of 'r' has 2"),
        ((*BEGIN, ("←", "text"), *END), 'line 3: a message is an object: "text"'),
        ((*BEGIN, ("←", {"result": 1}), *END), 'line 3: an answer has the id of a request, or null: {"result": 1}'),
        ((*BEGIN, ("←", {"id": 2}), *END), 'line 3: a message has a method, or either a result or an error: {"id": 2}'),
        ((*BEGIN, ("←", {"id": None, "error": {}}), *END), 'line 3: an error has a code: {"id": null, "error": {}}'),
        ((*BEGIN, ("←", {"method": None}), *END), 'line 3: a method is a string: {"method": null}'),
        ((*BEGIN, ("←", {"id": {"a": 1}, "method": "x"}), *END),
         'line 3: the id of a request is a string or an integer: {"id": {"a": 1}, "method": "x"}'),
        ((*BEGIN, ("←", {"method": "run/event"}), *END),
         "line 3: an event has a 'sessionId' and a 'type': {\"method\": \"run/event\"}"),
        ((*BEGIN, ("←", {"method": "$/cancelRequest"}), *END),
         "line 3: the params of '$/cancelRequest' have the id of a request: {\"method\": \"$/cancelRequest\"}"),
        ((*BEGIN, MISSING, answer(9), ("kill", 9), *BEGIN, answer(9), *END),
         "line 8: it answers what was not asked, or was answered before: id 9"),
        ((*CREATED, event(1, "run.started"), *END), "line 5: the run 'r' of the session 's' has no 'run.completed'"),
    ],
)  # fmt: skip
def test_what_the_sidecar_does_wrong_is_found_in_its_line(steps: tuple[Step, ...], finding: str) -> None:
    assert found(*steps) == [f"sidecar: {finding}"]


def test_each_process_is_held_to_the_rules_of_its_own() -> None:
    told = found(*BEGIN, call(2, "getState"), ("kill", 9), *BEGIN, call(2, "getState"), answer(2), *END)

    assert told == []


@pytest.mark.parametrize(
    ("field", "odd"), [("seq", [1]), ("seq", ""), ("prevSeq", [1]), ("prevSeq", ""), ("prevSeq", []), ("runId", [1])]
)
def test_an_event_that_cannot_be_placed_is_told(field: str, odd: Any) -> None:
    kind, message = event(1)
    message["params"][field] = odd

    (told,) = found(*CREATED, (kind, message), *END)

    assert told.startswith("sidecar: line 5: ")
    assert field in told


# ---- any log --------------------------------------------------------------------------------------------------------

GOLDEN = [line for each in conversations() for line in each.lines]
ODD = [None, True, 0, -1, 128, 1.5, "", "<any>", "start", "s", "r", [], [1], {}, {"a": 1}, {"sessionId": []}]


def mutated(value: Any, random: Random) -> Any:
    """The value with one part of it, mostly deep inside, replaced by something odd or gone."""
    if not isinstance(value, dict | list) or not value or random.random() < 0.1:
        return random.choice(ODD)
    if isinstance(value, list):
        return [mutated(value[0], random), *value[1:]]
    key = random.choice(list(value))
    if random.random() < 0.2:
        return {name: item for name, item in value.items() if name != key}
    return {**value, key: mutated(value[key], random)}


@settings(max_examples=scaled(150))
@given(random=st.randoms(use_true_random=False), start=st.integers(0, len(GOLDEN) - 1))
def test_no_log_makes_the_rules_raise(random: Random, start: int) -> None:
    steps = list[Step]()
    for line in GOLDEN[start : start + 60]:
        steps.append((line.kind, mutated(line.value, random) if random.random() < 0.4 else line.value))
        if random.random() < 0.05:
            steps.append(MISSING)

    for finding in check(log(*steps)):
        assert str(finding)
