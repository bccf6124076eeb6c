"""Questions that tools and providers ask a person through the host: by a form, by an address; without one, declined."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.bench.fake_model import F, FakeModel, T
from tests.bench.host import LATER, FakeHost, HostSession, Refuses
from tests.bench.tool_plugins import tool_plugins
from tests.bench.wanted_calls import told, wants
from tests.bench.wire import Json

ELICIT = "host/elicit"
FORM = {
    "type": "object",
    "properties": {"seats": {"type": "integer", "minimum": 1}, "window": {"type": "boolean"}},
    "required": ["seats"],
}

MODULE = f"""
from providers.api.provider import ContextProvider
from providers.api.run_context import current_run

FORM = {FORM!r}


@tool
async def book(context: FunctionInvocationContext) -> dict:
    \"\"\"Book seats.\"\"\"
    answer = await context.run.elicit("How many seats?", schema=FORM)
    return {{"action": answer.action, "content": answer.content}}


@tool
async def sign_in() -> str:
    \"\"\"Sign in.\"\"\"
    answer = await current_run().elicit("Please sign in.", url="https://example.org/login")
    return f"{{answer.action}} {{answer.content}}"


@tool
async def confused(both: bool) -> str:
    \"\"\"Ask in a way that is none.\"\"\"
    schema = FORM if both else {{"type": 5}}
    try:
        await current_run().elicit("What?", schema=schema, url="https://example.org" if both else None)
    except ValueError as error:
        return str(error)


class Asks(ContextProvider):
    \"\"\"Asks for a name, once.\"\"\"

    async def before_run(self, *, agent, session, context, state):
        if "name" not in state:
            answer = await current_run().elicit("Who are you?", schema={{"type": "object", "required": ["name"]}})
            if answer.action == "accept":
                state["name"] = answer.content["name"]
        context.extend_instructions(self, f"You talk to {{state.get('name', 'somebody')}}.")
"""
PROVIDER = '[[agents.polite.context_providers]]\ntype = "bench_tools:Asks"\nsource_id = "asks"\n'


@pytest.fixture
def open_session(start_host: Any, model: FakeModel, tmp_path: Path) -> Callable[..., Any]:
    """Opens a session with these plug-ins, at a host that declares this of `elicitation`."""
    plugins = tool_plugins(tmp_path, module=MODULE, tools=("book", "sign_in", "confused"), agent=PROVIDER)

    async def opened(elicitation: Json | None, **params: Any) -> HostSession:
        features = {} if elicitation is None else {"elicitation": elicitation}
        block = {"sidecar": {"protocolVersions": [1], "features": features}}
        host: FakeHost = await start_host(
            args=plugins.args, env=model.environment, initialize={"initializationOptions": block}
        )
        return await host.create_session(**({"sessionId": "s"} | params))

    return opened


def booking(model: FakeModel) -> None:
    """The model's part: it calls `book`, then speaks."""
    wants(model, ("book", {}))
    model.says(T("done"), F())


def booked(model: FakeModel) -> str:
    """What the model was told of it."""
    ((_, text),) = told(model)
    return text


async def asked(session: HostSession, count: int = 1) -> Json:
    """The question, once it has come."""
    return (await session.host.until(lambda: session.host.asked(ELICIT)[count - 1 :]))[0]


async def test_a_tool_s_form_is_asked_and_what_was_filled_in_comes_back(open_session: Any, model: FakeModel) -> None:
    session = await open_session({"form": {}})
    session.host.serves[ELICIT] = lambda params: {"action": "accept", "content": {"seats": 2}}
    booking(model)

    await session.run("two seats", runId="r")

    assert booked(model) == '{"action": "accept", "content": {"seats": 2}}'
    params = (await asked(session))["params"]
    request_id = params.pop("requestId")
    assert params == {
        "sessionId": "s", "runId": "r", "mode": "form", "message": "How many seats?", "requestedSchema": FORM,
    }  # fmt: skip
    of_call = [e for e in session.durable() if e["type"].startswith(("tool.", "request."))]
    assert [e["type"] for e in of_call] == ["tool.started", "request.opened", "request.resolved", "tool.completed"]
    opened, resolved = of_call[1]["data"], of_call[2]["data"]
    assert opened == {"requestId": request_id, "kind": "elicitation", "payload": {**params, "requestId": request_id}}
    assert resolved == {"requestId": request_id, "outcome": "accept", "by": "client"}


async def test_whatever_is_no_answer_that_the_form_allows_declines(open_session: Any, model: FakeModel) -> None:
    session = await open_session({"form": {}})
    answers: list[tuple[Any, str]] = [
        ({"action": "decline"}, "decline"),
        ({"action": "decline", "content": {"seats": 2}}, "decline"),
        ({"action": "cancel"}, "cancel"),
        ({"action": "accept"}, "decline"),
        ({"action": "accept", "content": {"seats": 0}}, "decline"),
        ({"action": "accept", "content": {"seats": "2"}}, "decline"),
        ({"action": "accept", "content": {"window": True}}, "decline"),
        ({"action": "accept", "content": [2]}, "decline"),
        ({"action": "ofALaterVersion"}, "decline"),
        ({}, "decline"),
        ("yes", "decline"),
        (None, "decline"),
        (Refuses(-32601, "no"), "decline"),
        (Refuses(-1, "broken"), "decline"),
    ]
    given = iter([answer for answer, _ in answers])
    session.host.serves[ELICIT] = lambda params: next(given)

    for answer, action in answers:
        booking(model)
        run = session.start("seats")
        assert (await run.result())["text"] == "done"
        results = [event["data"]["structuredContent"] for event in run.events("tool.completed")]
        assert results == [{"action": action, "content": None}], answer


