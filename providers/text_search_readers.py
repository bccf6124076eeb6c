"""Makes text of a document's bytes: Markdown, plain text, code, HTML, PDF. It opens no files and keeps nothing."""

import asyncio
import codecs
import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final, Literal

from .child_process import NoAnswer, ask_child

Kind = Literal["markdown", "plain", "pages", "web"]
"""What a place in a document is called by: a line, a line, a page, nothing."""

MAX_TEXT: Final = 8_000_000
"""Characters of one document's text; a longer one is not indexed."""
SECONDS: Final = {"html": 10, "pdf": 60}
"""Of reading one document, after which it is given up."""
_MEMORY: Final = 1 << 30
_CHILD: Final = Path(__file__).with_name("text_search_child.py")

_MARKDOWN: Final = frozenset({".md", ".markdown", ".mdx"})
_HTML: Final = frozenset({".htm", ".html", ".xhtml"})
_SUFFIXES: Final = (
    ".adoc .asciidoc .bash .bat .c .cc .cfg .clj .cmake .conf .cpp .cs .css .csv .cxx .dart .diff .el .elm .erl"
    " .ex .exs .fs .go .gradle .graphql .h .hpp .hrl .hs .ini .java .jl .js .json .jsonl .jsx .kt .kts .less"
    " .lisp .log .lua .m .mjs .ml .mm .nim .nix .org .patch .php .pl .pm .properties .proto .ps1 .py .pyi .r .rb"
    " .rs .rst .sass .scala .scm .scss .sh .sql .svelte .swift .tex .toml .ts .tsv .tsx .txt .vue .xml .yaml"
    " .yml .zig .zsh"
)
_TEXT: Final = frozenset(_SUFFIXES.split())
_NAMES: Final = frozenset({"authors", "changelog", "copying", "dockerfile", "license", "makefile", "notice", "readme"})
_CHARSET: Final = re.compile(rb"<meta[^>]{0,200}?charset\s{0,9}=\s{0,9}[\"']?([\w.:-]{1,40})", re.IGNORECASE)
_ENCODING: Final = re.compile(
    r"iso-8859-\d{1,2}|(?:windows-|cp)125\d|latin-?1|gb2312|gbk|gb18030|big5|euc-(?:jp|kr)|shift[_-]jis|koi8-[ru]",
    re.IGNORECASE,
)
"""Those that pages declare. Python knows others under such names, which unpack, or take for ever."""


class Unreadable(Exception):
    """A document has no text for us; the message says why, and repeats nothing of it."""


@dataclass(frozen=True, slots=True)
class Document:
    """A document's text."""

    text: str
    """Line ends are `\\n`, pages end with a form feed, headings begin with `#` where the kind has any."""
    kind: Kind
    title: str | None = None
    """What it says its name is."""

    @property
    def has_headings(self) -> bool:
        """Whether `#` begins a heading."""
        return self.kind in ("markdown", "web")


@dataclass(frozen=True, slots=True)
class Reader:
    """What reads one sort of documents."""

    version: str
    """Changes with what comes of the same bytes: a document that another version has read is read again."""
    read: Callable[[bytes], Document]
    """May take long. Raises `Unreadable`."""


def reader_of(path: str) -> Reader | None:
    """What reads a file of that name; `None` where the name says nothing."""
    name = path.rpartition("/")[2].lower()
    stem, dot, ending = name.rpartition(".")
    suffix = dot + ending if stem else ""
    if suffix == ".pdf":
        return pdf_reader()
    if suffix in _MARKDOWN:
        return _MARKDOWN_READER
    if suffix in _HTML:
        return _HTML_READER
    return PLAIN if suffix in _TEXT or (suffix == "" and name in _NAMES) else None


@cache
def pdf_reader() -> Reader:
    """What reads PDF files, or says what to install for it."""
    if find_spec("pypdf") is None:
        return Reader("pdf-none", _no_pdf)
    from importlib.metadata import version

    return Reader(f"pdf-1-{version('pypdf')}", _pdf)


def _markdown(data: bytes) -> Document:
    return Document(_decoded(data), "markdown")


def _plain(data: bytes) -> Document:
    return Document(_decoded(data), "plain")


def _html(data: bytes) -> Document:
    declared = _CHARSET.search(data, 0, 4096)
    text = _decoded(data, declared[1].decode("ascii") if declared else None)
    return _apart("html", text.encode(), "web")


PLAIN: Final = Reader("plain-1", _plain)
"""For text of whatever sort."""
_MARKDOWN_READER: Final = Reader("markdown-1", _markdown)
_HTML_READER: Final = Reader("html-1", _html)


def _no_pdf(data: bytes) -> Document:
    del data
    raise Unreadable("PDF needs the extra 'documents' (pip install 'agent-sidecar[documents]')")


def _pdf(data: bytes) -> Document:
    return _apart("pdf", data, "pages")


def _apart(sort: Literal["html", "pdf"], data: bytes, kind: Kind) -> Document:
    """Read it in a process of its own: a malformed document can take any time or memory, and hold up all threads."""
    answer = asyncio.run(_asked(sort, data))
    if "error" in answer:
        raise Unreadable(str(answer["error"]))
    text = str(answer["text"]).encode("utf-8", "replace").decode()  # a PDF may hold halves of characters
    return Document(_bounded(_tidied(text)), kind, answer.get("title"))


async def _asked(sort: Literal["html", "pdf"], data: bytes) -> dict[str, Any]:
    seconds = SECONDS[sort]
    limits = json.dumps({"seconds": seconds, "bytes": _MEMORY, "characters": MAX_TEXT})
    with_packages = sort == "pdf"  # what reads PDF is one
    try:
        async with asyncio.timeout(seconds):
            return await ask_child(_CHILD, sort, limits, data=data, with_packages=with_packages)
    except (TimeoutError, NoAnswer):
        raise Unreadable("it took too much time or memory to read") from None


def _decoded(data: bytes, declared: str | None = None) -> str:
    """Text in UTF-8, in UTF-16 with a mark at its beginning, or as it declares.

    Raises:
        Unreadable: it is none of these, or too long.
    """
    encoding = "utf-8-sig"
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        encoding = "utf-16"
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError:
        text = _as_declared(data, declared)
    if "\0" in text:
        raise Unreadable("it is no text")
    return _bounded(_tidied(text))


def _as_declared(data: bytes, declared: str | None) -> str:
    if declared is None or _ENCODING.fullmatch(declared) is None:
        raise Unreadable("it is no text in UTF-8")
    try:
        return data.decode(declared)
    except (LookupError, ValueError):
        raise Unreadable(f"it is no text in {declared}") from None


def _tidied(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _bounded(text: str) -> str:
    if len(text) > MAX_TEXT:
        raise Unreadable(f"its text is longer than {MAX_TEXT:,} characters")
    return text
