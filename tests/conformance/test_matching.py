"""Messages against what is written: placeholders stand for what differs, in whatever order the messages come."""

from typing import Any

import pytest

from sidecar.cli.conformance.matching import Matcher
from sidecar.cli.conformance.placeholders import Placeholders

ID = "ep_1"


@pytest.mark.parametrize(
    ("expected", "came"),
    [
        ({"a": [1, "x", None]}, {"a": [1, "x", None]}),
        ({"a": "<any>"}, {"a": {"whatever": 1}}),
        (["<time>"], ["2026-01-02T03:04:05.678901Z"]),
        (["<ms>", "<number>"], [0, 2.5]),
        ("<hash>", f"sha256:{'0' * 64}"),
        (["<dir>", "<dir>/a"], ["/home/ada", "/home/ada/a"]),
        (["<id:a>", "<id:b>", "<id:a>"], ["x", "y", "x"]),
    ],
)
def test_what_fits_fits(expected: Any, came: Any) -> None:
    assert Matcher("/home/ada").differs(expected, came) is None


@pytest.mark.parametrize(
    ("expected", "came", "where"),
    [
        ({"a": 1}, {"a": 2}, ".a: expected 1, but came 2"),
        ({"a": 1}, {}, ".a is missing"),
        ({}, {"a": 1}, ".a is not expected"),
        ([1], [True], "[0]: expected 1, but came True"),
        ([False], [0], "[0]: expected False, but came 0"),
        ([1, 2], [1], ": expected [1, 2], but came [1]"),
        (["<time>"], ["yesterday"], "[0]: expected '<time>', but came 'yesterday'"),
        (["<ms>"], [-1], "[0]: expected '<ms>', but came -1"),
        (["<ms>"], [True], "[0]: expected '<ms>', but came True"),
        (["<version>"], ["0.0.0"], "[0]: expected '<version>', but came '0.0.0'"),
        (["<dir>/a"], ["/elsewhere/a"], "[0]: expected '<dir>/a', but came '/elsewhere/a'"),
        (["<id:a>"], [5], "[0]: expected '<id:a>', but came 5"),
        (["<id:a>", "<id:a>"], ["x", "y"], "[1]: expected '<id:a>', but came 'y'"),
        (["<id:a>", "<id:b>"], ["x", "x"], "[1]: expected '<id:b>', but came 'x'"),
    ],
)
def test_what_differs_is_told_with_its_place(expected: Any, came: Any, where: str) -> None:
    assert Matcher("/home/ada").differs(expected, came) == where


def test_a_name_that_was_heard_can_be_said() -> None:
    matcher = Matcher("/home/ada")
    matcher.differs({"epoch": "<id:epoch1>"}, {"epoch": ID})

    assert matcher.fill({"a": ["<id:epoch1>", "<dir>/b"]}) == {"a": [ID, "/home/ada/b"]}
    with pytest.raises(KeyError):
        matcher.fill("<id:epoch2>")


def test_a_record_gets_names_and_keeps_what_the_host_minted() -> None:
    names = Placeholders("/home/ada")
    sent = names.mask_sent({"params": {"sessionId": "s", "cwd": "/home/ada"}})
    came = names.mask(
        {"sessionId": "s", "epoch": ID, "runId": "run_1", "durationMs": 3, "createdAt": "2026-01-02T03:04:05Z"}
    )

    assert sent == {"params": {"sessionId": "s", "cwd": "<dir>"}}
    assert came == {
        "sessionId": "s", "epoch": "<id:epoch1>", "runId": "<id:run1>", "durationMs": "<ms>", "createdAt": "<time>",
    }  # fmt: skip
    assert names.mask_sent({"replayFrom": {"epoch": ID}}) == {"replayFrom": {"epoch": "<id:epoch1>"}}
