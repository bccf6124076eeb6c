"""A folder's index: what is found, what changes, what is left out, and who shares it."""

import os
import sqlite3
import threading
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest

from providers import text_search_folder, text_search_readers
from providers.text_search_folder import (
    SETTLED_NS,
    TELL_EVERY,
    FolderIndex,
    FolderSettings,
    index_file,
    open_folder,
)
from providers.text_search_index import FullTextIndex, IndexUnusable
from providers.text_search_walk import FolderUnusable, Place, Rules
from tests.bench.pdf_file import pdf

Told = list[tuple[str, dict[str, Any]]]


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    folder = tmp_path / "docs"
    folder.mkdir()
    return folder


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache"


def settings_of(docs: Path, *, in_memory: bool = True, **limits: int) -> FolderSettings:
    rules = Rules(None, (), limits.pop("max_files", 1_000))
    return FolderSettings(
        Place(docs), rules, **{"max_file_bytes": 1 << 20, "max_total_bytes": 1 << 30, **limits}, in_memory=in_memory
    )


def index_of(docs: Path, **limits: int) -> FolderIndex:
    return FolderIndex(settings_of(docs, **limits), FullTextIndex(None))


def refresh(index: FolderIndex) -> Told:
    told: Told = []
    index.refreshed(lambda message, data: told.append((message, data))).result(timeout=30)
    return told


def found(index: FolderIndex, query: str, limit: int = 10) -> list[str]:
    """The links of what is found now."""
    refresh(index)
    return [hit.chunk.link for hit in index.search(query, limit)]


def age(*files: Path) -> None:
    """Let files be older than what was looked at lately."""
    for file in files:
        os.utime(file, ns=(0, file.stat().st_mtime_ns - 2 * SETTLED_NS))


def write(file: Path, text: str | bytes) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    return file


# ---- what is found ------------------------------------------------------------------------------------------------


def test_a_passage_is_found_with_its_name_its_place_and_an_id(docs: Path) -> None:
    write(docs / "shop/returns.md", "# Returns\n\nGeneral words.\n\n## Time limits\n\nRefunds within 30 days.\n")
    index = index_of(docs)
    refresh(index)

    [hit] = index.search("How long can I refund?", 3)

    assert hit.chunk.name == "Returns \u203a Time limits"
    assert hit.chunk.link == "shop/returns.md#L5"
    assert hit.chunk.body == "## Time limits\n\nRefunds within 30 days."
    assert len(hit.chunk.chunk_id) == 16
    assert 0 < hit.score <= 1


@pytest.mark.parametrize(
    ("name", "data", "link"),
    [
        ("a.txt", "one\n\ntwo refunds", "a.txt#L1"),
        ("a b.py", "def refund(): ...", "a%20b.py#L1"),
        ("退款.md", "refund", "%E9%80%80%E6%AC%BE.md#L1"),
        ("a.html", "<title>T</title><p>refund", "a.html"),
        ("a.pdf", pdf("first", "refund"), "a.pdf#page=2"),
    ],
)
def test_a_link_leads_to_the_place_in_the_document(docs: Path, name: str, data: str | bytes, link: str) -> None:
    write(docs / name, data)

    assert found(index_of(docs), "refund") == [link]


def test_a_document_is_called_by_its_title_its_headings_or_its_path(docs: Path) -> None:
    write(docs / "a.html", "<title>All returns</title><h1>Refunds</h1>word")
    write(docs / "b.md", "# Guide\nword")
    write(docs / "c/d.txt", "word")
    index = index_of(docs)
    refresh(index)

    assert {hit.chunk.name for hit in index.search("word", 9)} == {"All returns \u203a Refunds", "Guide", "c/d.txt"}


@pytest.mark.parametrize("query", ["退款", "怎么退款?", "退款政策"])
def test_chinese_is_found_without_blanks_between_words(docs: Path, query: str) -> None:
    write(docs / "a.md", "我们的退款政策是三十天。")
    write(docs / "b.md", "款待退休人员。")

    assert found(index_of(docs), query)[0] == "a.md#L1"


def test_rare_words_count_more_and_scores_fall(docs: Path) -> None:
    write(docs / "a.md", "alpha common")
    write(docs / "b.md", "common common common")
    write(docs / "c.md", "nothing of it")
    write(docs / "d.md", "nothing else")
    index = index_of(docs)
    refresh(index)

    hits = index.search("alpha common", 9)

    assert [hit.chunk.link for hit in hits] == ["a.md#L1", "b.md#L1"]
    assert 1 >= hits[0].score > hits[1].score > 0


def test_the_same_text_is_found_once(docs: Path) -> None:
    for name in "abc":
        write(docs / f"{name}.md", "refund rules")

    assert len(found(index_of(docs), "refund")) == 1


@pytest.mark.parametrize("query", ["", "  ", "???", '"', "NOT", "zebra", "body:refund*"])
def test_a_query_without_words_or_matches_finds_nothing_unknown(docs: Path, query: str) -> None:
    write(docs / "a.md", "the text")

    assert found(index_of(docs), query) == []


