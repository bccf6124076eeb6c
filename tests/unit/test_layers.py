"""The house's directions: who may import what, which packages there are, and that every method has its handler."""

import ast
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from protocol.methods import INITIALIZE, METHODS, SHUTDOWN
from sidecar.handlers.table import TABLE

ROOT = Path(__file__).parents[2]
PACKAGES = {
    "protocol": ROOT / "protocol",
    "providers": ROOT / "providers",
    "sidecar": ROOT / "sidecar",
    "sidecar_client": ROOT / "clients" / "python" / "sidecar_client",
}


GENERATED = {PACKAGES["sidecar_client"] / "types.py"}
"""Written by a program, for programs: as long as the contract is."""


def sources() -> Iterator[Path]:
    for folder in PACKAGES.values():
        yield from sorted(folder.rglob("*.py"))


def imported(path: Path) -> set[str]:
    """The first part of every module that a file imports, wherever in it the import stands."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found.update(alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            found.add(node.module.partition(".")[0])
    return found


def importers(*modules: str) -> set[str]:
    return {path.relative_to(ROOT).as_posix() for path in sources() if imported(path) & set(modules)}


def pyproject() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def contracts() -> dict[str, dict[str, Any]]:
    return {contract["id"]: contract for contract in pyproject()["tool"]["importlinter"]["contracts"]}


def test_the_openai_package_is_known_to_the_openai_clients_only() -> None:
    found = importers("openai", "httpx2")

    assert found
    assert {path for path in found if not path.startswith("sidecar/models/openai_")} == set()


def test_pygls_and_lsprotocol_are_known_to_the_language_server_half_only() -> None:
    found = importers("pygls", "lsprotocol")

    assert found
    assert {path for path in found if not path.startswith("sidecar/lsp/")} == set()


def test_the_contract_imports_pydantic_and_the_standard_library_only() -> None:
    allowed = sys.stdlib_module_names | {"pydantic", "pydantic_core", "typing_extensions", "protocol"}
    for path in sorted(PACKAGES["protocol"].rglob("*.py")):
        assert imported(path) <= allowed, path.name


def test_the_client_imports_the_standard_library_only() -> None:
    allowed = sys.stdlib_module_names | {"sidecar_client"}
    for path in sorted(PACKAGES["sidecar_client"].rglob("*.py")):
        assert imported(path) <= allowed, path.name


def test_the_layers_above_are_not_imported_from_below() -> None:
    above = {"protocol": {"providers", "sidecar", "sidecar_client"}, "providers": {"sidecar", "sidecar_client"}}
    for package, forbidden in above.items():
        for path in sorted(PACKAGES[package].rglob("*.py")):
            assert not imported(path) & forbidden, path.relative_to(ROOT)


def test_only_the_command_line_imports_the_client() -> None:
    outside = {path for path in importers("sidecar_client") if not path.startswith("clients/")}

    assert {path for path in outside if not path.startswith("sidecar/cli/")} == set()


def test_the_wheel_holds_exactly_these_packages() -> None:
    config = pyproject()
    packages = config["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]

    assert {Path(package).name for package in packages} == set(PACKAGES)
    assert set(config["tool"]["importlinter"]["root_packages"]) == set(PACKAGES)
    assert all((folder / "__init__.py").is_file() for folder in PACKAGES.values())


def test_no_other_package_stands_at_the_root() -> None:
    importable = {path.parent.name for path in ROOT.glob("*/__init__.py")}

    assert importable - {"tests", "benchmarks", "examples"} == set(PACKAGES) - {"sidecar_client"}


@pytest.mark.parametrize(
    "name",
    [
        "top-level",
        "sidecar-layers",
        "client-stands-alone",
        "client-for-cli-only",
        "json-stays-at-the-edge",
        "pygls-in-lsp-only",
    ],
)
def test_the_import_contract_is_there(name: str) -> None:
    assert name in contracts()


def test_the_layers_inside_the_sidecar_are_all_of_its_modules() -> None:
    contract = contracts()["sidecar-layers"]
    listed = {name.strip() for layer in contract["layers"] for name in layer.split("|")}
    there = {path.stem for path in PACKAGES["sidecar"].glob("*.py")} | {
        path.parent.name for path in PACKAGES["sidecar"].glob("*/__init__.py")
    }

    assert contract["exhaustive"] is True
    assert listed == there - {"__init__"}


def test_the_contracts_of_the_edge_name_every_module_below_it() -> None:
    edge, root = contracts()["json-stays-at-the-edge"], contracts()["sidecar-layers"]
    below = root["layers"][root["layers"].index("sessions") :]
    modules = {name.strip() for layer in below for name in layer.split("|")} - {
        "errors", "options", "crash_points", "descendants", "telemetry",
    }  # fmt: skip

    assert {f"sidecar.{name}" for name in modules} | {"sidecar.handlers"} <= set(edge["source_modules"])


def test_every_method_of_the_contract_is_bound_once() -> None:
    own = {INITIALIZE.name, SHUTDOWN.name}

    assert TABLE.keys() | own == {method.name for method in METHODS}
    assert not TABLE.keys() & own
    assert all(name == binding.method.name for name, binding in TABLE.items())
    assert all(binding.method in METHODS for binding in TABLE.values())


@pytest.mark.parametrize("path", list(sources()), ids=lambda path: path.relative_to(ROOT).as_posix())
def test_a_file_says_on_its_first_line_what_it_is_and_stays_readable(path: Path) -> None:
    text = path.read_text(encoding="utf-8")

    assert text.startswith(('"""', 'r"""'))
    assert text.count("\n") <= 500 or path in GENERATED
