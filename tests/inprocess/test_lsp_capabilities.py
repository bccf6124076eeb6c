"""`capabilities.json`, which answers `initialize` before pygls is loaded, says what pygls would have said."""

import json
from importlib.resources import files
from typing import Any

import pytest
from lsprotocol import types

from sidecar.handshake import initialize_result
from sidecar.lsp.code_actions import KINDS
from sidecar.lsp.commands import COMMANDS
from sidecar.lsp.engine import Engine
from sidecar.lsp.position import negotiate_position_encoding

PREPARED = json.loads(files("sidecar.lsp").joinpath("capabilities.json").read_text("utf-8"))


def computed(capabilities: dict[str, Any]) -> dict[str, Any]:
    """As pygls says it, with the commands and code actions that are answered without pygls."""
    answer = Engine(lambda _: None).initialize({"capabilities": capabilities})["capabilities"]
    actions = {"codeActionKinds": list(KINDS)}
    return {**answer, "codeActionProvider": actions, "executeCommandProvider": {"commands": list(COMMANDS)}}


def test_the_prepared_capabilities_are_those_that_pygls_computes() -> None:
    assert computed({}) == PREPARED


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "utf-32"])
def test_the_position_encoding_is_the_only_difference_that_a_client_makes(encoding: str) -> None:
    operations = dict.fromkeys(
        ["didCreate", "willCreate", "didRename", "willRename", "didDelete", "willDelete", "dynamicRegistration"], True
    )
    eager = {
        "general": {"positionEncodings": [encoding, "utf-16"]},
        "textDocument": {
            "synchronization": {"willSave": True, "willSaveWaitUntil": True, "didSave": True},
            "rename": {"prepareSupport": True},
            "codeAction": {"resolveSupport": {"properties": ["edit"]}},
        },
        "workspace": {"applyEdit": True, "workspaceFolders": True, "fileOperations": operations},
        "notebookDocument": {"synchronization": {"dynamicRegistration": True}},
    }

    answer = computed(eager)

    sync = answer["textDocumentSync"]
    assert sync.pop("willSave") is sync.pop("willSaveWaitUntil") is False  # what leaving them out means, too
    assert answer == {**PREPARED, "positionEncoding": encoding}


def test_the_prepared_capabilities_offer_incremental_sync() -> None:
    assert PREPARED["textDocumentSync"]["change"] == types.TextDocumentSyncKind.Incremental


@pytest.mark.parametrize(
    "offered", [None, [], ["klingon"], ["utf-8", "utf-16"], ["klingon", "utf-32"], ["utf-16", "utf-8"]], ids=str
)
def test_the_answer_advertises_the_encoding_that_documents_are_read_in(offered: list[str] | None) -> None:
    params = {"capabilities": {"general": {"positionEncodings": offered}}}
    answer = initialize_result(params, "instance")
    assert answer["capabilities"]["positionEncoding"] == negotiate_position_encoding(params)


@pytest.mark.parametrize("support", [None, True, {"codeActionKind": {"valueSet": []}}])
def test_code_action_options_are_sent_to_clients_that_take_them(support: Any) -> None:
    params = {"capabilities": {"textDocument": {"codeAction": {"codeActionLiteralSupport": support}}}}
    answer = initialize_result(params, "instance")["capabilities"]["codeActionProvider"]
    assert answer == (PREPARED["codeActionProvider"] if isinstance(support, dict) else True)


def test_our_block_names_the_commands_that_lsp_is_offered() -> None:
    capabilities = initialize_result({}, "instance")["capabilities"]
    assert capabilities["experimental"]["sidecar"]["commands"] == list(COMMANDS)
