"""`file_memory` in runs: what the model is offered, shown and told, whatever it asks for."""

import json
from pathlib import Path
from typing import Any

import pytest

from protocol.messages import FunctionCallBlock
from providers.api.provider import Surroundings
from providers.file_memory import INSTRUCTIONS, FileMemoryProvider
from providers.file_memory_config import FileMemoryConfig
from providers.file_memory_folder import MAX_DESCRIPTION
from providers.file_stores import MemoryFiles, SharedStore
from providers.filesystem_store import FilesystemStore
from sidecar.errors import ProviderFailed
from tests.bench.agent_run import AgentRun
from tests.bench.fake_client import FakeClient, says
from tests.bench.tool_calls import asks, call, result_blocks, told

TOOLS = ["write", "read", "delete", "ls", "grep", "replace", "replace_lines"]


@pytest.fixture(params=["filesystem", "memory"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> SharedStore:
    return MemoryFiles() if request.param == "memory" else FilesystemStore(tmp_path / "files")


def remembers(store: SharedStore | None = None, **config: Any) -> AgentRun:
    """A session whose agent has a memory."""
    whole = FileMemoryConfig.model_validate(config)
    return AgentRun(FakeClient(), [FileMemoryProvider("file_memory", whole, store=store or MemoryFiles())])


def write(name: str, content: str = "x", description: str | None = None) -> FunctionCallBlock:
    return call("file_memory_write", file_name=name, content=content, description=description)


async def use(run: AgentRun, *calls: FunctionCallBlock) -> list[str]:
    """What the model is told of calls that it makes one after the other."""
    run.client.answers += [*(asks(each) for each in calls), says("ok")]
    return told(await run.say("go"))


async def shown(run: AgentRun) -> list[str]:
    """The messages that the model of a further run is shown."""
    run.client.answers.append(says("ok"))
    await run.say("hi")
    return [message.text for message in run.client.requests[-1].messages]


async def test_the_model_is_offered_seven_tools_and_told_how_to_use_them() -> None:
    run = remembers()

    assert await shown(run) == ["hi"]

    [request] = run.client.requests
    assert [tool.name for tool in request.tools] == [f"file_memory_{name}" for name in TOOLS]
    parameters = {tool.name[12:]: tool.input_schema for tool in request.tools}
    assert {name: list(schema["properties"]) for name, schema in parameters.items()} == {
        "write": ["file_name", "content", "description"],
        "read": ["file_name"],
        "delete": ["file_name"],
        "ls": ["glob_pattern"],
        "grep": ["regex_pattern", "glob_pattern"],
        "replace": ["file_name", "old_string", "new_string", "replace_all"],
        "replace_lines": ["file_name", "edits"],
    }
    assert parameters["write"]["required"] == ["file_name", "content"]
    assert request.instructions == INSTRUCTIONS


async def test_the_tools_are_the_same_objects_in_each_run_of_a_session() -> None:
    run = remembers()
    first, second = [[tool.input_schema for tool in (await once(run)).tools] for _ in range(2)]

    assert all(one is other for one, other in zip(first, second, strict=True))


async def once(run: AgentRun) -> Any:
    await shown(run)
    return run.client.requests[-1]


@pytest.mark.parametrize(("wording", "instructions"), [("Remember.", "Remember."), ("", "")])
async def test_the_instructions_may_be_others_or_none(wording: str, instructions: str) -> None:
    run = remembers(instructions=wording)
    await shown(run)

    assert run.client.requests[0].instructions == instructions


async def test_a_file_is_written_read_changed_and_deleted(store: SharedStore) -> None:
    assert await use(
        remembers(store),
        call("file_memory_read", file_name="n.md"),
        write("n.md", "a\nb\nb", "Letters."),
        call("file_memory_read", file_name="N.md"),
        call("file_memory_replace", file_name="n.md", old_string="b", new_string="c"),
        call("file_memory_replace", file_name="n.md", old_string="b", new_string="c", replace_all=True),
        call("file_memory_replace_lines", file_name="n.md", edits=[{"line_number": 1, "new_line": ""}]),
        call("file_memory_read", file_name="n.md"),
        call("file_memory_ls"),
        write("n.md", "d"),
        call("file_memory_ls"),
        call("file_memory_delete", file_name="n.md"),
        call("file_memory_delete", file_name="n.md"),
        call("file_memory_ls"),
    ) == [
        "File 'n.md' not found.",
        "File 'n.md' written with description.",
        "a\nb\nb",
        "Could not edit file 'n.md': old_string occurs 2 times; give more of the text around it, or set replace_all.",
        "Replaced 2 occurrence(s) in 'n.md'.",
        "Replaced 1 line(s) in 'n.md'.",
        "c\nc",
        '[{"name": "n.md", "type": "file", "description": "Letters."}]',
        "File 'n.md' written.",
        '[{"name": "n.md", "type": "file", "description": ""}]',
        "File 'n.md' deleted.",
        "File 'n.md' not found.",
        "[]",
    ]


async def test_edits_that_do_not_all_fit_change_nothing(store: SharedStore) -> None:
    edits = [{"line_number": 1, "new_line": "x"}, {"line_number": 9, "new_line": "y"}]
    answers = await use(
        remembers(store),
        write("n.md", "a\n"),
        call("file_memory_replace_lines", file_name="n.md", edits=edits),
        call("file_memory_replace_lines", file_name="none.md", edits=edits),
        call("file_memory_replace", file_name="none.md", old_string="a", new_string="b"),
        call("file_memory_read", file_name="n.md"),
    )

    assert answers[1:] == [
        "Could not edit file 'n.md': line 9 is not there; it has 1 lines.",
        "File 'none.md' not found.",
        "File 'none.md' not found.",
        "a\n",
    ]


async def test_files_are_listed_and_searched_by_glob_and_pattern_in_any_letter_case(store: SharedStore) -> None:
    answers = await use(
        remembers(store),
        write("b.md", "Tea\nno", "tea"),
        write("A.md", "no tea"),
        write("c.txt", "TEA"),
        call("file_memory_ls", glob_pattern="*.MD"),
        call("file_memory_grep", regex_pattern="^tea"),
        call("file_memory_grep", regex_pattern="tea", glob_pattern="a*"),
        call("file_memory_grep", regex_pattern="coffee"),
    )

    assert [entry["name"] for entry in json.loads(answers[3])] == ["A.md", "b.md"]
    assert json.loads(answers[4]) == [
        {"file_name": "b.md", "snippet": "Tea", "matching_lines": [{"line_number": 1, "line": "Tea"}]},
        {"file_name": "c.txt", "snippet": "TEA", "matching_lines": [{"line_number": 1, "line": "TEA"}]},
    ]
    assert [found["file_name"] for found in json.loads(answers[5])] == ["A.md"]
    assert answers[6] == "[]"


@pytest.mark.parametrize(
    ("asked", "why"),
    [
        ({"regex_pattern": "("}, "the pattern is wrong"),
        ({"regex_pattern": "x" * 257}, "may have 256"),
        ({"regex_pattern": "x", "glob_pattern": "*" * 257}, "at most 256"),
    ],
)
async def test_a_wrong_pattern_is_an_error_that_says_why(asked: dict[str, str], why: str) -> None:
    run = remembers()
    run.client.answers += [asks(call("file_memory_grep", **asked)), says("ok")]

    [result] = result_blocks((await run.say("go")).progress.messages)

    assert result.is_error
    assert why in str(result.content)


async def test_a_short_glob_may_hold_many_stars() -> None:
    answers = await use(
        remembers(), write("a" * 100), call("file_memory_ls", glob_pattern="*a" * 127), call("file_memory_ls")
    )

    assert answers[1] == "[]"
    assert answers[2] != "[]"


async def test_the_next_run_is_shown_the_index_and_its_answer_is_not_stored_as_input(store: SharedStore) -> None:
    run = remembers(store)
    await use(run, write("tea.md", "likes tea", "What the user\nlikes."), write("B.md"))

    index, said = await shown(run)

    assert said == "hi"
    assert index.endswith("# Memories\n\n- B.md\n- tea.md: What the user likes.\n")
    assert "likes tea" not in index
    sent = run.client.requests[-1].messages[0]
    assert sent.role == "user"
    assert sent.source is not None
    assert (sent.source.type, sent.source.source_id) == ("provider", "file_memory")
    await use(run, call("file_memory_delete", file_name="tea.md"), call("file_memory_delete", file_name="b.md"))
    assert await shown(run) == ["hi"]


@pytest.mark.parametrize("name", ["a/b.md", "../x", "memories.md", "x_description.md", "Memories.MD", "~x", ""])
async def test_a_name_that_is_not_flat_or_is_the_memory_s_own_is_refused_with_text(
    store: SharedStore, name: str
) -> None:
    """Case 48."""
    answers = await use(
        remembers(store),
        write("n.md", "x", "d"),
        write(name),
        call("file_memory_read", file_name=name),
        call("file_memory_delete", file_name=name),
        call("file_memory_replace", file_name=name, old_string="d", new_string="e"),
        call("file_memory_replace_lines", file_name=name, edits=[{"line_number": 1, "new_line": ""}]),
        call("file_memory_ls"),
        call("file_memory_grep", regex_pattern="."),
    )

    assert answers[1].startswith(f"Could not write file '{name}': ")
    assert answers[2:6] == [f"File '{name}' not found."] * 4
    assert [entry["name"] for entry in json.loads(answers[6])] == ["n.md"]
    assert [found["file_name"] for found in json.loads(answers[7])] == ["n.md"]


async def test_of_sixty_files_the_index_lists_fifty_in_alphabetical_order(store: SharedStore) -> None:
    """Case 48."""
    run = remembers(store)
    written = [write(f"{'Nn'[number % 2]}{number:02}.md") for number in reversed(range(60))]
    run.client.answers += [asks(*written[:30]), asks(*written[30:]), says("ok")]
    await run.say("go")
    index = (await shown(run))[0]

    assert [int(line[3:5]) for line in index.splitlines() if line.startswith("- ")] == list(range(50))
    [listed] = await use(run, call("file_memory_ls"))
    assert len(json.loads(listed)) == 60


async def test_calls_of_one_answer_leave_a_true_index(store: SharedStore) -> None:
    run = remembers(store)
    run.client.answers += [asks(*(write(f"{number:02}.md") for number in range(20))), says("ok")]
    assert all(answer.endswith("written.") for answer in told(await run.say("go")))
    index = (await shown(run))[0]

    assert [line[2:4] for line in index.splitlines() if line.startswith("- ")] == [f"{n:02}" for n in range(20)]


async def test_a_memory_takes_as_many_files_as_its_limit_and_no_more(store: SharedStore) -> None:
    answers = await use(
        remembers(store, maxFiles=2), write("a.md", "x", "d"), write("b.md", "x", "d"), write("c.md"), write("B.md")
    )

    assert answers[2] == "Could not write file 'c.md': there are 2 files already; delete one first."
    assert answers[3] == "File 'B.md' written."


async def test_calls_of_one_answer_do_not_pass_the_limit_together(store: SharedStore) -> None:
    run = remembers(store, maxFiles=3)
    run.client.answers += [asks(*(write(f"{number}.md") for number in range(10))), says("ok")]
    answers = told(await run.say("go"))

    assert sum("written" in answer for answer in answers) == 3
    assert sum("3 files already" in answer for answer in answers) == 7


async def test_edits_of_one_file_in_one_answer_are_all_made(store: SharedStore) -> None:
    run = remembers(store)
    await use(run, write("n.md", " ".join(f"<{number}>" for number in range(10))))
    edits = [
        call("file_memory_replace", file_name="n.md", old_string=f"<{number}>", new_string=str(number))
        for number in range(10)
    ]
    run.client.answers += [asks(*edits), says("ok")]
    await run.say("go")

    assert await use(run, call("file_memory_read", file_name="n.md")) == ["0 1 2 3 4 5 6 7 8 9"]


async def test_a_description_may_be_as_long_as_its_limit_and_no_longer(store: SharedStore) -> None:
    answers = await use(
        remembers(store),
        write("a.md", "x", "d" * MAX_DESCRIPTION),
        write("a.md", "y", "d" * (MAX_DESCRIPTION + 1)),
        call("file_memory_read", file_name="a.md"),
    )

    assert "written" in answers[0]
    assert "may have 2000" in answers[1]
    assert answers[2] == "x"


@pytest.mark.parametrize("place", [{"type": "memory"}, {"type": "filesystem", "path": "files"}])
async def test_the_limits_of_the_config_are_the_store_s(tmp_path: Path, place: dict[str, str]) -> None:
    config = {"scope": str(tmp_path), "store": place, "maxFileBytes": 100, "maxTotalBytes": 250}
    whole = FileMemoryConfig.model_validate(config)
    provider = FileMemoryProvider("file_memory", whole, Surroundings(cwd=str(tmp_path)))
    answers = await use(
        AgentRun(FakeClient(), [provider]),
        write("a.md", "x" * 100),
        write("a.md", "x" * 101),
        write("b.md", "x" * 99),
        write("c.md", "x" * 52),
        call("file_memory_delete", file_name="a.md"),
        call("file_memory_delete", file_name="b.md"),
    )

    assert answers[:4] == [
        "File 'a.md' written.",
        "Could not write file 'a.md': it would have 101 bytes, and may have 100.",
        "File 'b.md' written.",
        "Could not write file 'c.md': all files together would have more than 250 bytes.",
    ]


async def test_a_place_that_cannot_be_had_fails_the_run_and_says_why() -> None:
    whole = FileMemoryConfig.model_validate({"scope": "s", "store": {"type": "filesystem", "path": "files"}})
    run = AgentRun(FakeClient(), [FileMemoryProvider("file_memory", whole, Surroundings())])

    with pytest.raises(ProviderFailed, match="needs a session with a working directory"):
        await run.say("hi")
