"""Which files below a folder are documents, and that no link leads out of it."""

import os
from pathlib import Path

import pytest

from providers.text_search_walk import (
    MAX_DEPTH,
    MAX_IGNORE_BYTES,
    FolderUnusable,
    Place,
    Rules,
    Walker,
    patterns,
)


def walker(
    root: Path, *, below: tuple[str, ...] = (), include: tuple[str, ...] | None = None, exclude: tuple[str, ...] = ()
) -> Walker:
    return Walker(Place(root, below), Rules(include, exclude, 1_000), is_readable=lambda path: path.endswith(".md"))


def seen(root: Path, **rules: tuple[str, ...]) -> list[str]:
    return list(walker(root, **rules).walk().files)


def plant(root: Path, *paths: str) -> None:
    for path in paths:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text("text")


def test_files_are_found_by_name_at_any_depth_and_in_order(tmp_path: Path) -> None:
    plant(tmp_path, "b.md", "a/z.md", "a/b/c.md", "c.png")

    assert seen(tmp_path) == ["a/b/c.md", "a/z.md", "b.md"]


def test_hidden_and_installed_files_are_passed_over(tmp_path: Path) -> None:
    plant(tmp_path, ".hidden.md", ".git/a.md", "node_modules/x/a.md", "a/__pycache__/b.md", "a/node_modules.md")

    assert seen(tmp_path) == ["a/node_modules.md"]


@pytest.mark.parametrize(
    ("include", "exclude", "expected"),
    [
        (("*.txt",), (), ["notes.txt", "sub/deep.txt"]),
        (("/*.txt",), (), ["notes.txt"]),
        (("sub/",), (), ["sub/a.md", "sub/deep.txt"]),
        (("sub/**/*.md", "*.txt"), ("sub/deep.txt",), ["notes.txt", "sub/a.md"]),
        (None, ("sub/",), ["top.md"]),
        (None, ("*.md", "!top.md"), ["top.md"]),
    ],
)
def test_patterns_say_what_is_taken_and_what_is_left_out(
    tmp_path: Path, include: tuple[str, ...] | None, exclude: tuple[str, ...], expected: list[str]
) -> None:
    plant(tmp_path, "top.md", "notes.txt", "sub/a.md", "sub/deep.txt")

    assert list(walker(tmp_path, include=include, exclude=exclude).walk().files) == expected


def test_what_git_ignores_is_left_out_and_the_nearest_file_decides(tmp_path: Path) -> None:
    plant(tmp_path, "a.md", "build/b.md", "sub/c.md", "sub/keep.md", "sub/d.md", "other/keep.md")
    (tmp_path / ".gitignore").write_text("build/\nkeep.md\n/a.md\n# a comment\n\n!\n")  # the last one is no pattern
    (tmp_path / "sub/.gitignore").write_text("d.md\n!keep.md\n")

    assert seen(tmp_path) == ["sub/c.md", "sub/keep.md"]


@pytest.mark.parametrize(("size", "counts"), [(MAX_IGNORE_BYTES, True), (MAX_IGNORE_BYTES + 1, False)])
def test_an_ignore_file_has_a_greatest_size(tmp_path: Path, size: int, counts: bool) -> None:
    plant(tmp_path, "a.md")
    (tmp_path / ".gitignore").write_text("a.md\n#".ljust(size, "x"))

    assert seen(tmp_path) == ([] if counts else ["a.md"])


@pytest.mark.timeout(20)
@pytest.mark.parametrize("pattern", ["*a*a*a*a*a*a*a*b", "a?*" * 20, "/**/a*/**/a*/**/a*b", "*a*ab"])
def test_no_pattern_of_a_stranger_takes_for_ever(tmp_path: Path, pattern: str) -> None:
    name = f"{'a' * 200}.md"
    plant(tmp_path, name)
    (tmp_path / ".gitignore").write_text(f"{pattern}\n")

    assert seen(tmp_path) == [name]


@pytest.mark.parametrize("pattern", ["*.md", "a*.*", "**/*.m*", "**/a/**"])
def test_usual_wildcards_are_heeded(tmp_path: Path, pattern: str) -> None:
    plant(tmp_path, "a/a.md")
    (tmp_path / ".gitignore").write_text(f"{pattern}\n")

    assert seen(tmp_path) == []


