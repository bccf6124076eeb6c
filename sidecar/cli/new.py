"""`new provider NAME`: writes a context provider, its test, and a configuration that uses it. It runs none of them."""

import argparse
import keyword
import os
import sys
from importlib.util import find_spec
from pathlib import Path
from string import Template
from typing import Final

from .command import Arguments, Command, CommandError
from .output import stdout

TEMPLATES: Final = Path(__file__).with_name("templates")

FILES: Final = {
    "provider": {
        "provider.py.txt": "{name}.py",
        "test_provider.py.txt": "test_{name}.py",
        "provider.toml.txt": "{name}.toml",
    }
}
"""Kind → template → what the file is called."""

_LONGEST_NAME: Final = 64


def _configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("kind", choices=tuple(FILES), help="what to write")
    parser.add_argument("name", metavar="NAME", help="what it is called: lower-case letters, digits and underscores")
    parser.add_argument("--dir", metavar="DIR", default=".", help="where to write it; default: here")


def _execute(arguments: Arguments) -> int:
    folder, name = Path(arguments.dir), arguments.name
    _check_name(name, folder)
    if not folder.is_dir():
        raise CommandError(f"{folder} is no folder", 2)
    words = {"name": name, "class_name": "".join(part.title() for part in name.split("_"))}
    texts = {
        folder / file.format(name=name): _filled(template, words) for template, file in FILES[arguments.kind].items()
    }
    there = [str(path) for path in texts if os.path.lexists(path)]
    if there:
        raise CommandError(f"{', '.join(there)}: there already; nothing was written")
    _write(texts)
    out = stdout()
    for path in texts:
        out.line(f"wrote {path}")
    out.line()
    out.line("Next:")
    out.line(f"  python -m pytest {folder / f'test_{name}.py'}")
    out.line(f"  agent-sidecar run hello --config {folder / f'{name}.toml'} --agent {name}")
    return 0


def _check_name(name: str, folder: Path) -> None:
    if not (name.isascii() and name.isidentifier() and name == name.lower() and name[0].isalpha()):
        raise CommandError(f"{name!r} is no name for it: take lower-case letters, digits and underscores", 2)
    if len(name) > _LONGEST_NAME:
        raise CommandError(f"the name is longer than {_LONGEST_NAME} characters", 2)
    if keyword.iskeyword(name) or keyword.issoftkeyword(name) or name.startswith("test_"):
        raise CommandError(f"{name!r} means something else to Python or pytest; take another name", 2)
    if name in sys.stdlib_module_names or _is_importable(name, folder):
        raise CommandError(f"there is a module {name!r} already, which would be imported instead; take another name", 2)


def _is_importable(name: str, folder: Path) -> bool:
    """Whether Python finds another module of that name than the one in the folder."""
    try:
        spec = find_spec(name)
    except (ImportError, ValueError):
        return True
    return spec is not None and (spec.origin is None or Path(spec.origin).parent != folder.absolute())


def _filled(template: str, words: dict[str, str]) -> str:
    return Template((TEMPLATES / template).read_text(encoding="utf-8")).substitute(words)


def _write(texts: dict[Path, str]) -> None:
    for path, text in texts.items():
        try:
            with path.open("x", encoding="utf-8") as file:
                file.write(text)
        except OSError as error:
            raise CommandError(f"{path} cannot be written: {error.strerror}") from None


COMMAND = Command("new", "write a context provider of your own, with its test", _configure, _execute)
