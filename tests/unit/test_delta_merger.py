"""Merging of deltas: whatever the queue does, the joined text and the order of everything else are the same."""

from collections.abc import Callable
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from sidecar.server.delta_merger import DeltaMerger

Event = dict[str, Any]


class Client:
    """Takes what is sent, and says how far behind it is."""

    def __init__(self) -> None:
        self.received: list[Event] = []
        self.behind = False
        self.timers: list[Callable[[], None]] = []
        self.merger = DeltaMerger(self.received.append, lambda: 10 if self.behind else 0, 5, self.timers.append)


def delta(text: str, sub: int = 1, *, message: str = "m1", session: str = "s1", seq: int = 1, index: int = 0) -> Event:
    data = {"messageId": message, "contentIndex": index, "text": text}
    return {"type": "message.delta", "sessionId": session, "seq": seq, "sub": sub, "time": f"t{sub}", "data": data}


def test_a_client_that_keeps_up_gets_every_delta_at_once() -> None:
    client = Client()

    for sub, text in enumerate("abc", start=1):
        client.merger.send(delta(text, sub))

    assert client.received == [delta("a", 1), delta("b", 2), delta("c", 3)]
    assert client.timers == []


def test_deltas_for_a_slow_client_are_joined_and_carry_the_last_one_s_number() -> None:
    client = Client()
    client.behind = True
    sent = [delta(text, sub) for sub, text in enumerate("abc", start=1)]
    for event in sent:
        client.merger.send(event)
    assert client.received == []

    client.merger.send({"type": "run.completed", "sessionId": "s2"})

    assert client.received == [delta("abc", 3), {"type": "run.completed", "sessionId": "s2"}]
    assert sent[0] == delta("a", 1)  # what was handed over is not changed


def test_no_more_is_held_than_the_mark() -> None:
    """A fast model says megabytes before a timer runs, and nobody would see that they wait."""
    client = Client()
    client.behind = True

    client.merger.send(delta("1234", 1))
    client.merger.send(delta("5", 2))
    assert client.received == []
    client.merger.send(delta("6", 3))
    client.merger.send(delta("longer than the mark", 4))

    assert client.received == [delta("123456", 3), delta("longer than the mark", 4)]


def test_what_is_held_does_not_wait_for_the_next_event() -> None:
    client = Client()
    client.behind = True
    client.merger.send(delta("a"))

    client.timers.pop()()

    assert client.received == [delta("a")]


def test_other_messages_blocks_and_sessions_are_not_joined() -> None:
    client = Client()
    client.behind = True
    sent = [
        delta("a"),
        delta("b", message="m2"),
        delta("c", message="m2", index=1),
        delta("d", message="m2", index=1, session="s2"),
        delta("e", message="m2", index=1, session="s2", seq=2),
    ]
    for event in sent:
        client.merger.send(event)
    client.merger.flush()

    assert client.received == sent


events = st.one_of(
    st.builds(
        delta,
        st.text("xyz", max_size=3),
        st.just(0),
        message=st.sampled_from(["m1", "m2"]),
        session=st.sampled_from(["s1", "s2"]),
        seq=st.integers(1, 2),
        index=st.integers(0, 1),
    ),
    st.builds(lambda name: {"type": name, "sessionId": "s1"}, st.sampled_from(["tool.started", "run.completed"])),
)
steps = st.lists(st.tuples(events, st.booleans(), st.booleans()), max_size=40)


def characters(stream: list[Event]) -> list[Any]:
    """The stream taken apart: each character with what it belongs to, every other event as it is."""
    apart: list[Any] = []
    for event in stream:
        if event["type"] == "message.delta":
            data = event["data"]
            of = (event["sessionId"], event["seq"], data["messageId"], data["contentIndex"])
            apart.extend((of, character) for character in data["text"])
        else:
            apart.append(event)
    return apart


@given(steps=steps)
def test_text_and_order_are_equal_whatever_the_queue_does(steps: list[tuple[Event, bool, bool]]) -> None:
    client = Client()
    sent: list[Event] = []
    for number, (event, behind, timer) in enumerate(steps):
        client.behind = behind
        if "data" in event:
            event = {**event, "sub": number, "time": f"t{number}"}
        sent.append(event)
        client.merger.send(event)
        if timer and client.timers:
            client.timers.pop(0)()
    client.merger.flush()

    assert characters(client.received) == characters(sent)
    assert len(client.received) <= len(sent)
    subs = [event["sub"] for event in client.received if "sub" in event]
    assert subs == sorted(set(subs))
