"""File names made of session ids: one for each, safe on every disk."""

import re
import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from providers.file_names import MAX_NAME, file_name

ODD = [
    "../x",
    "a/b",
    "CON",
    "con",
    "con.txt",
    "É",
    "e\u0301",
    "",
    ".",
    "..",
    ".a",
    "a.",
    "a ",
    "~session-me",
    "A",
    "x" * 256,
]
IDS = st.one_of(st.text(max_size=300), st.from_regex(r"[A-Za-z0-9._~ -]{1,8}", fullmatch=True), st.sampled_from(ODD))


def folded(name: str) -> str:
    """What a disk that ignores case and joins accents makes of a name."""
    return unicodedata.normalize("NFC", name.casefold())


@pytest.mark.parametrize("plain", ["s", "0123", "a-b_c.d", "_", "-", "sess-7f3a", "console", "com", "x" * MAX_NAME])
def test_an_id_that_is_a_good_file_name_is_the_file_name(plain: str) -> None:
    assert file_name(plain) == plain


def test_odd_ids_have_a_name_each() -> None:
    """Case 23."""
    names = {folded(file_name(identity)) for identity in ODD}

    assert len(names) == len(ODD)
    assert all(name.startswith("~session-") for name in names)


@given(st.sets(IDS, min_size=2, max_size=6))
@example({"É", "é"})
def test_two_ids_never_share_a_name_on_any_disk(ids: set[str]) -> None:
    """Case 23."""
    assert len({folded(file_name(identity)) for identity in ids}) == len(ids)


@given(IDS)
@example("\ud800")
def test_a_name_is_a_plain_file_name_of_bounded_length(identity: str) -> None:
    """Case 23."""
    name = file_name(identity)

    assert re.fullmatch(r"[a-z0-9._~-]+", name)
    assert len(name) <= MAX_NAME
    assert not name.startswith(".")
    assert not name.endswith(".")
    assert not re.fullmatch(r"(con|prn|aux|nul|com\d|lpt\d)(\..*)?", name)


def test_a_name_that_would_be_too_long_is_its_digest() -> None:
    assert re.fullmatch(r"~session-sha256-[0-9a-f]{64}", file_name("É" * 256))
    assert re.fullmatch(r"~session-sha256-[0-9a-f]{64}", file_name("x" * (MAX_NAME + 1)))


def test_other_kinds_of_files_have_a_prefix_of_their_own() -> None:
    assert file_name("A/b", "~scope-").startswith("~scope-")
