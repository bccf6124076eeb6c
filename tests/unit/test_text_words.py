"""What of a query is searched for: words, never syntax."""

import sqlite3

import pytest
from hypothesis import given
from hypothesis import strategies as st

from providers.text_search_index import TOKENIZER
from providers.text_words import MAX_TERMS, is_blank, query_terms, quoted, separated

SYNTAX = st.sampled_from(
    ['"', "'", "*", "^", "(", ")", "{", "}", ":", "-", "+", ",", "AND", "OR", "NOT", "NEAR(", "name:", "\0", "\\", "--",
     ";", "%", "_", "退款", "ไทย", "é", "words", "\ud800", "a"]
)  # fmt: skip
QUERIES = st.one_of(st.text(max_size=80), st.lists(SYNTAX, max_size=12).map(" ".join), st.lists(SYNTAX).map("".join))


@pytest.fixture(scope="module")
def table() -> sqlite3.Connection:
    database = sqlite3.connect(":memory:")
    database.execute(f'CREATE VIRTUAL TABLE words USING fts5(name, body, tokenize = "{TOKENIZER}")')
    database.execute("INSERT INTO words VALUES ('', 'one row')")
    return database


def matches(table: sqlite3.Connection, document: str, query: str) -> bool:
    table.execute("UPDATE words SET body = ?", (separated(document).encode("utf-8", "replace").decode(),))
    terms = [quoted(term) for term in query_terms(query)]
    return bool(terms) and bool(
        table.execute("SELECT 1 FROM words WHERE words MATCH ?", (" OR ".join(terms),)).fetchall()
    )


@given(QUERIES)
def test_no_query_is_syntax(table: sqlite3.Connection, query: str) -> None:
    terms = [quoted(term) for term in query_terms(query)]

    for expression in [*terms, *([" OR ".join(terms)] if terms else [])]:
        table.execute("SELECT 1 FROM words WHERE words MATCH ?", (expression,)).fetchall()
    assert all(term.count('"') == 2 for term in terms)
    assert len(terms) <= MAX_TERMS


@given(st.text(st.characters(categories=["Ll", "Lu", "Nd"]), min_size=1, max_size=12))
def test_a_word_finds_itself(table: sqlite3.Connection, word: str) -> None:
    assert matches(table, f"before {word} after", word)


@pytest.mark.parametrize(
    ("document", "query"),
    [
        ("Refunds are paid within days", "refund"),
        ("We are shipping today", "SHIPPED"),
        ("我们的退款政策是三十天", "退款政策?"),
        ("我们的退款政策是三十天", "怎么退款"),
        ("返金ポリシーについて", "ポリシー"),
        ("นโยบายการคืนเงิน", "คืนเงิน"),
        ("Crème brûlée", "creme brulee"),
        ("call parse_config first", "parse_config"),
        ("\uff46ull width", "full"),
    ],
)
def test_what_means_the_same_is_found(table: sqlite3.Connection, document: str, query: str) -> None:
    assert matches(table, document, query)


@pytest.mark.parametrize(
    ("document", "query"),
    [
        ("政退策款", "退款"),
        ("Refunds are paid", "NOT x NEAR y"),
        ("the answer", "name:x OR body:y"),
        ("anything", "any*"),
    ],
)
def test_what_means_something_else_is_not(table: sqlite3.Connection, document: str, query: str) -> None:
    assert not matches(table, document, query)


def test_words_that_stand_everywhere_are_left_out_unless_there_are_no_others() -> None:
    assert query_terms("What is the refund policy?", skip_common=True) == ["refund", "policy"]
    assert query_terms("to be or not to be", skip_common=True) == ["to", "be", "or", "not"]


def test_of_many_words_the_longest_are_taken() -> None:
    terms = query_terms(" ".join([f"ab{number}" for number in range(100)] + ["extraordinarily"]))

    assert len(terms) == MAX_TERMS
    assert "extraordinarily" in terms


@pytest.mark.parametrize("text", ["", "   ", "\n\t", "\u200b", "\ufeff \u2060", "\u00a0\u3000"])
def test_a_text_that_shows_nothing_is_blank(text: str) -> None:
    """BR-21: what blank means."""
    assert is_blank(text)
    assert query_terms(text) == []


@pytest.mark.parametrize("text", ["?", "a", "退", "👍", "\u200ba"])
def test_a_text_that_shows_something_is_not(text: str) -> None:
    assert not is_blank(text)