def test_an_ignore_file_that_is_none_does_no_harm(tmp_path: Path) -> None:
    plant(tmp_path, "a.md", "sub/b.md")
    (tmp_path / ".gitignore").mkdir()
    os.mkfifo(tmp_path / "sub/.gitignore")

    assert seen(tmp_path) == ["a.md", "sub/b.md"]


@pytest.mark.parametrize("bad", ["!", "\\"])
def test_what_is_no_pattern_is_refused(bad: str) -> None:
    with pytest.raises(ValueError):
        patterns([bad])


# ---- links --------------------------------------------------------------------------------------------------------


def test_no_link_is_followed_whether_it_leads_out_or_not(tmp_path: Path) -> None:
    """BR-22."""
    plant(tmp_path, "outside/secret.md", "docs/a.md", "docs/sub/b.md")
    docs = tmp_path / "docs"
    (docs / "out.md").symlink_to(tmp_path / "outside/secret.md")
    (docs / "out").symlink_to(tmp_path / "outside")
    (docs / "in").symlink_to(docs / "sub")
    (docs / "loop").symlink_to(docs)
    (docs / "dead.md").symlink_to("nowhere")

    assert seen(docs) == ["a.md", "sub/b.md"]


@pytest.mark.parametrize(
    "path", ["out.md", "out/secret.md", "sub/../../outside/secret.md", "missing.md", "sub", "pipe.md"]
)
def test_a_path_that_has_become_something_else_is_not_read(tmp_path: Path, path: str) -> None:
    """BR-22: what was a file when it was listed is a link when it is opened."""
    plant(tmp_path, "outside/secret.md", "docs/a.md", "docs/sub/b.md")
    docs = tmp_path / "docs"
    (docs / "out.md").symlink_to(tmp_path / "outside/secret.md")
    (docs / "out").symlink_to(tmp_path / "outside")
    os.mkfifo(docs / "pipe.md")

    assert walker(docs).read(path, 100) is None


def test_special_files_are_no_documents(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.md")

    assert seen(tmp_path) == []


def test_no_step_of_a_relative_folder_may_be_a_link(tmp_path: Path) -> None:
    """BR-22."""
    plant(tmp_path, "outside/docs/secret.md", "work/docs/a.md")
    (tmp_path / "work/link").symlink_to(tmp_path / "outside")

    assert list(walker(tmp_path / "work", below=("docs",)).walk().files) == ["a.md"]
    with pytest.raises(FolderUnusable, match="'link/docs'"):
        walker(tmp_path / "work", below=("link", "docs")).walk()


def test_the_folder_that_the_user_names_may_be_a_link(tmp_path: Path) -> None:
    plant(tmp_path, "docs/a.md")
    (tmp_path / "link").symlink_to(tmp_path / "docs")

    assert seen(tmp_path / "link") == ["a.md"]


# ---- bounds -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("size", "most", "is_read"), [(4, 4, True), (5, 4, False)])
def test_no_more_is_read_than_may_be(tmp_path: Path, size: int, most: int, is_read: bool) -> None:
    (tmp_path / "a.md").write_bytes(b"x" * size)

    found = walker(tmp_path).read("a.md", most)

    assert (found is not None) == is_read


def test_folders_are_entered_to_a_greatest_depth(tmp_path: Path) -> None:
    plant(tmp_path, "/".join(["d"] * MAX_DEPTH + ["in.md"]), "/".join(["d"] * (MAX_DEPTH + 1) + ["out.md"]))

    assert [Path(path).name for path in seen(tmp_path)] == ["in.md"]


def test_names_without_utf_8_are_passed_over(tmp_path: Path) -> None:
    plant(tmp_path, "a.md")
    (tmp_path / os.fsdecode(b"\xff.md")).write_text("text")

    assert seen(tmp_path) == ["a.md"]


def test_no_descriptor_is_left_open(tmp_path: Path) -> None:
    plant(tmp_path, "a/b/c.md", "d.md")
    (tmp_path / ".gitignore").mkdir()
    before = len(os.listdir("/proc/self/fd"))

    walker(tmp_path).walk()
    walker(tmp_path).read("a/b/c.md", 1)
    walker(tmp_path).read("a/b", 100)

    assert len(os.listdir("/proc/self/fd")) == before
