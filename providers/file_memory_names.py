"""Which names a file memory takes, and what its own files are called. Touches no file."""

import unicodedata
from typing import Final

INDEX: Final = "memories.md"
"""Lists the files; it is ours, and never shown as one."""
MAX_NAME_BYTES: Final = 200
"""Of a file's name in UTF-8; what its description's name adds fits a disk's limit."""
MAX_SHOWN: Final = 80

_DESCRIPTION: Final = "_description.md"
_MARKDOWN: Final = ".md"
_OTHER: Final = "~"
"""How the names of descriptions begin whose file is no Markdown: no other name does."""
_TOO_LONG: Final = f"a name has at most {MAX_NAME_BYTES} bytes"
_FORBIDDEN: Final = frozenset('/\\:*?"<>|')
_DEVICES: Final = frozenset(
    {"con", "prn", "aux", "nul", *(f"{device}{number}" for device in ("com", "lpt") for number in "0123456789¹²³")}
)


class NameRefused(Exception):
    """A memory takes no file of that name. The text is for models."""


def checked_name(name: str) -> str:
    """The name as it is used: one spelling for each way to write an accent.

    Raises:
        NameRefused: it is no plain file name on every system, or the memory's own.
    """
    if len(name) > MAX_NAME_BYTES:
        raise NameRefused(_TOO_LONG)
    name = unicodedata.normalize("NFC", name)
    if not name.strip():
        raise NameRefused("a file needs a name")
    if not _FORBIDDEN.isdisjoint(name):
        raise NameRefused('a name is flat: it holds none of / \\ : * ? " < > |')
    if not name.isprintable():
        raise NameRefused("a name holds only characters that can be seen")
    if name != name.strip() or name[0] in ".~" or name[-1] == ".":
        raise NameRefused("a name begins with no blank, . or ~, and ends with no blank or .")
    if len(name.encode()) > MAX_NAME_BYTES:
        raise NameRefused(_TOO_LONG)
    if key_of(name).partition(".")[0].rstrip() in _DEVICES:
        raise NameRefused("some systems keep that name for a device")
    if is_hidden(name):
        raise NameRefused(f"{INDEX} and names that end in {_DESCRIPTION} are the memory's own")
    return name


def key_of(name: str) -> str:
    """What names have in common that differ in letter case only: on many disks they are one file."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", name).casefold())


def is_hidden(name: str) -> bool:
    """Whether a file is the memory's own, or looks like it: the index, a description, what no model may name."""
    key = unicodedata.normalize("NFKC", name).casefold()
    return key == INDEX or key.endswith(_DESCRIPTION) or name[:1] in (".", _OTHER)


def description_of(name: str) -> str:
    """The file that describes a file; two files that differ never share one."""
    if name.lower().endswith(_MARKDOWN):
        return name[: -len(_MARKDOWN)] + _DESCRIPTION
    return _OTHER + name + _DESCRIPTION


def shown(name: str) -> str:
    """A name as it stands in a text: whatever was given, on one line and not too long."""
    visible = "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in name[:MAX_SHOWN])
    return visible + ("…" if len(name) > MAX_SHOWN else "")
