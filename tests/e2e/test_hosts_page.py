"""The page for writers of clients is true: its conversations are held with a real sidecar, its tables are complete."""

import re
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from protocol import features
from protocol.base import MAX_ID_LENGTH
from protocol.errors import KINDS
from protocol.events import EPHEMERAL, EVENTS
from protocol.methods import HOST_METHODS, METHODS, NOTIFICATIONS, SERVER_NOTIFICATIONS
from protocol.runs import StopReason
from sidecar.config.limits import Limits
from tests.bench.doc_pages import Table, broken_links, tables
from tests.bench.wire_pages import hold, shown

PAGE: Final = Path(__file__).parents[2] / "docs" / "hosts.md"
TEXT: Final = PAGE.read_text(encoding="utf-8")
_CODE: Final = re.compile(r"`([^`]+)`")
_METHOD: Final = re.compile(r'"method":"([^"]+)"')
_OPTION: Final = re.compile(r"(?<!\w)--[a-z][a-z-]+")
_OF_LSP: Final = ("window/", "$/")
_OF_OTHERS: Final = {"--from", "--spec"}
"""Options of uvx and pipx."""


def table(*heads: str) -> Table:
    """The one table of the page with these heads."""
    (found,) = (one for one in tables(PAGE) if one.heads == heads)
    return found


def named(cell: str) -> list[str]:
    """What stands in code marks in a cell."""
    return _CODE.findall(cell)


async def test_the_page_s_conversations_go_as_it_shows_them(tmp_path: Path) -> None:
    folder = tmp_path / "reader"
    folder.mkdir(mode=0o755)

    held = await hold(PAGE, folder)

    assert held == shown(PAGE) > 40


def test_what_is_asked_of_a_host_is_shown_on_the_wire() -> None:
    sent = set(_METHOD.findall(TEXT))

    for needed in ("callTool", "beforeRun", "afterRun", "requestApproval", "elicit"):
        assert f"host/{needed}" in sent
    for needed in ("initialize", "createSession", "resumeSession", "run", "cancelRun", "getEvents", "shutdown", "exit"):
        assert needed in sent


def test_every_method_on_the_page_is_one() -> None:
    known = {row.name for row in (*METHODS, *HOST_METHODS, *NOTIFICATIONS)} | SERVER_NOTIFICATIONS.keys()

    assert {name for name in _METHOD.findall(TEXT) if not name.startswith(_OF_LSP)} <= known


def test_every_error_has_its_row() -> None:
    rows = table("code", "kind", "retryable", "what to do").rows

    told = {named(kind)[0]: (int(code), retryable == "yes") for code, kind, retryable, _ in rows}
    assert told == {name: (kind.code, kind.retryable) for name, kind in KINDS.items()}
    assert len(rows) == len(KINDS)
    assert all(advice for *_, advice in rows)


def test_every_type_of_event_has_its_row() -> None:
    rows = table("type", "ephemeral", "what to do with it").rows

    told = [(name, ephemeral == "yes") for types, ephemeral, _ in rows for name in named(types)]
    assert sorted(told) == sorted((name, name in EPHEMERAL) for name in EVENTS)


def test_of_every_method_it_is_said_whether_it_can_be_sent_again() -> None:
    rows = table("sent again", "methods").rows
    every = {method.name for method in METHODS}

    told = [name for _, methods in rows for name in named(methods) if name in every]
    assert sorted(told) == sorted(every)


def test_every_request_to_the_host_has_its_row() -> None:
    rows = table("method", "declare", "you answer", "if you cannot").rows

    told = [name for method, *_ in rows for name in named(method)]
    assert told == [method.name for method in HOST_METHODS]


def test_every_feature_has_its_row() -> None:
    told = [name for feature, _ in table("feature", "what it is").rows for name in named(feature)]

    assert sorted(told) == sorted(features.FEATURES)


def test_every_stop_reason_is_named() -> None:
    (line,) = (line for line in TEXT.splitlines() if line.startswith("`stopReason` says"))

    assert set(named(line)) >= set(StopReason.__args__)


def test_the_limits_are_the_product_s() -> None:
    rows = table("limit", "key", "default", "over it").rows
    limits = Limits()

    told = {
        key: value for _, keys, values, _ in rows for key, value in zip(named(keys), values.split(", "), strict=True)
    }
    assert len(told) > 15
    assert told == {key: _shown(key, getattr(limits, key)) for key in told}
    assert f"ids have 1 to {MAX_ID_LENGTH} characters" in TEXT
    for name in features.LIMITS:
        assert f"`{name}`" in TEXT


def test_every_option_on_the_page_is_one() -> None:
    there = {option for command in ("serve", "conformance", "schema") for option in _OPTION.findall(_help(command))}

    told = set(_OPTION.findall(TEXT)) - _OF_OTHERS
    assert len(told) > 10
    assert told <= there


def _help(command: str) -> str:
    asked = [sys.executable, "-I", "-m", "sidecar", command, "--help"]
    return subprocess.run(asked, capture_output=True, text=True, check=True, timeout=60).stdout


def _shown(key: str, value: int) -> str:
    """A limit as the page writes it."""
    if value == 0:
        return "none"
    steps = (("MiB", 1 << 20), ("KiB", 1 << 10)) if key.endswith("_bytes") else ()
    steps = (("min", 60_000), ("s", 1_000)) if key.endswith("_ms") else steps
    unit, size = next(((unit, size) for unit, size in steps if value % size == 0 and value >= size), ("", 1))
    return f"{value // size} {unit}".rstrip()


@pytest.mark.parametrize("page", [PAGE, PAGE.parents[1] / "clients" / "README.md"])
def test_every_link_leads_somewhere(page: Path) -> None:
    assert broken_links(page) == []
