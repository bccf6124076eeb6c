"""A set of conversations and questions to test long-term memory with: made up, the same for the same seed. No search.

Each person speaks one language, English or Chinese, in many sessions over a year. Facts are told once or, where they
change, three times; between them stand requests that come again and again, and talk that sounds alike. A question is
answered by the records that hold the fact's newest value.
"""

import random
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final, Literal

Split = Literal["direct", "paraphrase", "changed", "crowded", "chinese", "cross-language", "follow-up"]
Half = Literal["tuning", "held out"]

SPLITS: Final[tuple[Split, ...]] = (
    "direct", "paraphrase", "changed", "crowded", "chinese", "cross-language", "follow-up",
)  # fmt: skip
HALVES: Final[tuple[Half, ...]] = ("tuning", "held out")
NOW: Final = datetime(2026, 3, 1, tzinfo=UTC)
"""When all questions are asked."""

_DAYS: Final = 360
_ENGLISH, _CHINESE = 0, 1


@dataclass(frozen=True, slots=True)
class Turn:
    """What somebody said, and what was answered."""

    user: str
    session: str
    at: datetime
    request: str
    reply: str

    @property
    def ids(self) -> tuple[str, str]:
        """Of the record of the request, and of the reply's."""
        name = f"{self.user} {self.at.isoformat()}"
        return f"{name} q", f"{name} a"


@dataclass(frozen=True, slots=True)
class Question:
    """What somebody asks at the end of the year, and which records answer it."""

    user: str
    text: str
    split: Split
    half: Half
    evidence: frozenset[str]
    before: tuple[str, ...] = ()
    """What they said just before, in the same session: what it is about, or something else."""


@dataclass(slots=True)
class RecallSet:
    """Everything."""

    turns: list[Turn] = field(default_factory=list[Turn])
    """By person and time."""
    questions: list[Question] = field(default_factory=list[Question])


def make(people: int, seed: int = 20261130) -> RecallSet:
    """The set: 130 turns and 89 questions a person.

    Args:
        people: How many; half of them speak Chinese.
        seed: The same one makes the same set.
    """
    words: dict[str, Any] = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
    made = RecallSet()
    for number in range(people):
        person = _Person(f"user-{number}", number % 2, random.Random(f"{seed} {number}"), words)
        made.turns += person.turns()
        made.questions += person.questions()
    return made


@dataclass(frozen=True, slots=True)
class _Said:
    """One turn before it has a time."""

    request: str
    reply: str
    value: str | None = None
    """Marks what answers a question."""


class _Person:
    """Somebody, and their year."""

    def __init__(self, name: str, language: int, chance: random.Random, words: dict[str, Any]) -> None:
        self._name = name
        self._language = language
        self._chance = chance
        self._words = words
        self._told: dict[str, list[Turn]] = {}
        """What answers the questions of each topic and habit, oldest first."""
        self._values: dict[str, str] = {}

    def turns(self) -> list[Turn]:
        """A year of conversations: each fact at some time, the rest in between."""
        placed = sorted(self._placed(), key=lambda pair: pair[0])
        turns: list[Turn] = []
        for number, (when, key, said) in enumerate((when, key, said) for when, (key, said) in placed):
            at = NOW - timedelta(days=_DAYS * (1 - when) + 1) + timedelta(seconds=number)
            turn = Turn(self._name, f"{self._name}-{number // 3}", at, said.request, said.reply)
            turns.append(turn)
            if said.value is not None:
                self._told.setdefault(key, []).append(turn)
                self._values[key] = said.value
        return turns

    def questions(self) -> Iterator[Question]:
        """After `turns`."""
        mine, other = self._language, 1 - self._language
        plain: Split = "chinese" if mine == _CHINESE else "direct"
        otherwise: Split = "chinese" if mine == _CHINESE else "paraphrase"
        for number, topic in enumerate(self._words["topic"]):
            half = HALVES[number // 2 % 2]
            key, asks, asks_otherwise = topic["name"], topic["asks"], topic["asks_otherwise"]
            if topic.get("changes"):
                yield self._question(key, asks[mine], "changed", half)
                yield self._question(key, asks_otherwise[mine], "changed", half)
                continue
            yield self._question(key, asks[mine], plain, half)
            yield self._question(key, asks_otherwise[mine], otherwise, half)
            yield self._question(key, asks[other], "cross-language", half)
            yield self._question(key, asks_otherwise[other], "cross-language", half)
            yield self._question(key, topic["follows"][mine], "follow-up", half, (topic["leads"][mine],))
        for number, habit in enumerate(self._words["habit"]):
            yield self._question(habit["name"], habit["asks"][mine], "crowded", HALVES[number % 2])

    def _question(self, key: str, text: str, split: Split, half: Half, before: tuple[str, ...] = ()) -> Question:
        told = self._told[key][-1]
        evidence = [told.ids[0], *([told.ids[1]] if self._values[key] in told.reply else [])]
        talk = self._chance.choice(self._words["small_talk"]["turns"])[0][self._language]
        return Question(self._name, text, split, half, frozenset(evidence), before or (talk,))

    def _placed(self) -> Iterator[tuple[float, tuple[str, _Said]]]:
        """What is said, and at which part of the year."""
        for topic in self._words["topic"]:
            yield from self._of_topic(topic)
        for habit in self._words["habit"]:
            yield from self._of_habit(habit)
        for turn in self._words["small_talk"]["turns"]:
            for _ in range(2):
                yield self._chance.random(), ("", _Said(*self._in_mine(turn)))

    def _of_topic(self, topic: dict[str, Any]) -> Iterator[tuple[float, tuple[str, _Said]]]:
        values = self._chance.sample(self._in_mine(topic["values"]), 3 if topic.get("changes") else 1)
        whens = sorted(self._chance.random() for _ in values)
        first, again = self._in_mine(topic["says"])
        for number, (when, value) in enumerate(zip(whens, values, strict=True)):
            told = again if number or (len(values) == 1 and self._chance.random() < 0.5) else first
            yield when, (topic["name"], _Said(told.format(value=value), self._noted(value), value))
        for aside in self._in_mine(topic["asides"]):
            yield self._chance.random(), ("", _Said(aside, self._noted("")))

    def _of_habit(self, habit: dict[str, Any]) -> Iterator[tuple[float, tuple[str, _Said]]]:
        """The preference comes first, at some time before all orders of the second half of the year."""
        ask, reply = habit["asks"][self._language], habit["replies"][self._language]
        values = self._in_mine(habit["values"])
        preference = self._chance.choice(self._in_mine(habit["preferences"]))
        yield self._chance.random() / 2, (habit["name"], _Said(preference, self._noted(""), preference))
        for _ in range(10):
            yield self._chance.random(), ("", _Said(ask, reply.format(value=self._chance.choice(values))))

    def _noted(self, value: str) -> str:
        """An answer; a third of those to a fact repeat it."""
        talk = self._words["small_talk"]
        if value and self._chance.random() < 1 / 3:
            return str(talk["notes_long"][self._language]).format(value=value)
        return str(talk["notes"][self._language])

    def _in_mine(self, pairs: Sequence[Sequence[str]]) -> list[str]:
        return [pair[self._language] for pair in pairs]
