"""The set that `benchmarks.recall` asks: the same each time, answerable, and in two halves that share nothing."""

from collections import Counter

from benchmarks.recall_set import HALVES, NOW, SPLITS, make

MADE = make(4)
TURNS = {record: turn for turn in MADE.turns for record in turn.ids}


def test_the_same_seed_makes_the_same_set_and_another_one_another() -> None:
    assert make(4) == MADE
    assert make(4, seed=1).turns != MADE.turns


def test_every_split_has_questions_in_both_halves() -> None:
    counts = Counter((question.split, question.half) for question in MADE.questions)
    assert set(counts) == {(split, half) for split in SPLITS for half in HALVES}


def test_what_answers_a_question_was_said_by_the_same_person_before_it_is_asked() -> None:
    assert all(question.evidence for question in MADE.questions)
    for question in MADE.questions:
        said = [TURNS[record] for record in question.evidence]
        assert {turn.user for turn in said} == {question.user}
        assert all(turn.at < NOW for turn in said)


def test_a_fact_that_has_changed_is_answered_by_its_newest_record_only() -> None:
    """Someone who lives somewhere has said it three times, each time with another town."""
    (home,) = {q.evidence for q in MADE.questions if q.user == "user-0" and q.text == "Where do I live now?"}
    newest = max(TURNS[record].at for record in home)
    told = [turn for turn in MADE.turns if turn.user == "user-0" and "I live in " in turn.request]
    assert len({turn.request for turn in told}) == 3
    assert newest == max(turn.at for turn in told)


def test_what_is_tuned_on_is_not_what_is_reported() -> None:
    tuned, held_out = ({question.text for question in MADE.questions if question.half == half} for half in HALVES)
    assert not tuned & held_out


def test_a_person_has_several_sessions_and_speaks_one_language() -> None:
    for user in ("user-0", "user-1"):
        mine = [turn for turn in MADE.turns if turn.user == user]
        assert len({turn.session for turn in mine}) > 20
        assert sorted(turn.at for turn in mine) == [turn.at for turn in mine]
    chinese = [any("\u4e00" <= character <= "\u9fff" for character in turn.request) for turn in MADE.turns]
    assert [turn.user in ("user-1", "user-3") for turn in MADE.turns] == chinese