async def test_an_address_is_shown_and_its_answer_has_no_content(open_session: Any, model: FakeModel) -> None:
    session = await open_session({"url": {}})
    session.host.serves[ELICIT] = lambda params: {"action": "accept", "content": {"token": "not asked for"}}
    wants(model, ("sign_in", {}))
    model.says(T("done"), F())

    await session.run("sign in")

    assert booked(model) == "accept None"
    params = (await asked(session))["params"]
    assert (params["mode"], params["url"], params["message"]) == ("url", "https://example.org/login", "Please sign in.")
    assert "requestedSchema" not in params


@pytest.mark.parametrize(
    ("elicitation", "tools"), [(None, ["book", "sign_in"]), ({"form": {}}, ["sign_in"]), ({"url": {}}, ["book"])]
)
async def test_a_host_is_not_asked_what_it_has_not_declared(
    open_session: Any, model: FakeModel, elicitation: Json | None, tools: list[str]
) -> None:
    session = await open_session(elicitation)
    wants(model, *((name, {}) for name in tools))
    model.says(T("done"), F())

    await session.run("go")

    assert ["decline" in text for _, text in told(model)] == [True] * len(tools)
    assert session.host.asked(ELICIT) == session.events("request.opened") == []


async def test_a_question_that_is_none_is_the_plug_in_s_fault(open_session: Any, model: FakeModel) -> None:
    session = await open_session({"form": {}, "url": {}})
    wants(model, ("confused", {"both": True}), ("confused", {"both": False}))
    model.says(T("done"), F())

    await session.run("go")

    (_, both), (_, broken) = told(model)
    assert both == "elicit() needs either a schema or a url"
    assert broken.startswith("the form's schema is none")
    assert session.host.asked(ELICIT) == []


async def test_a_provider_asks_before_the_model_is_called(open_session: Any, model: FakeModel) -> None:
    session = await open_session({"form": {}}, agent="polite")
    model.says("hello")
    run = session.start("hi")
    question = await asked(session)
    (pending,) = (await session.state())["pendingRequests"]
    assert (pending["kind"], pending["requestId"]) == ("elicitation", question["params"]["requestId"])
    assert model.requests == []

    session.host.reply(question, {"action": "accept", "content": {"name": "Ada"}})

    await run.result()
    assert model.last_request.system == "You talk to Ada."
    assert (await session.state())["state"] == {"asks": {"name": "Ada"}}
    model.says("hello again")
    await session.run("hi")
    assert len(session.host.asked(ELICIT)) == 1


async def test_a_cancelled_run_takes_its_question_back(open_session: Any, model: FakeModel) -> None:
    session = await open_session({"form": {}})
    session.host.serves[ELICIT] = lambda params: LATER
    wants(model, ("book", {}))
    run = session.start("seats")
    question = await asked(session)

    await session.cancel()

    assert (await run.result())["status"] == "cancelled"
    taken_back = [m["params"]["id"] for m in session.host.messages if m.get("method") == "$/cancelRequest"]
    assert taken_back == [question["id"]]
    assert session.events("request.resolved")[0]["data"]["by"] == "cancel"
    session.host.reply(question, {"action": "accept", "content": {"seats": 2}})
    late = {"requestId": question["params"]["requestId"], "result": {"action": "accept", "content": {"seats": 2}}}
    assert (await session.host.request("resolveRequest", late))["status"] == "alreadyResolved"
    assert (await session.state())["pendingRequests"] == []


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        ({"result": {"action": "accept", "content": {"seats": 3}}}, '{"action": "accept", "content": {"seats": 3}}'),
        ({"result": {"action": "accept", "content": {}}}, '{"action": "decline", "content": null}'),
        ({"error": {"code": 1, "message": "nobody is here"}}, '{"action": "decline", "content": null}'),
    ],
)
async def test_resolve_request_answers_in_place_of_the_host(
    open_session: Any, model: FakeModel, answer: Json, text: str
) -> None:
    session = await open_session({"form": {}})
    booking(model)
    run = session.start("seats")
    request_id = (await asked(session))["params"]["requestId"]

    resolved = await session.host.request("resolveRequest", {"sessionId": "s", "requestId": request_id, **answer})

    assert resolved == {"status": "resolved"}
    assert (await run.result())["text"] == "done"
    assert booked(model) == text


async def test_after_the_end_of_input_a_question_is_declined(open_session: Any, model: FakeModel) -> None:
    session = await open_session({"form": {}})
    booking(model)
    run = session.start("seats")
    await asked(session)

    session.host.hang_up()

    assert (await run.result())["text"] == "done"
    assert booked(model) == '{"action": "decline", "content": null}'
    assert session.events("request.resolved")[0]["data"]["by"] == "disconnect"
