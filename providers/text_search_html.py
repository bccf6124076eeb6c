"""Makes text of HTML: headings begin with `#`, blocks are paragraphs, and what is not shown is left out."""

import re
from html.parser import HTMLParser
from typing import Final

_HIDDEN: Final = frozenset({"head", "noscript", "script", "style", "svg", "template"})
_BLOCKS: Final = (
    "address article aside blockquote body dd details div dl dt fieldset figcaption figure footer form header hr main"
    " nav ol p pre section table ul"
)
_PARAGRAPHS: Final = frozenset(_BLOCKS.split())
_LINES: Final = frozenset({"br", "caption", "li", "option", "summary", "tr"})
_HEADINGS: Final = {f"h{level}": "#" * level for level in range(1, 7)}
_CELLS: Final = frozenset({"td", "th"})
_BLANKS: Final = re.compile(r"[ \t\r\n\f\v\xa0]+")
_FENCE: Final = "```"


class Html(HTMLParser):
    """Feed it a page and close it; then `text` and `title` are there. It takes broken pages as they are."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.title: str | None = None
        """What the page says its name is."""
        self._parts: list[str] = []
        self._hidden: list[str] = []
        self._title: list[str] | None = None
        self._pre = 0

    @property
    def text(self) -> str:
        """The text that the page shows."""
        return "".join(self._parts).strip()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Begin an element."""
        del attrs
        if tag == "title" and self.title is None:
            self._title = []
        elif tag == "body":
            self._hidden.clear()  # a head that nobody has ended
        if tag in _HIDDEN:
            self._hidden.append(tag)
        if not self._hidden:
            self._begin(tag)
            if tag == "pre":
                self._pre += 1
                self._parts.append(f"{_FENCE}\n")

    def handle_endtag(self, tag: str) -> None:
        """End an element."""
        if tag == "title" and self._title is not None:
            self.title = _BLANKS.sub(" ", "".join(self._title)).strip() or None
            self._title = None
        if tag in self._hidden:
            del self._hidden[self._hidden.index(tag) :]
        elif not self._hidden:
            if tag == "pre" and self._pre:
                self._pre -= 1
                self._end(1)
                self._parts.append(_FENCE)
            self._end(2 if tag in _PARAGRAPHS or tag in _HEADINGS else 1 if tag in _LINES else 0)

    def handle_data(self, data: str) -> None:
        """Some text."""
        if self._title is not None:
            self._title.append(data)
        if self._hidden or self._title is not None:
            return
        if self._pre:
            self._parts.append(data)
            return
        text = _BLANKS.sub(" ", data)
        if self._at_line_start():
            text = text.lstrip()
        if text:
            self._parts.append(text)

    def _begin(self, tag: str) -> None:
        if tag in _HEADINGS:
            self._end(2)
            self._parts.append(f"{_HEADINGS[tag]} ")
        elif tag in _PARAGRAPHS:
            self._end(2)
        elif tag in _LINES:
            self._end(1)
            if tag == "li":
                self._parts.append("- ")
        elif tag in _CELLS and not self._at_line_start():
            self._parts.append(" | ")

    def _end(self, ends: int) -> None:
        """See that so many line ends stand at the end."""
        if not self._parts or ends == 0:
            return
        there = 0
        for part in reversed(self._parts):
            stripped = part.rstrip("\n")
            there += len(part) - len(stripped)
            if stripped or there >= ends:
                break
        self._parts.append("\n" * max(0, ends - there))

    def _at_line_start(self) -> bool:
        last = next((part for part in reversed(self._parts) if part), "\n")
        return last[-1] in "\n "