# ---- what changes -------------------------------------------------------------------------------------------------


def test_new_changed_and_deleted_files_count_at_once(docs: Path) -> None:
    first = write(docs / "a.md", "apple")
    index = index_of(docs)
    assert found(index, "apple") == ["a.md#L1"]

    write(docs / "b.md", "banana")
    assert found(index, "banana") == ["b.md#L1"]

    write(first, "grape")  # the same size, within the same tick of the clock
    assert found(index, "apple") == []
    assert found(index, "grape") == ["a.md#L1"]

    first.unlink()
    assert found(index, "grape") == []


def test_a_file_that_has_not_changed_is_not_read_again(docs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = [write(docs / f"{name}.md", name) for name in ("one", "two")]
    index = index_of(docs)
    refresh(index)
    age(*files)
    reads: list[str] = []
    read = index._walker.read
    monkeypatch.setattr(index._walker, "read", lambda path, most: reads.append(path) or read(path, most))
    monkeypatch.setattr(text_search_folder, "SETTLED_NS", -(1 << 62))  # their times alone decide
    refresh(index)  # their times have changed
    assert reads == ["one.md", "two.md"]

    assert refresh(index) == []

    assert reads == ["one.md", "two.md"]


def test_a_file_that_was_only_touched_is_not_indexed_again(docs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = write(docs / "a.md", "apple")
    index = index_of(docs)
    refresh(index)
    age(file)
    monkeypatch.setattr(text_search_readers, "MAX_TEXT", 0)  # whatever is read from now on is refused

    assert found(index, "apple") == ["a.md#L1"]


def test_what_another_version_has_read_is_read_again(docs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = write(docs / "a.pdf", pdf("refund"))
    index = index_of(docs)
    text_search_readers.pdf_reader.cache_clear()
    with monkeypatch.context() as patch:
        patch.setattr(text_search_readers, "find_spec", lambda name: None)
        assert found(index, "refund") == []
        text_search_readers.pdf_reader.cache_clear()
    age(file)

    assert found(index, "refund") == ["a.pdf#page=1"]


def test_a_chunk_keeps_its_id_when_the_rest_of_its_document_changes(docs: Path) -> None:
    file = write(docs / "a.md", "# A\n\nalpha\n\n# B\n\nbeta")
    index = index_of(docs)
    refresh(index)
    before = index.search("alpha", 1)[0].chunk.chunk_id

    write(file, "# A\n\nalpha\n\n# B\n\ngamma")
    refresh(index)

    assert index.search("alpha", 1)[0].chunk.chunk_id == before


# ---- what is left out ---------------------------------------------------------------------------------------------


def test_one_bad_document_keeps_no_other_out(docs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(docs / "a.txt", b"\xff\xfe\xfa")
    write(docs / "b.html", "<p>anything")
    write(docs / "c.md", "fine")
    monkeypatch.setattr(text_search_readers, "_apart", lambda *_: 1 / 0)
    index = index_of(docs)

    told = refresh(index)

    assert [hit.chunk.link for hit in index.search("fine", 3)] == ["c.md#L1"]
    assert told[-1][1]["unreadable"] == 2
    assert "a.txt" in told[-1][0]


def test_a_bad_document_is_not_tried_again_until_it_changes(docs: Path) -> None:
    file = write(docs / "a.txt", b"\xff\xfe\xfa")
    index = index_of(docs)
    refresh(index)
    age(file)
    refresh(index)

    os.utime(file, ns=(0, 0))
    write(file, "good")

    assert found(index, "good") == ["a.txt#L1"]


@pytest.mark.parametrize(("size", "is_read"), [(100, True), (101, False)])
def test_a_file_has_a_greatest_size(docs: Path, size: int, is_read: bool) -> None:
    write(docs / "a.md", "word ".ljust(size, "x"))
    index = index_of(docs, max_file_bytes=100)

    assert found(index, "word") == (["a.md#L1"] if is_read else [])


@pytest.mark.parametrize(("total", "names"), [(200, ["a", "b"]), (199, ["a"]), (99, [])])
def test_all_files_together_have_a_greatest_size(docs: Path, total: int, names: list[str]) -> None:
    for name in "ab":
        write(docs / f"{name}.md", f"word {name} ".ljust(100, "x"))
    index = index_of(docs, max_total_bytes=total)

    told = refresh(index)

    assert sorted(hit.chunk.link for hit in index.search("word", 9)) == [f"{name}.md#L1" for name in names]
    if len(names) == 1:
        assert told[-1][1]["leftOut"] == 1


def test_there_is_a_greatest_number_of_files(docs: Path) -> None:
    for number in range(4):
        write(docs / f"{number}.md", f"word {number}")
    index = index_of(docs, max_files=3)

    told = refresh(index)

    assert sorted(hit.chunk.link for hit in index.search("word", 9)) == ["0.md#L1", "1.md#L1", "2.md#L1"]
    assert "more files" in told[-1][0]
    assert "more files" not in refresh(index_of(docs, max_files=4))[-1][0]


def test_a_folder_that_is_not_there_says_so_without_its_whole_path(tmp_path: Path) -> None:
    index = index_of(tmp_path / "missing")

    with pytest.raises(FolderUnusable, match="'missing' cannot be opened") as refused:
        refresh(index)

    assert str(tmp_path) not in str(refused.value)


# ---- progress -----------------------------------------------------------------------------------------------------


def test_progress_tells_how_much_there_is_and_what_came_of_it(docs: Path) -> None:
    for number in range(TELL_EVERY + 1):
        write(docs / f"{number}.md", f"word {number}")
    index = index_of(docs)

    told = refresh(index)

    total = TELL_EVERY + 1
    assert [data for _, data in told] == [
        {"done": 0, "total": total},
        {"done": TELL_EVERY, "total": total},
        {"documents": total, "read": total, "removed": 0, "leftOut": 0, "unreadable": 0},
    ]


# ---- who shares it ------------------------------------------------------------------------------------------------


def test_whoever_asks_during_a_look_shares_the_next_one(docs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(docs / "a.md", "apple")
    index = index_of(docs)
    begun, go_on, looks = threading.Event(), threading.Event(), []
    walk = index._walker.walk

    def slow() -> Any:
        looks.append(1)
        begun.set()
        assert go_on.wait(30)
        return walk()

    monkeypatch.setattr(index._walker, "walk", slow)
    first = index.refreshed(lambda *_: None)
    assert begun.wait(30)
    write(docs / "b.md", "banana")

    others: list[Future[None]] = [index.refreshed(lambda *_: None) for _ in range(5)]
    assert not any(other.cancel() for other in others)
    go_on.set()
    for each in (first, *others):
        each.result(timeout=30)

    assert len(looks) == 2
    assert [hit.chunk.link for hit in index.search("banana", 1)] == ["b.md#L1"]


def test_equal_settings_share_one_index_as_long_as_somebody_holds_it(docs: Path) -> None:
    one = open_folder(settings_of(docs))

    assert open_folder(settings_of(docs)) is one
    assert open_folder(settings_of(docs, max_files=7)) is not one


# ---- the file -----------------------------------------------------------------------------------------------------


def test_an_index_outlasts_its_process(docs: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(docs / "a.md", "apple")
    settings = settings_of(docs, in_memory=False)
    assert found(FolderIndex(settings, FullTextIndex(index_file(settings))), "apple") == ["a.md#L1"]
    monkeypatch.setattr(text_search_readers, "MAX_TEXT", 0)  # whatever is read from now on is refused

    again = FolderIndex(settings, FullTextIndex(index_file(settings)))

    assert found(again, "apple") == ["a.md#L1"]
    assert index_file(settings).is_relative_to(cache)


def test_the_index_is_the_user_s_alone(docs: Path, cache: Path) -> None:
    write(docs / "a.md", "apple")
    settings = settings_of(docs, in_memory=False)
    refresh(FolderIndex(settings, FullTextIndex(index_file(settings))))

    file = index_file(settings)
    assert file.stat().st_mode & 0o777 == 0o600
    assert file.parent.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize(
    "damage",
    [
        pytest.param(lambda data: b"no database at all" * 100, id="overwritten"),
        pytest.param(lambda data: data[:4096] + b"\xff" * (len(data) - 4096), id="pages lost"),
        pytest.param(lambda data: b"", id="emptied"),
    ],
)
def test_a_damaged_index_is_made_again(docs: Path, cache: Path, damage: Callable[[bytes], bytes]) -> None:
    write(docs / "a.md", "apple")
    settings = settings_of(docs, in_memory=False)
    file = index_file(settings)
    index = FolderIndex(settings, FullTextIndex(file))
    refresh(index)
    del index
    file.write_bytes(damage(file.read_bytes()))

    assert found(FolderIndex(settings, FullTextIndex(file)), "apple") == ["a.md#L1"]


def test_an_index_that_another_process_holds_says_so(docs: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    connect = sqlite3.connect
    monkeypatch.setattr(sqlite3, "connect", lambda path, **options: connect(path, **{**options, "timeout": 0}))
    write(docs / "a.md", "apple")
    settings = settings_of(docs, in_memory=False)
    index = FolderIndex(settings, FullTextIndex(index_file(settings)))
    refresh(index)
    other = connect(index_file(settings))
    other.execute("BEGIN IMMEDIATE")
    write(docs / "b.md", "banana")

    with pytest.raises(IndexUnusable, match="SQLITE_BUSY"):
        refresh(index)
    other.close()

    assert found(index, "banana") == ["b.md#L1"]


def test_a_planted_link_in_the_place_of_the_index_is_not_followed(docs: Path, cache: Path, tmp_path: Path) -> None:
    """BR-22: the index file planted as a link."""
    settings = settings_of(docs, in_memory=False)
    file = index_file(settings)
    file.parent.mkdir(mode=0o700, parents=True)
    target = write(tmp_path / "precious", "")
    file.symlink_to(target)
    write(docs / "a.md", "apple")

    with pytest.raises(IndexUnusable, match="not safe"):
        refresh(FolderIndex(settings, FullTextIndex(file)))

    assert target.read_bytes() == b""
