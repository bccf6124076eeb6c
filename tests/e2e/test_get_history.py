"""`getHistory` by source: a page is filled with what is wanted, however much else stands between."""

from typing import Any

import pytest

from tests.bench.fake_model import FakeModel
from tests.bench.host import FakeHost, HostSession
from tests.bench.limited import limited

RUNS = 150
"""Their messages are more than are looked through at a time."""


async def pages(session: HostSession, **params: Any) -> list[list[str]]:
    """The texts of all pages."""
    found: list[list[str]] = []
    cursor: dict[str, Any] = {}
    while True:
        page = await session.host.request("getHistory", {"sessionId": session.id, **params, **cursor})
        found.append([message["content"][0]["text"] for message in page["messages"]])
        if "nextCursor" not in page:
            return found
        cursor = {"cursor": page["nextCursor"]}


@pytest.mark.parametrize("order", ["asc", "desc"])
async def test_a_page_of_one_source_holds_as_many_as_were_asked_for(host: FakeHost, order: str) -> None:
    session = await host.create_session(model="scripted:echo")
    for number in range(5):
        await session.run(f"{number}")
    numbers = [f"{number}" for number in range(5)]
    wanted = numbers if order == "asc" else numbers[::-1]

    for source in ("external", "agent"):
        assert await pages(session, sources=[source], order=order, limit=2) == [wanted[:2], wanted[2:4], wanted[4:]]
        assert await pages(session, sources=[source], order=order, limit=5) == [wanted], "nothing of it is left"
    assert await pages(session, sources=["external", "agent"], order=order, limit=6) == [
        [number for number in wanted for _ in range(2)][:6],
        [number for number in wanted for _ in range(2)][6:],
    ]
    assert await pages(session, sources=["nobody"], order=order, limit=2) == [[]]


async def test_a_rare_source_is_found_in_a_long_transcript_by_a_process_that_has_not_opened_it(
    start_host: Any, model: FakeModel, store: str
) -> None:
    host: FakeHost = await start_host(store=store, env=model.environment)
    session = await host.create_session()
    model.says("the only answer")
    given = [{"role": "user", "content": f"{number}"} for number in range(2 * RUNS)]
    await session.run(given)
    other: FakeHost = await start_host(store=store)

    assert await pages(HostSession(other, session.id, {}), sources=["agent"], limit=1) == [["the only answer"]]


async def test_a_page_of_one_source_is_cut_by_its_own_bytes(start_host: Any, model: FakeModel, tmp_path: Any) -> None:
    host: FakeHost = await start_host(args=limited(tmp_path, page_bytes=4096), env=model.environment)
    session = await host.create_session()
    model.otherwise(lambda _: ["ok"])
    sizes = (100, 100, 5000, 100)
    for size in sizes:
        await session.run("x" * size)

    assert [[len(text) for text in page] for page in await pages(session, sources=["external"])] == [
        [100, 100],
        [5000],
        [100],
    ]
    assert await pages(session, sources=["agent"]) == [["ok"] * len(sizes)]
