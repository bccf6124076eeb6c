"""What text is made of a document's bytes, and which documents have none."""

import codecs

import pytest

from providers import text_search_readers
from providers.text_search_readers import MAX_TEXT, Document, Unreadable, reader_of
from tests.bench.pdf_file import pdf


def read(name: str, data: bytes | str) -> Document:
    reader = reader_of(name)
    assert reader is not None
    return reader.read(data.encode() if isinstance(data, str) else data)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("a.md", "markdown"),
        ("docs/A.MD", "markdown"),
        ("a.txt", "plain"),
        ("src/main.py", "plain"),
        ("README", "plain"),
        ("Makefile", "plain"),
        ("a.html", "web"),
    ],
)
def test_a_name_says_how_a_document_is_read(name: str, kind: str) -> None:
    assert read(name, "text").kind == kind


@pytest.mark.parametrize("name", ["a.png", "a.zip", "unknown", "a.md.gz", "a.", ""])
def test_a_name_that_says_nothing_has_no_reader(name: str) -> None:
    assert reader_of(name) is None


@pytest.mark.parametrize(
    "data",
    [
        pytest.param("naïve 退款\n", id="UTF-8"),
        pytest.param("naïve 退款\r\n", id="Windows"),
        pytest.param("naïve 退款\r", id="old Macs"),
        pytest.param(codecs.BOM_UTF8 + "naïve 退款\n".encode(), id="with a mark"),
        pytest.param(codecs.BOM_UTF16_LE + "naïve 退款\n".encode("utf-16-le"), id="UTF-16"),
    ],
)
def test_text_is_the_same_however_it_is_written(data: bytes | str) -> None:
    assert read("a.txt", data).text == "naïve 退款\n"


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"\xff\xfe\xfd", id="half a character"),
        pytest.param(b"caf\xe9", id="Latin"),
        pytest.param(b"text\0text", id="NUL"),
        pytest.param(b"x" * (MAX_TEXT + 1), id="too long"),
    ],
)
def test_what_is_no_text_is_refused(data: bytes) -> None:
    with pytest.raises(Unreadable):
        read("a.txt", data)


def test_text_of_the_greatest_length_is_read() -> None:
    assert len(read("a.txt", b"x" * MAX_TEXT).text) == MAX_TEXT


PAGE = """<!doctype html><html><head><title>Return
 policy</title><style>p { color: red }</style></head><body>
<script>var secret = 1;</script><nav><a href="/">Home</a></nav>
<h1>Returns <em>now</em></h1><p>Within&nbsp;30   days,
or <b>never</b>.</p><ul><li>One</li><li>Two</li></ul>
<table><tr><th>Item</th><td>Price</td></tr></table>
<pre># code
  stays</pre><h2>More</h2>Loose &amp; text<br>next</body></html>"""


def test_a_page_becomes_headings_and_paragraphs_of_what_it_shows() -> None:
    document = read("a.html", PAGE)

    assert document.title == "Return policy"
    assert document.text == (
        "Home\n\n# Returns now\n\nWithin 30 days, or never.\n\n- One\n- Two\n\nItem | Price\n\n"
        "```\n# code\n  stays\n```\n\n## More\n\nLoose & text\nnext"
    )


@pytest.mark.parametrize(
    "page",
    ["<p>unclosed <b>bold", "</p></pre></script>text", "<![CDATA[ x", "<!-- no end", "<a href='", "<pre>x", "&#xD800;"],
)
def test_a_broken_page_is_read_as_far_as_it_goes(page: str) -> None:
    assert "\ud800" not in read("a.html", page).text


def test_a_page_is_read_in_the_encoding_that_it_declares() -> None:
    data = '<meta charset="gb2312"><p>退款'.encode("gb2312")

    assert read("a.html", data).text == "退款"


@pytest.mark.parametrize("encoding", ["zlib", "unicode_escape", "punycode", "utf-7", "nonsense", "iso-8859-99"])
def test_a_page_cannot_choose_what_else_python_would_decode(encoding: str) -> None:
    with pytest.raises(Unreadable):
        read("a.html", f'<meta charset="{encoding}">'.encode() + b"\xff\\ud800")


def test_a_pdf_is_read_page_by_page() -> None:
    document = read("a.pdf", pdf("Refunds take 30 days.", "", "Shipping is free."))

    assert document.kind == "pages"
    assert [page.strip() for page in document.text.split("\f")] == ["Refunds take 30 days.", "", "Shipping is free."]


@pytest.mark.parametrize(
    ("data", "why"),
    [
        pytest.param(b"", "damaged|cannot be read", id="empty"),
        pytest.param(b"no PDF at all", "damaged|cannot be read", id="no PDF"),
        pytest.param(pdf("text")[:200], "damaged|cannot be read|no text", id="cut"),
        pytest.param(pdf(""), "no text", id="scanned"),
    ],
)
def test_a_pdf_without_text_is_refused(data: bytes, why: str) -> None:
    with pytest.raises(Unreadable, match=why):
        read("a.pdf", data)


@pytest.mark.parametrize(("name", "data"), [("a.pdf", pdf("text")), ("a.html", b"<a " * 30_000)], ids=["pdf", "html"])
def test_a_document_that_takes_too_long_is_given_up(monkeypatch: pytest.MonkeyPatch, name: str, data: bytes) -> None:
    monkeypatch.setattr(text_search_readers, "SECONDS", {"pdf": 0, "html": 1})

    with pytest.raises(Unreadable, match="too much time"):
        read(name, data)


def test_without_its_library_a_pdf_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    text_search_readers.pdf_reader.cache_clear()
    with monkeypatch.context() as patch:
        patch.setattr(text_search_readers, "find_spec", lambda name: None)
        reader = reader_of("a.pdf")
        text_search_readers.pdf_reader.cache_clear()
    assert reader is not None

    with pytest.raises(Unreadable, match="documents"):
        reader.read(pdf("text"))

    again = reader_of("a.pdf")
    assert again is not None
    assert again.version != reader.version  # so that what it could not read is read once it can
