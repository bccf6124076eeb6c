"""What the Python client makes of the answer to `initialize`, and what a trace sees of the question."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from sidecar_client import RpcError, SidecarClient, SidecarIncompatible
from sidecar_client.handshake import checked, refusal

FAKE = [sys.executable, str(Path(__file__).with_name("fake_sidecar.py"))]


def answer(name: object = "agent-sidecar", version: object = "0.1.0", **block: object) -> dict[str, Any]:
    sidecar = {"protocolVersion": 1, **block}
    return {
        "serverInfo": {"name": name, "version": version},
        "capabilities": {"experimental": {"sidecar": sidecar}},
    }


@pytest.mark.parametrize("version", ["0.1.0", "0.1.0rc1", "0.1", "0.2.0.dev3", "1.0.0", "10.0"])
def test_a_release_that_is_new_enough_is_taken_as_it_is(version: str) -> None:
    given = answer(version=version, somethingNew={})
    assert checked(given) is given


@pytest.mark.parametrize(
    ("given", "why"),
    [
        (None, "no agent-sidecar, but a nameless server"),
        ([], "a nameless server"),
        ({"serverInfo": None, "capabilities": []}, "a nameless server"),
        (answer(name="some-other-lsp"), "no agent-sidecar, but some-other-lsp"),
        ({**answer(), "capabilities": {"experimental": {}}}, "no agent-sidecar"),
        (answer(protocolVersion=7), r"speaks protocol version 7; this client speaks protocol version 1\."),
        (answer(protocolVersion=None), "speaks protocol version None"),
        (answer(version="0.0.9"), r"0\.0\.9 is too old, 0\.1\.0 is needed"),
        (answer(version=None), "is too old"),
    ],
)
def test_what_cannot_be_worked_with_is_refused(given: object, why: str) -> None:
    with pytest.raises(SidecarIncompatible, match=why):
        checked(given)


def test_no_version_in_common_is_told_as_that_and_another_refusal_as_it_is() -> None:
    told = refusal(RpcError(4000, "no", {"kind": "protocolVersionUnsupported", "supported": [2, 3]}))
    assert isinstance(told, SidecarIncompatible)
    assert "the sidecar speaks the protocol versions [2, 3]" in str(told)
    other = RpcError(4015, "no", {"kind": "configInvalid"})
    assert refusal(other) is other


async def test_another_server_is_not_gone_on_with_and_does_not_stay() -> None:
    said: list[str] = []
    with pytest.raises(SidecarIncompatible):
        async with SidecarClient.start(
            command=FAKE,
            env={"FAKE_ANSWER": json.dumps(answer(name="some-other-lsp"))},
            trace=lambda way, message: said.append(message["method"]) if way == "sent" else None,
        ):
            pytest.fail("it was taken for a sidecar")
    assert said == ["initialize", "shutdown", "exit"]


async def test_a_trace_is_shown_the_names_of_secrets_and_the_sidecar_their_values() -> None:
    sent: list[Any] = []
    options = {"clientId": "mine", "secrets": {"openai": "sk-1"}}
    async with SidecarClient.start(
        command=FAKE, options=options, trace=lambda way, message: sent.append(message) if way == "sent" else None
    ) as client:
        told = client.server["params"]
    shown = sent[0]["params"]
    assert told["initializationOptions"]["sidecar"]["secrets"] == {"openai": "sk-1"}
    assert shown["initializationOptions"]["sidecar"]["secrets"] == {"openai": "…"}
    told["initializationOptions"]["sidecar"]["secrets"] = {"openai": "…"}
    assert shown == told
