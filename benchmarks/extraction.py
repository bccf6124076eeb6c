"""What the embedded model learns from single lines, with and without grounding. Not timed: quality only.

    python -m benchmarks.extraction            all lines
    python -m benchmarks.extraction --quick    every fourth one

Three columns: lines that came out exactly right, right values that were kept, and values that were invented or put in
the wrong field. The lines are made up for this, in seven languages; some of them say nothing about anybody.
"""

import argparse
import asyncio
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final

from rich.console import Console
from rich.table import Table

from protocol.agents import RunOptions
from protocol.messages import Source, text_message
from providers.api.context import SessionContext
from providers.api.ports import ChatClient
from providers.api.session import Session
from providers.structured_memory import StructuredMemoryConfig, StructuredMemoryProvider
from sidecar.config.endpoints import BUILT_IN
from sidecar.models.embedded import EmbeddedChat
from sidecar.models.embedded_files import MODEL_ID

Facts = dict[str, Any]

PERSON: Final = {"name": {"type": "string"}, "age": {"type": "integer"}}
PLACE: Final = {**PERSON, "city": {"type": "string"}}
BIRTH: Final = {"birthday": {"type": "string", "format": "date"}}
LIFE: Final = {"job": {"type": "string"}, "pet_name": {"type": "string"}}

LINES: Final[tuple[tuple[Facts, str, Facts], ...]] = (
    (PERSON, "Hello, what is the square root of 9?", {}),
    (PERSON, "My name is Ruaidhrí", {"name": "Ruaidhrí"}),
    (PERSON, "I am 20 years old", {"age": 20}),
    (PERSON, "Hi, I'm Anna and I'm 34.", {"name": "Anna", "age": 34}),
    (PERSON, "Please call me Bob.", {"name": "Bob"}),
    (PERSON, "What is the capital of France?", {}),
    (PERSON, "Can you tell me a joke?", {}),
    (PERSON, "Thanks, that was helpful!", {}),
    (PERSON, "Ich heiße Jürgen und bin 45 Jahre alt.", {"name": "Jürgen", "age": 45}),
    (PERSON, "Je m'appelle Zoé.", {"name": "Zoé"}),
    (PERSON, "Me llamo Íñigo y tengo 52 años", {"name": "Íñigo", "age": 52}),
    (PERSON, "我叫李雷, 今年30岁。", {"name": "李雷", "age": 30}),
    (PERSON, "私の名前は花子です。", {"name": "花子"}),
    (PERSON, "제 이름은 민준이에요", {"name": "민준"}),
    (PERSON, "I turned 61 last week.", {"age": 61}),
    (PERSON, "Turn 20 degrees to the left", {}),
    (PERSON, "How do I sort a list of 500 items in Python?", {}),
    (PERSON, "no", {}),
    (PLACE, "I live in Lisbon", {"city": "Lisbon"}),
    (PLACE, "My name is Mary Ann Smith and I live in Boston.", {"name": "Mary Ann Smith", "city": "Boston"}),
    (PLACE, "We moved to Berlin two years ago.", {"city": "Berlin"}),
    (PLACE, "What's the weather like in Paris today?", {}),
    (LIFE, "I work as a nurse", {"job": "nurse"}),
    (LIFE, "My dog is called Rex", {"pet_name": "Rex"}),
    (LIFE, "Who wrote Hamlet?", {}),
    (BIRTH, "I was born on 1990-05-17.", {"birthday": "1990-05-17"}),
    (BIRTH, "My birthday is 17/05/1990", {"birthday": "1990-05-17"}),
    (BIRTH, "Ich bin am 3. Oktober 1985 geboren.", {"birthday": "1985-10-03"}),
    (BIRTH, "What day is it today?", {}),
)


@dataclass(frozen=True)
class View:
    """An agent with the embedded model."""

    client: ChatClient
    name: str = "extraction"
    instructions: str = ""

    def chat_client(self, model: str | None = None) -> ChatClient:
        """The only one."""
        del model
        return self.client


@dataclass
class Score:
    """How the lines came out."""

    exact: int = 0
    kept: int = 0
    wanted: int = 0
    invented: int = 0
    misses: list[tuple[str, Facts, Facts]] = field(default_factory=list)

    def add(self, line: str, want: Facts, got: Facts) -> None:
        """Count one line; letter case does not."""
        right = {name for name, value in got.items() if str(value).casefold() == str(want.get(name)).casefold()}
        self.kept += len(right)
        self.wanted += len(want)
        self.invented += len(got) - len(right)
        if len(right) == len(want) == len(got):
            self.exact += 1
        else:
            self.misses.append((line, want, got))


async def extract(client: ChatClient, fields: Facts, line: str, *, grounded: bool) -> Facts:
    """What the provider keeps of one line that a user said."""
    schema = {"type": "object", "properties": fields}
    config = StructuredMemoryConfig(schema=schema, grounded=grounded)
    provider = StructuredMemoryProvider("memory", config)
    session = Session("benchmark")
    message = text_message("user", line, source=Source(type="external"))
    context = SessionContext(session_id=None, input_messages=(message,), options=RunOptions())
    state = session.state_of("memory")
    with suppress(ValueError):  # an answer that was cut: in a run, too, it teaches nothing
        await provider.after_run(agent=View(client), session=session, context=context, state=state)
    return state


async def measure(lines: Sequence[tuple[Facts, str, Facts]]) -> dict[str, Score]:
    """Each line, with and without grounding."""
    scores = {"grounded": Score(), "not grounded": Score()}
    client = EmbeddedChat("embedded", BUILT_IN["embedded"], MODEL_ID)
    try:
        for fields, line, want in lines:
            for name, score in scores.items():
                score.add(line, want, await extract(client, fields, line, grounded=name == "grounded"))
    finally:
        await client.aclose()
    return scores


def main() -> None:
    """Print the table, and what came out wrong with grounding."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="every fourth line")
    lines = LINES[::4] if parser.parse_args().quick else LINES
    scores = asyncio.run(measure(lines))
    table = Table("extraction", "exactly right", "values kept", "invented or misplaced")
    for name, score in scores.items():
        table.add_row(name, f"{score.exact} of {len(lines)}", f"{score.kept} of {score.wanted}", str(score.invented))
    console = Console()
    console.print(table)
    for line, want, got in scores["grounded"].misses:
        console.print(f"  {line!r}: wanted {want}, kept {got}", highlight=False)


if __name__ == "__main__":
    main()
