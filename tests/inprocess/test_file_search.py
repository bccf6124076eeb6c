"""Searching texts with a pattern from a model: what is found, and that every search ends."""

import asyncio
import os
import time

import pytest

from providers.file_search import MAX_LINE_CHARS, MAX_LINES, MAX_PATTERN, SearchError, search


async def test_lines_are_found_in_any_letter_case_with_their_numbers_and_a_snippet() -> None:
    text = "one\r\nTWO two\u2028x\n" + "-" * 60 + "two" + "-" * 60

    assert await search("two", {"a.md": text, "b.md": "none", "c.md": "^two$"}) == [
        {
            "file_name": "a.md",
            "snippet": "TWO two\u2028x",
            "matching_lines": [
                {"line_number": 2, "line": "TWO two\u2028x"},
                {"line_number": 3, "line": "-" * 60 + "two" + "-" * 60},
            ],
        },
        {"file_name": "c.md", "snippet": "^two$", "matching_lines": [{"line_number": 1, "line": "^two$"}]},
    ]


async def test_a_snippet_shows_fifty_characters_on_each_side() -> None:
    [found] = await search("(?<=-)two", {"a.md": "-" * 60 + "two" + "-" * 60})

    assert found["snippet"] == "-" * 50 + "two" + "-" * 50


async def test_an_answer_holds_as_many_lines_as_the_limit_and_says_what_is_missing() -> None:
    texts = {"a": "x\n" * (MAX_LINES - 1) + "x", "b": ""}
    [whole] = await search("x", texts)
    assert len(whole["matching_lines"]) == MAX_LINES
    assert "note" not in whole

    [cut] = await search("x", {**texts, "b": "x"})
    assert len(cut["matching_lines"]) == MAX_LINES
    assert "more than 200 lines" in cut["note"]


async def test_a_long_line_is_cut() -> None:
    [found] = await search("x+", {"a": "x" * (MAX_LINE_CHARS + 1)})

    assert found["matching_lines"][0]["line"] == "x" * MAX_LINE_CHARS + "…"
    assert found["snippet"] == "x" * MAX_LINE_CHARS + "…"


@pytest.mark.parametrize("pattern", ["(", "[", "*", "(?P<a>x)(?P<a>y)", "\\"])
async def test_a_wrong_pattern_is_told_whatever_there_is_to_search(pattern: str) -> None:
    with pytest.raises(SearchError, match="the pattern is wrong"):
        await search(pattern, {})


async def test_a_pattern_may_be_as_long_as_the_limit_and_no_longer() -> None:
    assert await search("x" * MAX_PATTERN, {"a": "x" * MAX_PATTERN})
    with pytest.raises(SearchError, match="257 characters, and may have 256"):
        await search("x" * (MAX_PATTERN + 1), {"a": "x"})
    with pytest.raises(SearchError, match="empty"):
        await search("", {"a": "x"})


@pytest.mark.parametrize("pattern", ["(a+)+$", "(a|a)*$", "(.*a){30}$", "^(([a-z])+.)+[A-Z]([a-z])+$"])
async def test_a_pattern_that_never_ends_is_ended_and_blocks_nobody(pattern: str) -> None:
    """S8."""
    ticks = 0

    async def tick() -> None:
        nonlocal ticks
        while True:
            await asyncio.sleep(0.01)
            ticks += 1

    ticking = asyncio.create_task(tick())
    started = time.monotonic()
    with pytest.raises(SearchError, match="did not end within"):
        await search(pattern, {"x": "a" * 60 + "!"}, seconds=0.5)

    assert time.monotonic() - started < 5
    ticking.cancel()
    assert ticks > 5


async def test_a_search_that_is_cancelled_leaves_no_process(monkeypatch: pytest.MonkeyPatch) -> None:
    started: asyncio.Queue[int] = asyncio.Queue()
    spawn = asyncio.create_subprocess_exec

    async def watched(*args: object, **options: object) -> asyncio.subprocess.Process:
        child = await spawn(*args, **options)
        started.put_nowait(child.pid)
        return child

    monkeypatch.setattr(asyncio, "create_subprocess_exec", watched)
    task = asyncio.create_task(search("(a+)+$", {"x": "a" * 60 + "!"}))
    process = await asyncio.wait_for(started.get(), 10)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    with pytest.raises(ProcessLookupError):
        os.kill(process, 0)
