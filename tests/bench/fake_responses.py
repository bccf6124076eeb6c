"""A model endpoint for tests that speaks the Responses API: `/v1/responses`, with conversations that it keeps.

    async with FakeResponses() as model:
        model.says("hello")                                    # one answer
        model.says(Call("c1", "weather", '{"city":"Ghent"}'))  # a function call
        model.says("half", End("incomplete", reason="max_output_tokens"))
        model.keeps("conv_1")                                  # a conversation that exists
        model.fails(429)                                       # as the fake of chat completions does

It knows the answers that it gave, unless `store` was false, and refuses what the real service refuses: an answer or
conversation that it does not keep, a call without its output, an output without its call.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from tests.bench.fake_model import FakeModel
from tests.bench.model_script import EOF, Raw, Reply
from tests.bench.recorded import Recorded
from tests.bench.response_script import Call, Item, ResponseScript


@dataclass(frozen=True)
class _Scripted(Reply):
    """An answer whose events are made when its request is here."""

    items: tuple[Item, ...] = ()


class FakeResponses(FakeModel):
    """The endpoint. All of it runs on the test's own loop."""

    def __init__(self, *, models: Sequence[str] = ("fake",)) -> None:
        super().__init__(models=models, strict=False)
        self.kept: dict[str, set[str]] = {}
        """Id of an answer or conversation → ids of its calls that have no output yet."""
        self._count_of_answers = 0

    def says(self, *items: Item, cut_every: int | None = None) -> None:
        """Answer one request with this stream. Strings are text; an ending that is left out is added."""
        self._replies.append(_Scripted(items=items, cut_every=cut_every))

    def calls(self, *names_and_arguments: str | dict[str, Any], say: str = "") -> None:
        """Answer one request with function calls: name, arguments, name, arguments, …"""
        pairs = zip(names_and_arguments[::2], names_and_arguments[1::2], strict=True)
        turn = len(self.requests) + len(self._replies)
        calls = [Call(f"call_{turn}_{i}", str(name), json.dumps(args)) for i, (name, args) in enumerate(pairs)]
        self.says(*([say] if say else []), *calls)

    def otherwise(self, fallback: Callable[[Recorded], Reply | Sequence[Item]]) -> None:
        """What to answer when nothing is scripted."""

        def reply_to(request: Recorded) -> Reply:
            reply = fallback(request)
            return reply if isinstance(reply, Reply) else _Scripted(items=tuple(reply))

        super().otherwise(reply_to)

    def keeps(self, conversation_id: str) -> None:
        """A conversation that was begun before."""
        self.kept[conversation_id] = set()

    async def _reply_to(self, request: Recorded) -> Reply:
        if not request.path.endswith("/responses"):
            return await super()._reply_to(request)
        async with self._changed:
            self.requests.append(request)
            self._changed.notify_all()
        return self._refusal(request.body) or self._performed(self._chat_reply(request), request.body)

    def _refusal(self, body: dict[str, Any]) -> Reply | None:
        earlier = body.get("previous_response_id") or body.get("conversation")
        if earlier is not None and earlier not in self.kept:
            is_conversation = "conversation" in body
            what = "Conversation with id" if is_conversation else "Previous response with id"
            code = None if is_conversation else "previous_response_not_found"
            return _refused(404 if is_conversation else 400, f"{what} '{earlier}' not found.", code)
        unanswered = set(self.kept.get(earlier, ()))
        for item in body["input"]:
            match item.get("type"):
                case "function_call":
                    unanswered.add(item["call_id"])
                case "function_call_output" if item["call_id"] not in unanswered:
                    return _refused(400, f"No tool call found for function call output with call_id {item['call_id']}.")
                case "function_call_output":
                    unanswered.remove(item["call_id"])
                case _:
                    pass
        return _refused(400, f"No tool output found for function call {min(unanswered)}.") if unanswered else None

    def _performed(self, reply: Reply, body: dict[str, Any]) -> Reply:
        if not isinstance(reply, _Scripted):
            return reply
        self._count_of_answers += 1
        response = {
            "id": f"resp_{self._count_of_answers}",
            "model": body["model"],
            "store": body.get("store") is not False,
            "conversation": {"id": body["conversation"]} if "conversation" in body else None,
        }
        calls = {item.call_id for item in reply.items if isinstance(item, Call)}
        if response["store"]:
            self.kept[response["id"]] = calls
        if "conversation" in body:
            self.kept[body["conversation"]] = calls
        return Reply(ResponseScript(reply.items, response).pieces(), cut_every=reply.cut_every)


def _refused(status: int, message: str, code: str | None = None) -> Reply:
    error = {"message": message, "type": "invalid_request_error", "param": None, "code": code}
    body = json.dumps({"error": error}).encode()
    return Reply([Raw(body), EOF], status, {"content-type": "application/json"})
