"""What is shown before a person decides on the terminal, and what their answers mean."""

import asyncio
import io
from typing import Any

import pytest

from sidecar.cli import asking
from sidecar.cli.approval_prompt import ARGUMENTS_SHOWN, ask_approval
from sidecar.cli.asking import NOBODY, Asking
from sidecar.cli.form_prompt import ask_question
from sidecar.cli.output import Output
from sidecar.cli.screen import JsonLines

OPTIONS: list[Any] = [
    {"optionId": "once", "name": "Allow once", "kind": "allowOnce"},
    {"optionId": "session", "name": "Allow in this session", "kind": "allowSession"},
    {"optionId": "no", "name": "Reject", "kind": "rejectOnce"},
]
REJECTED = {"outcome": "selected", "optionId": "no"}


class Person:
    """Answers in turn, and remembers what was shown; after the last answer the input ends."""

    def __init__(self, *answers: str) -> None:
        self._answers = list(answers)
        self._shown = io.StringIO()
        self.out = Output(self._shown)
        self.asking = 0
        self.most_at_once = 0

    @property
    def shown(self) -> str:
        return self._shown.getvalue()

    async def ask(self, prompt: str) -> str:
        self.out.write(prompt)
        self.asking += 1
        self.most_at_once = max(self.most_at_once, self.asking)
        await asyncio.sleep(0)
        self.asking -= 1
        return self._answers.pop(0) if self._answers else ""


def request(options: list[Any] = OPTIONS, **arguments: Any) -> Any:
    call = {"callId": "c", "name": "rm", "kind": "execute", "arguments": arguments}
    return {"requestId": "q", "title": "Remove files", "toolCall": call, "options": options}


async def decided(person: Person, asked: Any) -> Any:
    return await ask_approval(person, asked)


@pytest.mark.parametrize(
    ("answers", "outcome"),
    [
        (["1"], {"outcome": "selected", "optionId": "once"}),
        (["2"], {"outcome": "selected", "optionId": "session"}),
        (["Y"], {"outcome": "selected", "optionId": "once"}),
        (["3"], REJECTED),
        (["n use the bin"], {**REJECTED, "message": "use the bin"}),
        (["3 use the bin"], {**REJECTED, "message": "use the bin"}),
        ([""], REJECTED),
        ([], REJECTED),
        (["what?", "1"], {"outcome": "selected", "optionId": "once"}),
        (["1 please", "0", "4", "1"], REJECTED),
    ],
)
async def test_only_a_clear_answer_allows(answers: list[str], outcome: Any) -> None:
    assert await decided(Person(*answers), request()) == outcome


async def test_where_no_rejection_is_offered_the_request_is_closed() -> None:
    assert await decided(Person(), request(options=OPTIONS[:1])) == {"outcome": "cancelled"}


async def test_the_call_is_shown_with_its_arguments_and_options() -> None:
    person = Person("1")
    await decided(person, {**request(path="a\x1b[2J.txt", force=True), "description": "It removes\nfiles."})
    assert person.shown == (
        "? Remove files\n  │ It removes\n  │ files.\n  tool rm (execute)\n"
        '  │ path: "a\\u001b[2J.txt"\n  │ force: true\n'
        "  1  Allow once\n  2  Allow in this session\n  3  Reject\n"
        "may it be called? (1-3, after a rejection also why; empty rejects) "
    )


async def test_long_arguments_are_cut_and_can_be_read_whole_before_deciding() -> None:
    many = {f"a{number}": number for number in range(ARGUMENTS_SHOWN)}
    person = Person("v", "1")
    outcome = await decided(person, request(script="x" * 900 + "\nend", **many))
    assert outcome == {"outcome": "selected", "optionId": "once"}
    before, whole = person.shown.split("empty rejects)", 1)
    assert "characters …]" in before
    assert "[… 1 arguments …]" in before
    assert "v  show the arguments whole" in before
    assert "x" * 900 + '\\nend"' in whole
    assert "a19: 19" in whole


FORM = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "title": "Your name", "description": "As in\nthe passport", "maxLength": 5},
        "age": {"type": "integer", "minimum": 1, "maximum": 120},
        "height": {"type": "number", "default": 1.5},
        "colour": {"type": "string", "enum": ["red", "blue"], "enumNames": ["Red", "Blue"]},
        "size": {"type": "string", "oneOf": [{"const": "s", "title": "Small"}, {"const": "l", "title": "Large"}]},
        "happy": {"type": "boolean"},
    },
    "required": ["name"],
}


async def asked(person: Person, schema: Any = None, **more: Any) -> Any:
    question: Any = {"mode": "form", "message": "Who are you?", "requestedSchema": schema, **more}
    return await ask_question(person, question)


async def test_a_form_is_asked_field_by_field() -> None:
    person = Person("Ann", "33", "1.7", "2", "Small", "yes")
    content = {"name": "Ann", "age": 33, "height": 1.7, "colour": "blue", "size": "s", "happy": True}
    assert await asked(person, FORM) == {"action": "accept", "content": content}
    assert person.shown == (
        "? a question:\n  │ Who are you?\n"
        "  │ As in\n  │ the passport\nYour name (text; empty declines): "
        "age (a whole number; may be empty): height (a number; empty: 1.5): "
        "  1  Red\n  2  Blue\ncolour (1-2; may be empty): "
        "  1  Small\n  2  Large\nsize (1-2; may be empty): happy (y or n; may be empty): "
    )


async def test_empty_answers_leave_fields_out_and_take_defaults() -> None:
    assert await asked(Person("Ann"), FORM) == {"action": "accept", "content": {"name": "Ann", "height": 1.5}}


