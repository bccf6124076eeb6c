"""The Node client: built, tested by node's own runner, packed, and used as somebody does who installs the package."""

import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Any

import pytest

from protocol.schema import SCHEMA_FILE
from protocol.typescript import typescript
from protocol.version import PROTOCOL_VERSIONS, VERSION

CLIENT = Path(__file__).parents[2] / "clients" / "node"
MODULES = Path(sys.prefix) / "editors" / "client" / "node_modules"
"""Where `.ci/run` installs what the client's package.json names."""

README = (CLIENT / "README.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"^```js\n(.*?)^```\n+It prints `([^`]*)`", README, re.MULTILINE | re.DOTALL)

TYPED = """\
import { type Host, SidecarClient, type SessionInfo, type SidecarEvent } from "agent-sidecar-client";

const host: Host = { approve: ({ options }) => options[0]?.optionId };
await using client = await SidecarClient.start({ host });
const info: SessionInfo = (await client.createSession({ title: "typed" })).info;
const text = (event: SidecarEvent): string => (event.type === "message.delta" ? event.data.text : "");
const { sessions } = await client.request("listSessions", { limit: 1 });
console.log(info.sessionId, sessions[0]?.revision, text);
// @ts-expect-error: there is no such method
await client.request("listSession", {});
"""


def run(*command: str | Path, cwd: Path, **environment: str) -> str:
    """What a program prints, which must end well. Nothing of it may come from the network."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("OPENAI_", "PYTHONPATH", "npm_"))}
    path = os.pathsep.join([str(Path(sys.executable).parent), kept.get("PATH", "")])
    ran = subprocess.run(
        command,
        cwd=cwd,
        env={**kept, "PATH": path, "npm_config_offline": "true", "npm_config_update_notifier": "false", **environment},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert ran.returncode == 0, f"{ran.stdout}\n{ran.stderr}"
    return ran.stdout


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The client's sources with what they need, in a folder where they may be built."""
    if shutil.which("node") is None or shutil.which("npm") is None:
        pytest.skip("no node and npm here")
    if not (MODULES / "typescript").is_dir():
        pytest.skip(f"no typescript in {MODULES}; .ci/run installs it")
    folder = tmp_path_factory.mktemp("node") / "client"
    shutil.copytree(CLIENT, folder, ignore=shutil.ignore_patterns("node_modules", "dist", "build"))
    (folder / "node_modules").symlink_to(MODULES)
    return folder


@pytest.fixture(scope="module")
def installed(package: Path) -> Path:
    """A folder of somebody else's, in which the packed client is installed."""
    run("npm", "pack", cwd=package)
    run("npm", "pack", "--ignore-scripts", MODULES / "vscode-jsonrpc", cwd=package)
    folder = package.parent / "somebody else's"
    folder.mkdir()
    (folder / "package.json").write_text('{"type": "module"}')
    archives = sorted(package.glob("*.tgz"))
    run("npm", "install", "--no-audit", "--no-fund", "--ignore-scripts", *archives, cwd=folder)
    return folder


def test_the_types_are_those_of_the_contract() -> None:
    schema: dict[str, Any] = json.loads(SCHEMA_FILE.read_text(encoding="utf-8"))

    assert (CLIENT / "src" / "contract.ts").read_text(encoding="utf-8") == typescript(schema), "run: npm run types"


def test_the_pinned_release_and_the_protocol_are_the_sidecars_own() -> None:
    constants = (CLIENT / "src" / "version.ts").read_text(encoding="utf-8")

    assert f'PINNED_SIDECAR = "{VERSION}"' in constants
    assert f"PROTOCOL_VERSIONS: readonly number[] = {list(PROTOCOL_VERSIONS)}" in constants


def test_nothing_but_vscode_jsonrpc_is_needed_at_run_time() -> None:
    manifest = json.loads((CLIENT / "package.json").read_text(encoding="utf-8"))

    assert manifest["dependencies"].keys() == {"vscode-jsonrpc"}
    assert not manifest.keys() & {"bin", "bundledDependencies", "optionalDependencies", "peerDependencies"}


@pytest.mark.timeout(300)
def test_its_own_tests_pass(package: Path) -> None:
    run("npm", "run", "pretest", cwd=package)
    told = run("node", "--test", "--test-reporter=tap", *sorted((package / "build").glob("*.test.js")), cwd=package)

    counts = {name: int(count) for name, count in re.findall(r"^# (tests|pass|skipped) (\d+)$", told, re.MULTILINE)}
    assert counts["tests"] == counts["pass"] > 50
    assert counts["skipped"] == 0


def test_only_what_is_built_is_packed(installed: Path, package: Path) -> None:
    (archive,) = package.glob("agent-sidecar-client-*.tgz")
    with tarfile.open(archive) as packed:
        names = {name.removeprefix("package/") for name in packed.getnames()}

    assert {"package.json", "README.md", "LICENSE", "dist/index.js", "dist/index.d.ts"} <= names
    assert {name for name in names if not name.startswith("dist/")} == {"package.json", "README.md", "LICENSE"}
    assert (installed / "node_modules" / "agent-sidecar-client" / "dist" / "index.js").is_file()


def test_there_is_a_promise_for_every_example() -> None:
    assert len(EXAMPLES) == README.count("```js\n") == 2


@pytest.mark.parametrize(("script", "promised"), EXAMPLES)
def test_the_example_prints_what_is_promised(installed: Path, script: str, promised: str) -> None:
    (installed / "example.js").write_text(script)

    assert run("node", "example.js", cwd=installed, HOME=str(installed.parent)) == promised + "\n"


def test_its_types_serve_a_strict_program_and_refuse_a_wrong_one(installed: Path) -> None:
    (installed / "typed.ts").write_text(TYPED)
    (installed / "node_modules" / "@types").symlink_to(MODULES / "@types")
    options = "--noEmit --strict --exactOptionalPropertyTypes --module nodenext --target es2023 --types node"

    run(MODULES / ".bin" / "tsc", *options.split(), "--lib", "es2023,esnext.disposable", "typed.ts", cwd=installed)