@pytest.mark.parametrize("answers", [[], ["Barbara", "Barbara", "Barbara"]])
async def test_a_required_field_without_an_answer_declines(answers: list[str]) -> None:
    assert await asked(Person(*answers), FORM) == {"action": "decline"}


async def test_a_form_in_which_nothing_was_answered_declines() -> None:
    assert await asked(Person(), {"properties": {"age": {"type": "integer", "default": 3}}}) == {"action": "decline"}


@pytest.mark.parametrize(
    ("field", "wrong", "complaint", "right", "value"),
    [
        ({"type": "integer"}, "1.5", "1.5 is no whole number", "-2", -2),
        ({"type": "number"}, "inf", "inf is no number", "1e3", 1000.0),
        ({"type": "number", "minimum": 3}, "2", "it must be 3 or more", "3", 3.0),
        ({"type": "integer", "maximum": 3}, "4", "it must be 3 or less", "3", 3),
        ({"type": "string", "minLength": 3}, "ab", "it must have 3 characters or more", "abc", "abc"),
        ({"type": "string", "maxLength": 3}, "abcd", "it must have 3 characters or less", "abc", "abc"),
        ({"type": "boolean"}, "perhaps", "answer y or n", "no", False),
        ({"enum": [1, 2]}, "3", "choose a number from 1 to 2", "2", 2),
    ],
)
async def test_an_answer_that_does_not_fit_is_asked_for_again(
    field: Any, wrong: str, complaint: str, right: str, value: Any
) -> None:
    person = Person(wrong, right)
    answer = await asked(person, {"properties": {"it": field}})
    assert answer == {"action": "accept", "content": {"it": value}}
    assert f"  {complaint}\n" in person.shown


@pytest.mark.parametrize("field", [{"type": "array"}, {"type": ["string", "null"]}, "text"])
async def test_what_cannot_be_typed_declines_and_says_so(field: Any) -> None:
    person = Person("x")
    assert await asked(person, {"properties": {"it": field}}) == {"action": "decline"}
    assert "  declined: the field it " in person.shown


async def test_a_pattern_is_shown_and_not_run() -> None:
    person = Person("a" * 40 + "!")
    answer = await asked(person, {"properties": {"it": {"type": "string", "pattern": "^(a+)+$"}}})
    assert answer["action"] == "accept"
    assert "  │ of the form ^(a+)+$\n" in person.shown


@pytest.mark.parametrize(("answer", "action"), [("y", "accept"), ("", "decline"), ("perhaps", "decline")])
async def test_a_url_is_shown_and_a_form_without_fields_is_a_yes_or_no(answer: str, action: str) -> None:
    person = Person(answer, answer)
    assert await asked(person, mode="url", url="https://a.example/\u202ex") == {"action": action}
    assert "https://a.example/\\u202ex\n" in person.shown
    assert await asked(person, {"type": "object"}) == {"action": action}


async def test_two_questions_wait_for_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    person = Person("1", "y")
    monkeypatch.setattr(asking, "can_ask", lambda: True)
    monkeypatch.setattr(asking, "Asker", lambda: person)
    host = Asking(JsonLines(), no_input=False).host
    approve: Any = host.approve
    elicit: Any = host.elicit
    answers = await asyncio.gather(approve(request()), elicit({"mode": "url", "message": "?", "url": "u"}))
    assert answers == [{"outcome": "selected", "optionId": "once"}, {"action": "accept"}]
    assert person.most_at_once == 1


class Waiting:
    """A client of a session in which these wait."""

    def __init__(self, pending: list[Any]) -> None:
        self._pending = pending

    async def request(self, method: str, params: Any) -> Any:
        assert (method, params) == ("getState", {"sessionId": "mine", "include": ["pending"]})
        return {"pendingRequests": self._pending}


async def test_a_call_that_waits_in_the_store_is_answered_by_yes_or_no(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asking, "can_ask", lambda: True)
    monkeypatch.setattr(asking, "Asker", lambda: Person("1", "2 no need"))
    pending: Any = [
        {"requestId": "later", "runId": "another", "openedAt": "4", "kind": "approval", "payload": request()},
        {"requestId": "two", "runId": "r", "openedAt": "3", "kind": "approval", "payload": request()},
        {"requestId": "one", "runId": "r", "openedAt": "2", "kind": "approval", "payload": request()},
        {"requestId": "other", "runId": "r", "openedAt": "1", "kind": "hostTool", "payload": {}},
    ]
    client: Any = Waiting(pending)
    answers: Any = await Asking(JsonLines(), no_input=False).parked(client, "mine")
    assert answers == [
        {
            "role": "user",
            "content": [
                {"type": "approvalResponse", "requestId": "one", "approved": True},
                {"type": "approvalResponse", "requestId": "two", "approved": False, "message": "no need"},
            ],
        }
    ]


@pytest.mark.parametrize("no_input", [True, False])
async def test_where_nobody_can_be_asked_it_is_a_no_and_a_line_tells_of_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], no_input: bool
) -> None:
    monkeypatch.setattr(asking, "can_ask", lambda: no_input)
    nobody = Asking(JsonLines(), no_input=no_input)
    approve: Any = nobody.host.approve
    elicit: Any = nobody.host.elicit
    assert await approve({**request(), "title": "Re\x1bmove"}) == {**REJECTED, "message": NOBODY}
    assert await elicit({"mode": "form", "message": "Who?"}) == {"action": "decline"}
    client: Any = None
    assert await nobody.parked(client, "mine") is None
    out, err = capsys.readouterr()
    assert out == ""
    assert err.splitlines() == [
        f"agent-sidecar: denied: {NOBODY}: Re\\x1bmove",
        f"agent-sidecar: declined: {NOBODY}: Who?",
    ]
